"""Takes the pictures of the terminal UI in docs/images: python -m tests.screenshots [FOLDER]."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from tracekit.installed import sample_run
from tracekit.tui.app import TracekitApp, build_app

ROOT = Path(__file__).parent.parent
PICTURES: dict[str, tuple[str, ...]] = {
    "overview": (),
    "timeline": ("T",),
    "source": ("L", "enter"),
}
SIZE = (140, 38)


def main() -> int:
    """Write each picture."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["COLORTERM"] = "truecolor"  # with few colours a timeline draws patterns
    os.environ.pop("NO_COLOR", None)
    for name, keys in PICTURES.items():
        path = folder / f"tui-{name}.svg"
        path.write_text(asyncio.run(picture(keys)), "utf-8")
        print(f"Wrote {path}")
    return 0


async def picture(keys: tuple[str, ...]) -> str:
    """The screen after these keys, on the sample."""
    app = build_app([sample_run()])
    async with app.run_test(size=SIZE) as pilot:
        await settled(app, pilot)
        for key in keys:
            await pilot.press(key)
            await settled(app, pilot)
        await pilot.pause(1)
        return app.export_screenshot()


async def settled(app: TracekitApp, pilot: Any) -> None:
    """Wait until the selection is on the screen."""
    while not app.is_settled:
        await pilot.pause(0.02)
    await pilot.pause()


if __name__ == "__main__":
    sys.exit(main())
