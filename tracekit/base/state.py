"""Where is kept what must outlive a capture and a reboot: the locks of folders, and journals with their backups."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tracekit.errors.asking import NoFolderError


def state_folder(name: str) -> Path:
    """The user's folder for state of that kind, which is made if need be; among temporary files if there is no home.

    Raises NoFolderError if nothing can be written in either place.
    """
    usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state"
    home = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser(usual), "tracekit")
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    parents: tuple[Callable[[], Path], ...] = (  # where no temporary folder can be written, asking for it fails
        lambda: home,
        lambda: Path(tempfile.gettempdir(), f"tracekit-state-{user}"),
    )
    for parent in parents:
        try:
            folder = parent() / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise NoFolderError("XDG_STATE_HOME", home)
