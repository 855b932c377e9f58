"""Where is kept what must outlive a capture and a reboot: the locks of folders, and journals with their backups."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tracekit.base.workspace import temporary_home
from tracekit.errors.asking import NoFolderError


def state_folder(name: str) -> Path:
    """The user's folder for state of that kind, which is made if need be; among temporary files if there is no home.

    Raises NoFolderError if nothing can be written in either place.
    """
    usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state"
    home = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser(usual), "tracekit")
    # Where no temporary folder can be written, asking for it fails.
    parents: tuple[Callable[[], Path], ...] = (lambda: home, lambda: temporary_home("tracekit-state"))
    for parent in parents:
        try:
            folder = parent() / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, NoFolderError):
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise NoFolderError("XDG_STATE_HOME", home)
