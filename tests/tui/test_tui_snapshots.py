"""Snapshots of the screens; after an intended change, run pytest tests/tui --snapshot-update and look at them."""

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.tui import made_traces
from tests.tui.pilots import press, settled
from tracekit.tui.app import build_app
from tracekit.tui.widgets.grid import Grid

SMALL, LARGE, HUGE = (80, 24), (160, 45), (200, 60)

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two traces by relative paths, because no snapshot may contain the name of a machine's folder."""
    monkeypatch.chdir(tmp_path)
    return made_traces.pair(Path())


async def still(pilot: Pilot[Any]) -> None:
    """Wait until the row under the cursor is described and the picture no longer changes, which may take a while."""
    pictures: list[str] = []
    for _ in range(100):
        await pilot.pause(0.1)
        pictures.append(pilot.app.export_screenshot())
        rows = pilot.app.query("#row").results(Static)
        is_told = not pilot.app.query(Grid) or all(str(row.visual) for row in rows)
        if is_told and len(pictures) > 3 and len(set(pictures[-4:])) == 1:
            return


def pressing(*keys: str) -> Any:
    async def act(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, *keys)
        await still(pilot)

    return act


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ((), SMALL),
        ((), LARGE),
        ((), HUGE),
        (("enter",), SMALL),
        (("K",), SMALL),
        (("K",), LARGE),
        (("K", "enter", "enter", "t"), LARGE),
        (("w", "tab", "tab", "right", "shift+right"), LARGE),
        (("question_mark",), SMALL),
    ],
    ids=["small", "large", "huge", "finding", "kernels-small", "kernels", "event", "steps", "help"],
)
def test_screens(snap_compare: Any, pair: list[Path], size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(build_app(pair), run_before=pressing(*keys), terminal_size=size)


def test_hostile_names(snap_compare: Any, pair: list[Path]) -> None:
    path = made_traces.eager(Path("[bold]x[@click=app.quit].json"), kernel=made_traces.HOSTILE)
    assert snap_compare(build_app([*pair, path]), run_before=pressing("K"), terminal_size=LARGE)


def test_a_broken_file(snap_compare: Any, pair: list[Path]) -> None:
    Path("broken.json").write_text("{}")
    assert snap_compare(build_app([Path("broken.json")]), run_before=pressing(), terminal_size=SMALL)
