"""Pictures of the screens; after a wanted change: pytest tests/tui --snapshot-update, and look at them."""

from pathlib import Path
from typing import Any

import made_traces
import pytest
from test_tui_app import loaded, settled
from textual.pilot import Pilot

from tracekit.tui.app import TracekitApp, build_app

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """By relative paths: no picture may hold the name of a machine's folder."""
    monkeypatch.chdir(tmp_path)
    return made_traces.pair(Path())


async def still(pilot: Pilot[Any]) -> None:
    """Wait until the picture no longer changes."""
    pictures: list[str] = []
    for _ in range(200):
        await pilot.pause(0.05)
        pictures.append(pilot.app.export_screenshot())
        if len(pictures) > 3 and len(set(pictures[-4:])) == 1:
            return


def pressing(*keys: str) -> Any:
    async def press(pilot: Pilot[Any]) -> None:
        await loaded(pilot)
        await pilot.press(*keys)
        await still(pilot)

    return press


@SIZES
@pytest.mark.parametrize(
    "keys", [(), ("w",), ("2",), ("3",), ("question_mark",)], ids=["overview", "host", "findings", "kernels", "help"]
)
def test_screens(snap_compare: Any, pair: list[Path], size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(build_app(pair), run_before=pressing(*keys), terminal_size=size)


@SIZES
def test_another_baseline(snap_compare: Any, pair: list[Path], size: tuple[int, int]) -> None:
    async def turn(pilot: Pilot[Any]) -> None:
        app = await loaded(pilot)
        await pilot.press("b")
        await settled(pilot, app, "compiled")
        await still(pilot)

    assert snap_compare(build_app(pair), run_before=turn, terminal_size=size)


@SIZES
def test_hostile_names(snap_compare: Any, pair: list[Path], size: tuple[int, int]) -> None:
    path = made_traces.eager(Path("[bold]x[@click=app.quit].json"), kernel=made_traces.HOSTILE)
    assert snap_compare(build_app([*pair, path]), run_before=pressing("3"), terminal_size=size)


@SIZES
def test_a_broken_file(snap_compare: Any, pair: list[Path], size: tuple[int, int]) -> None:
    Path("broken.json").write_text("{}")
    app = build_app([Path("broken.json")])
    assert isinstance(app, TracekitApp)
    assert snap_compare(app, run_before=pressing(), terminal_size=size)
