"""A folder in which to run a script as its user would: with the files beside it, and nothing else."""

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .scripts import HERE

_NOT_FILES = ("__pycache__", ".torch_trace")
# Another copy of a library than the installed one, as on a user's PYTHONPATH.
_LIBRARY = 'VERSION = "the copy on PYTHONPATH"\n'


@dataclass(frozen=True)
class Workplace:
    """The folder, always at the same path, because paths are printed and compared."""

    folder: Path
    library: Path

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        """Our environment, with empty caches, one thread, and the user's PYTHONPATH."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORCH", "TRACEKIT", "PYTEST"))}
        return {
            **clean,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(self.library),
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            **more,
        }

    def files(self) -> dict[str, str]:
        """The path of every file, and a hash of its content."""
        every = (path for path in self.folder.rglob("*") if path.is_file())
        named = ((path.relative_to(self.folder), path) for path in every)
        return {
            str(name): hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in named
            if not any(part in _NOT_FILES for part in name.parts)
        }


def lay_out(parent: Path) -> Workplace:
    """Make a new folder, in place of an earlier one."""
    folder, library = parent / "work", parent / "library"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__", "scripts.toml"))
    library.mkdir(exist_ok=True)
    (library / "a_users_library.py").write_text(_LIBRARY)
    return Workplace(folder, library)


PYTHON = sys.executable
