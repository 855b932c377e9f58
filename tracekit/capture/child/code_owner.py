"""Whose code is a file? The user's, a library's, torch's, Python's own, or made by a generator."""

import os
import re
import site
import sys
import sysconfig
import tempfile
from functools import cache

USER, TORCH, PYTHON, GENERATED = "user", "torch", "python", "generated"
_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_CELL = re.compile(r"<ipython-input-|.*[/\\]ipykernel_\d+[/\\]")
_CODEGEN = re.compile(r".*:?codegen\(.*\)$")
# Inductor names its files by their content, in a folder of the same two characters.
_INDUCTOR = re.compile(r".*[/\\](?P<two>[a-z2-7]{2})[/\\]c(?P=two)[a-z2-7]{20,}\.py$")
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class CodeOwners:
    """Decides by path, once for each file."""

    def __init__(self) -> None:
        self.of = cache(self._owner)
        self.full = cache(self._full)
        self._folder = os.getcwd()
        self._prefixes = sorted({os.path.abspath(path) for path in [*_sites(), *sys.path]}, reverse=True)
        self._loaded = _loaded(self._prefixes)
        self._temporary = _real(tempfile.gettempdir())
        self._inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        self._python = tuple({_real(path) for path in _standard_library()})
        self._sites = tuple({_real(path) for path in _sites()})
        self._torch = _folder_of("torch")

    def _full(self, file: str) -> str:
        """The whole path: the profiler cuts the entry of `sys.path` off. What is not a path stays."""
        if file.startswith("<") or os.path.isabs(file):
            return file
        if file in self._loaded:
            return self._loaded[file]
        candidates = (os.path.join(folder, file) for folder in self._prefixes)
        return next(filter(os.path.isfile, candidates), os.path.join(self._folder, file))

    def _owner(self, file: str) -> str:
        """`user`, `torch`, `python`, `generated`, or the name of a library."""
        if _CELL.match(file):
            return USER
        if file.startswith("<"):
            return PYTHON if file.startswith("<frozen ") else GENERATED
        full = self._full(file)
        if _CODEGEN.match(full) or _INDUCTOR.match(full):
            return GENERATED
        real = _real(full)
        if self._torch and _inside(real, self._torch):
            return TORCH
        if package := _PACKAGES.search(full) or _PACKAGES.search(real):
            return package[1].removesuffix(".py")
        if _inside(real, _real(_OURS)):
            return "tracekit"
        if any(_inside(real, folder) for folder in self._sites):
            return os.path.basename(os.path.dirname(real))
        if any(_inside(real, folder) for folder in self._python):
            return PYTHON
        return USER if os.path.isfile(full) and not self._is_generated(real) else GENERATED

    def _is_generated(self, real: str) -> bool:
        """Inductor's cache; a template of PyG's, `package.module_….py` in the temporary folder."""
        if self._inductor and _inside(real, _real(self._inductor)):
            return True
        return _inside(real, self._temporary) and "." in os.path.basename(real).removesuffix(".py")


def _loaded(prefixes: list[str]) -> dict[str, str]:
    """The files of the modules that are loaded, by what is left of their paths."""
    files: dict[str, str] = {}
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        prefix = next((each for each in prefixes if _inside(file, each)), None) if isinstance(file, str) else None
        if isinstance(file, str) and prefix is not None:
            files.setdefault(file[len(prefix) :].lstrip(os.sep), file)
    return files


def _standard_library() -> list[str]:
    return [sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib")]


def _sites() -> list[str]:
    return [*site.getsitepackages(), site.getusersitepackages()]


def _folder_of(package: str) -> str | None:
    file = getattr(sys.modules.get(package), "__file__", None)
    return _real(os.path.dirname(file)) if file else None


def _real(path: str) -> str:
    return os.path.realpath(path)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
