"""Files and functions: those of public packages stay, from the package on; all others get stand-ins of the same shape,
so that the owner of the code (`tracekit.vocabulary.code_owner`) is told from a stand-in as from the path.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Collection
from functools import cache
from pathlib import Path

from tracekit.confidential import public
from tracekit.confidential.stand_ins import StandIns
from tracekit.vocabulary.code_owner import INDUCTOR_FILE, USER, owner_by_path, plain_function
from tracekit.vocabulary.graph_building import graph_builder

_SEPARATORS = re.compile(r"[/\\]+")
_INDUCTOR = re.compile(INDUCTOR_FILE, re.DOTALL)
_CELL = re.compile(r"(?:.*[/\\])?ipykernel_\d+[/\\].*|<ipython-input-.*", re.DOTALL)
_STANDARD = re.compile(r"lib/(python\d[\d.]*)/(?!(?:site|dist)-packages/)(.+)")
_INSTALLED = re.compile(r"(?:^|.*/)(?:site|dist)-packages/(.+)", re.DOTALL)
_SUFFIXES = (".py", ".pyx", ".cpp", ".cu", ".cc", ".c", ".h", ".ipynb", ".json", ".gz", ".pt", ".sh", ".toml", ".yaml")
_PSEUDO = {"<string>", "<stdin>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"}
_CODEGEN = re.compile(r"(.*codegen)\(.*\)", re.DOTALL)
_RESUMED = re.compile(r"(torch_dynamo_resume_in_).*(_at_\d+)", re.DOTALL)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Places:
    """Stand-ins of paths and functions."""

    def __init__(self, stand_ins: StandIns, mine: Collection[str] = ()) -> None:
        """`mine` are packages, folders and files that are the user's, wherever they are."""
        self._stand_ins, self._mine = stand_ins, tuple(mine)
        self._spellings: dict[str, list[list[str]]] = {}  # by name: the longest known path of each file of that name
        self._known: dict[str, str] = {}

    def path(self, path: str) -> str:
        """What stands for a path: itself, from a public package on, or `file-1.py`."""
        if path not in self._known:
            self._known[path] = self._path(path)
        return self._known[path]

    def _is_public(self, file: str, function: str) -> bool:
        """Whether it is a function of a public package. Code of `<string>` and `<stdin>` may be anyone's, and so may a
        file that is called like one of Python's, such as `code.py`."""
        known = None if self._is_mine(file) else _public(_SEPARATORS.sub("/", file))
        if known is None:
            return file.startswith("<frozen ") and _is_pseudo(file)
        return function in _defined(known) if _is_standard(known) else True

    def _is_mine(self, path: str) -> bool:
        return bool(self._mine) and owner_by_path(path, self._mine).owner == USER

    def function(self, file: str, function: str) -> str:
        """What stands for a function of that file."""
        if function in public.FUNCTIONS or self._is_public(file, function):
            return function
        if resumed := _RESUMED.fullmatch(function):
            return f"{resumed[1]}{self.function(file, plain_function(function))}{resumed[2]}"
        if graph_builder(f"{file}(1): {function}"):
            return self._builder(file, function)
        if "collat" in function.lower():  # by which batches are known to be collated
            return f"collate_{self._stand_ins.identifier('function', function)}"
        return self._stand_ins.of("function", function)

    def _builder(self, file: str, function: str) -> str:
        """What stands for a function that builds a graph, which is told from its name, and at times from its file."""
        is_told = graph_builder(f"{self.path(file)}(1): {function}") is not None
        if is_told and public.names_a_builder(function):
            return function
        kind = "neighbor_sampler" if re.search("sampl|random_walk|subgraph", function) else "neighbor_list"
        return f"{kind}_{self._stand_ins.identifier('function', function)}"

    def _path(self, path: str) -> str:
        if _is_pseudo(path):
            return path
        if path.startswith("<"):
            return f"<{'frozen ' * path.startswith('<frozen ')}{self._stand_ins.of('file', path)}>"
        if _INDUCTOR.fullmatch(path):  # which is recognised by its folder and its many letters
            number, letters = self._stand_ins.number("file", path), ""
            for _ in range(24):
                number, digit = divmod(number, len(_LETTERS))
                letters = _LETTERS[digit] + letters
            return f"aa/caa{letters}.py"
        if generated := _CODEGEN.fullmatch(path):
            return f"{self._stand_ins.of('file', generated[1])}.codegen()"
        plain = _SEPARATORS.sub("/", path)
        if self._is_mine(path):
            return self._file(plain)
        if (known := _public(plain)) is not None:
            return known
        *folders, name = plain.split("/")
        file = self._file(plain)
        if _CELL.fullmatch(path):
            return f"ipykernel_1/{file}"
        if standard := _STANDARD.search(plain):
            return f"lib/{standard[1]}/{file}"
        if installed := _INSTALLED.fullmatch(plain):
            package = installed[1].partition("/")[0]
            return f"site-packages/{self._package(package.removesuffix('.py'))}/{file}"
        stem = name.removesuffix(".py")
        if name.endswith(".py") and "." in stem.lstrip("."):  # as PyG generates files
            file = f"{self._package(stem.partition('.')[0])}.{file}"
        if (folders and folders[0] in ("", ".", "~")) or re.fullmatch(r"[A-Za-z]:", folders[0] if folders else ""):
            library = next((part for part in public.LIBRARIES if part in folders), None)
            return f"/{library}/{file}" if library else f"/{file}"
        return f"{self._package(folders[0])}/{file}" if folders else file

    def _package(self, name: str) -> str:
        return name if name in public.PACKAGES else self._stand_ins.of("package", name)

    def _file(self, path: str) -> str:
        """`file-1.py`: a path that ends as another one does, as in `train.py` and `/home/me/train.py`, is its file."""
        parts = [part for part in path.split("/") if part not in ("", ".", "~")]
        spellings = self._spellings.setdefault(parts[-1] if parts else "", [])
        for index, longest in enumerate(spellings):
            common = min(len(longest), len(parts))
            if longest[-common:] == parts[-common:]:
                spellings[index] = max(longest, parts, key=len)
                break
        else:
            index = len(spellings)
            spellings.append(parts)
        number = self._stand_ins.number("file", f"{parts[-1] if parts else ''}/{index}")
        suffix = next((suffix for suffix in _SUFFIXES if path.endswith(suffix)), "")
        return f"file-{number}{suffix}"


