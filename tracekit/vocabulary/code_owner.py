"""Who owns the code in a file: the user, torch, Python, tracekit, a generator, or a library? And how are Python frames
written: by the profiler, in a stack, and by Dynamo, which renames what it resumes?

Where the code runs, `CodeOwners` looks up files; for a trace from elsewhere, `owner_by_path` knows only their paths.
Both use the same patterns of paths.
"""

import os
import re
import sys
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

USER, TORCH, PYTHON, GENERATED, TRACEKIT = "user", "torch", "python", "generated", "tracekit"
# Inductor names its files by their content, in a folder of the same two characters, wherever its cache is.
INDUCTOR_FILE = r"(?:.*[/\\])?(?P<two>[a-z2-7]{2})[/\\]c(?P=two)[a-z2-7]{20,}\.py"
_GENERATED = re.compile(rf".*codegen\(.*\)|{INDUCTOR_FILE}", re.DOTALL)
_CELL = re.compile(r"<ipython-input-|(?:.*[/\\])?ipykernel_\d+[/\\]", re.DOTALL)
_INSTALLED = re.compile(r"(?:^|[/\\])(?:site|dist)-packages[/\\]([^/\\]+)")
_STANDARD = re.compile(r"(?:.*[/\\])?lib[/\\]python\d[\d.]*[/\\]", re.DOTALL)
_RECIPE = re.compile(r"(?:^|[/\\])tracekit[/\\]recipes[/\\]")  # installed with tracekit, but as good as the user's
_SEPARATOR = re.compile(r"[/\\]")
_LIBRARIES = ("torch", "torch_geometric")  # known without `site-packages`
# What starts scripts and notebooks, where its folder is not known.
_RUNNERS = {
    *("torchrun", "accelerate", "deepspeed", "lightning", "pytest", "ipython", "jupyter"),
    *("ipykernel_launcher.py", "colab_kernel_launcher.py"),
}
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PROFILED = re.compile(r"(.+)\((\d+)\): (.*)", re.DOTALL)
_STACKED = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.*)_at_\d+")


def library(owner: str) -> str:
    """The name of an owner that is a library; empty for any other."""
    return "" if owner in (USER, TORCH, PYTHON, GENERATED, TRACEKIT) else owner


class Guess(NamedTuple):
    """An owner, judged by the path only. If it is not certain, the file may be the user's."""

    owner: str
    is_certain: bool = True


@lru_cache(maxsize=1 << 14)
def owner_by_path(file: str, mine: tuple[str, ...] = ()) -> Guess:
    """The owner of a file on another machine. `mine` are packages, folders and files that are the user's."""
    parts = _SEPARATOR.split(file)
    if _CELL.match(file) or any(folder in parts or file.startswith(folder) for folder in mine):
        return Guess(USER)
    if (owner := _by_shape(file)) is not None:
        return Guess(owner)
    # A command that started the script: its frame is around all of it.
    is_runner = parts[-1] in _RUNNERS or (parts[-2:-1] in (["bin"], ["Scripts"]) and not parts[-1].endswith(".py"))
    if _STANDARD.match(file) or is_runner:
        return Guess(PYTHON)
    top = parts[0].removesuffix(".py")
    is_whole = top == "" or top.endswith(":")
    if _is_template(parts[-1]):
        package = parts[-1].partition(".")[0]
        return Guess(package, is_certain=package in _LIBRARIES or not is_whole)
    for name in _LIBRARIES:
        if name in (parts[:-1] if is_whole else (top,)):
            return Guess(name)
    if top == "tracekit":
        return Guess(TRACEKIT)
    if top in sys.stdlib_module_names:
        return Guess(PYTHON)
    return Guess(USER) if len(parts) == 1 else Guess(top or file, is_certain=False)


def may_be_the_users(file: str) -> bool:
    """Whether nothing in the path of a file shows another owner."""
    guess = owner_by_path(file)
    return guess.owner == USER or not guess.is_certain


