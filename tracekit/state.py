"""Where is kept what must outlive a capture and a reboot: the locks of folders, and journals with their backups."""

import os
import sys
import tempfile
from pathlib import Path


def state_folder(name: str) -> Path:
    """The user's folder for state of that kind, which is made if need be; among temporary files if there is no home."""
    usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state"
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser(usual)
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    for parent in (Path(home, "tracekit"), Path(tempfile.gettempdir(), f"tracekit-state-{user}")):
        folder = parent / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return folder