def _public(path: str) -> str | None:
    """The path from a public package on; None where it is of none, or may lead out of it."""
    if ".." in path.split("/"):
        return None
    if standard := _STANDARD.search(path):
        return f"lib/{standard[1]}/{standard[2]}" if _is_standard(standard[2]) else None
    installed = _INSTALLED.fullmatch(path)
    inner = installed[1] if installed else path
    parts = inner.split("/")
    top = parts[0].removesuffix(".py")
    if top in public.LIBRARIES and len(parts) > 1:
        folders = public.names("folders")
        is_known = f"{top}/{parts[1]}" in folders
        return (f"site-packages/{inner}" if installed else inner) if is_known else None
    if installed:
        return f"site-packages/{inner}" if top in public.PACKAGES else None
    if parts[0] in ("", ".", "~") or parts[0].endswith(":"):  # anyone's folder may be called torch
        return None
    if top in public.APART and len(parts) > 1:
        return inner
    return inner if _is_standard(inner) else None


def _is_pseudo(path: str) -> bool:
    """Whether it is no file, but a part of Python: `<frozen os>`."""
    module = path.removeprefix("<frozen ").removesuffix(">") if path.startswith("<frozen ") else ""
    return path in _PSEUDO or module in sys.stdlib_module_names


@cache
def _defined(path: str) -> frozenset[str]:
    """The functions and classes that a file of Python's library defines."""
    text = Path(sysconfig.get_paths()["stdlib"], path).read_text(encoding="utf-8", errors="replace")
    return frozenset(re.findall(r"\b(?:def|class) (\w+)", text))


def _is_standard(path: str) -> bool:
    """Whether Python's library has a file of that path."""
    top = path.partition("/")[0].removesuffix(".py")
    return top in sys.stdlib_module_names and os.path.isfile(os.path.join(sysconfig.get_paths()["stdlib"], path))