class CodeOwners:
    """Decides the owners of files on the machine where the code runs, once for each file."""

    def __init__(self) -> None:
        import sysconfig
        import tempfile

        self.of = cache(self._owner)
        self.full = cache(self._full)
        self._folder = os.getcwd()
        self._prefixes = sorted({os.path.abspath(path) for path in [*_sites(), *sys.path]}, reverse=True)
        self._temporary = "/tmp"
        with suppress(FileNotFoundError):  # none can be written, which is no matter for who only reads
            self._temporary = tempfile.gettempdir()
        self._inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        self._python = tuple({os.path.realpath(sysconfig.get_paths()[key]) for key in ("stdlib", "platstdlib")})
        self._sites = tuple({os.path.realpath(path) for path in _sites()})
        torch_file = getattr(sys.modules.get("torch"), "__file__", None)
        self._torch: str | None = os.path.dirname(torch_file) if torch_file else None

    @cached_property
    def _loaded(self) -> dict[str, str]:
        """The files of the loaded modules, by their relative paths; in a fork, to look at each copies its memory."""
        return _loaded(self._prefixes)

    def relative(self, file: str) -> str:
        """`torch_geometric/utils/loop.py`: the path below the folder that it was imported from."""
        folders = [os.path.dirname(self._torch)] if self._torch else []
        folder = next((folder for folder in [*folders, *self._prefixes, self._temporary] if _inside(file, folder)), "")
        return file[len(folder) :].lstrip(os.sep) if folder else file

    def _full(self, file: str) -> str:
        """The full path, because the profiler cuts off the entry of `sys.path`. Anything that is not a path stays."""
        if file.startswith("<") or os.path.isabs(file):
            return file
        if file in self._loaded:
            return self._loaded[file]
        candidates = (os.path.join(folder, file) for folder in self._prefixes)
        return next(filter(os.path.isfile, candidates), os.path.join(self._folder, file))

    def _owner(self, file: str) -> str:
        """`user`, `torch`, `python`, `generated`, `tracekit`, or the name of a library."""
        if _CELL.match(file):
            return USER
        full = self._full(file)
        real = os.path.realpath(full)
        if (owner := _by_shape(full) or _by_shape(real)) is not None:
            return owner
        if self._torch and _inside(real, os.path.realpath(self._torch)):
            return TORCH
        if _inside(real, os.path.realpath(_OURS)):
            return TRACEKIT
        if any(_inside(real, folder) for folder in self._sites):
            return os.path.basename(os.path.dirname(real))
        if any(_inside(real, folder) for folder in self._python):
            return PYTHON
        # Generators make files in Inductor's cache and, from templates of PyG's, in the temporary folder.
        if not os.path.isfile(full) or (self._inductor and _inside(real, os.path.realpath(self._inductor))):
            return GENERATED
        is_temporary = _inside(real, os.path.realpath(self._temporary))
        return GENERATED if is_temporary and _is_template(os.path.basename(real)) else USER


def _by_shape(file: str) -> str | None:
    """The owner of a path that is not a file, was generated or was installed; None if the pattern does not show it."""
    if file.startswith("<"):
        return PYTHON if file.startswith("<frozen ") else GENERATED
    if _GENERATED.fullmatch(file):
        return GENERATED
    if _RECIPE.search(file):
        return USER
    installed = _INSTALLED.search(file)
    return installed[1].removesuffix(".py") if installed else None


def _is_template(name: str) -> bool:
    """Whether PyG generated a file of that name: `package.module_….py`."""
    return name.endswith(".py") and "." in name.removesuffix(".py").lstrip(".")


def _loaded(prefixes: list[str]) -> dict[str, str]:
    """The files of the loaded modules, by their relative paths."""
    files: dict[str, str] = {}
    for module in [*sys.modules.values()]:
        file = getattr(module, "__dict__", {}).get("__file__")  # asking the module may import it, or fail
        prefix = next((prefix for prefix in prefixes if _inside(file, prefix)), None) if isinstance(file, str) else None
        if isinstance(file, str) and prefix is not None:
            files.setdefault(file[len(prefix) :].lstrip(os.sep), file)
    return files


def _sites() -> list[str]:
    import site

    return [*site.getsitepackages(), site.getusersitepackages()]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class PythonFrame(NamedTuple):
    """A function and a line in it: in the profiler's notation that of its `def`, in a stack the running one."""

    file: str
    line: int
    function: str


@lru_cache(maxsize=1 << 14)
def profiled(name: str) -> PythonFrame | None:
    """Parse `model.py(12): forward`; None if it is not a Python function, such as a module's call."""
    shape = _PROFILED.fullmatch(name)
    return PythonFrame(shape[1], int(shape[2]), shape[3]) if shape else None


def stacked(text: str) -> list[PythonFrame]:
    """Parse the frames of a stack as Python prints it, `File "model.py", line 12, in forward`, innermost last."""
    return [PythonFrame(file, int(line), function) for file, line, function in _STACKED.findall(text)]


def plain_function(name: str) -> str:
    """`torch_dynamo_resume_in_f_at_12` is f."""
    resumed = _RESUMED.fullmatch(name)
    return resumed[1] if resumed else name
