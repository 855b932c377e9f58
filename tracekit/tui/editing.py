"""Opening a line in the user's editor, which takes over the terminal meanwhile."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


def edit(app: App[Any], path: Path, line: int) -> str:
    """Open the editor and wait until the user closes it. Returns what went wrong, or nothing."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        with app.suspend():
            subprocess.run([*shlex.split(editor), f"+{line}", str(path)], check=False)
    except SuspendNotSupported:
        return "This terminal cannot be handed to an editor."
    except (OSError, ValueError) as error:
        return f"{editor}: {error}"
    finally:
        app.refresh()
    return ""
