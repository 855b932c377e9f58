"""Findings as cards: nothing is cut where there is room, and where there is little, the title comes first."""

from pathlib import Path

import pyarrow as pa
import pytest
from textual.geometry import Size

from tests.tui import made_traces
from tests.tui.pilots import press, started
from tracekit.trace.schema import column
from tracekit.tui.exporting import screen_text
from tracekit.tui.model.sheet import Card, Sheet
from tracekit.tui.widgets.cards import Cards, Laid

pytestmark = pytest.mark.usefixtures("own_cache")


def words(text: str) -> str:
    return " ".join(text.replace("▐", " ").replace("\u00a0", " ").split())


@pytest.mark.parametrize("size", [(200, 56), (120, 40), (80, 24)])
async def test_titles_are_whole_and_with_room_everything_is(pair: list[Path], size: tuple[int, int]) -> None:
    async with started(pair, size=size) as (app, _):
        cards = app.query_one(Cards)
        lines = cards.laid_out.lines
        said = words(" ".join(text for _, _, text, _ in lines))
        assert len(cards.sheet.cards) > 1
        assert all(len(figures + text) < cards.size.width for _, figures, text, _ in lines)
        assert all(words(card.title) in said for card in cards.sheet.cards)
        if size == (200, 56):
            assert all(words(part) in said for card in cards.sheet.cards for part in card.parts)
            assert words(cards.sheet.cards[0].title) in words(screen_text(app))


def test_less_room_leaves_out_second_parts_before_first_ones() -> None:
    cards = tuple(Card(((f"{k} ms",),), f"title {k}", (f"do {k} " * 4, f"why {k} " * 4)) for k in range(2))
    names = pa.schema([column("cost", pa.string(), ""), column("finding", pa.string(), "")])
    sheet = Sheet("findings", pa.table([["1", "2"], ["a", "b"]], schema=names), cards=cards)

    def said(height: int) -> list[str]:
        return [text.split()[0] for _, _, text, _ in Laid(sheet, Size(60, height)).lines]

    assert said(7) == ["title", "do", "why", "title", "do", "why"]
    assert said(6) == ["title", "do", "why", "title", "do"]
    assert said(4) == ["title", "do", "title"]
    assert said(1) == ["title", "title"]  # the rest is scrolled to


async def test_equal_findings_of_two_variants_are_one_card(tmp_path: Path) -> None:
    paths = [made_traces.eager(tmp_path / "one.json"), made_traces.eager(tmp_path / "two.json")]
    async with started(paths, size=(200, 56)) as (app, pilot):
        cards = app.query_one(Cards)
        names = [sorted(figures[2] for figures in card.figures) for card in cards.sheet.cards]
        assert ["one", "two"] in names
        await press(pilot, *["down"] * names.index(["one", "two"]), "enter")
        said = words(screen_text(app))
        assert "one: up to" in said
        assert "two: up to" in said
