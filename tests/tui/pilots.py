"""The app under a pilot: starts it, presses keys until it has responded, and returns what it shows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Static

from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.widgets.grid import Grid


async def settled(pilot: Pilot[Any], *, whole: bool = True) -> TracekitApp:
    """Wait until the selection is on the screen, for everything that was opened if `whole`, or else a failure is."""
    app = pilot.app
    assert isinstance(app, TracekitApp)
    for _ in range(6_000):  # a minute: on a busy machine even a small trace takes seconds
        await pilot.pause(0.01)
        is_shown = app.is_settled if whole else app.navigation.is_shown
        if app.failure is not None or not app.is_running or is_shown:
            break
    await pilot.pause()
    return app


@asynccontextmanager
async def started(
    paths: list[Path], baseline: str | None = None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[TracekitApp, Pilot[Any]]]:
    async with build_app(paths, baseline).run_test(size=size) as pilot:
        yield await settled(pilot), pilot


async def press(pilot: Pilot[Any], *keys: str, whole: bool = True) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot, whole=whole)


async def type_into_field(pilot: Pilot[Any], text: str, instead_of: str = "") -> None:
    """Type quickly: waits once for the keys that delete, which may overtake letters, and once for the letters."""
    for _ in instead_of:
        pilot.app.post_message(Key("backspace", None))
    if instead_of:
        await settled(pilot)
    for letter in text:
        pilot.app.post_message(Key(_character_to_key(letter), letter))
    await settled(pilot)


def said(app: TracekitApp, selector: str) -> str:
    return str(app.query_one(selector, Static).visual)


def key_of(app: TracekitApp, pane: str) -> str:
    """The key that leads to a pane."""
    return next(key for key, listed in app.navigation.keys.items() if listed.name == pane)


def focused(app: TracekitApp) -> Grid:
    assert isinstance(app.focused, Grid)
    return app.focused
