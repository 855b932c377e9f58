"""Which code made what the cache holds? A module's version is the content of all files that it imports."""

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parents[3]  # the folder of the package `tracekit`
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>tracekit[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<modules>tracekit[\w. ,\t]*))",
    re.MULTILINE,
)


class _Module(NamedTuple):
    file: Path
    digest: bytes  # of its content
    imports: tuple[str, ...]  # names that may be modules of tracekit


@cache
def code_version(*modules: str) -> str:
    """A name for the code of these modules of tracekit and all that they import; any change changes the name."""
    digest = hashlib.sha256()
    for name, module in sorted(_reached(modules, _ROOT).items()):
        digest.update(f"{name}\n".encode() + module.digest)
    return digest.hexdigest()[:16]


def sources(*modules: str, root: Path = _ROOT) -> dict[str, Path]:
    """The modules of tracekit that these import, directly or not, themselves included; and the file of each.

    A package is included with each of its modules, because importing a module runs it. The outermost package is not: it
    imports nothing before it is used.
    """
    return {name: module.file for name, module in _reached(modules, root).items()}


def _reached(modules: tuple[str, ...], root: Path) -> dict[str, _Module]:
    reached: dict[str, _Module] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in reached or "." not in name or (module := _read(root, name)) is None:
            continue
        reached[name] = module
        waiting += [name.rpartition(".")[0], *module.imports]
    return reached


@cache
def _read(root: Path, name: str) -> _Module | None:
    """Read each file once: a report uses the versions of a dozen modules, which share most of what they import."""
    path = os.path.join(root, *name.split("."))
    candidates = (f"{path}.py", os.path.join(path, "__init__.py"))
    file = next((file for file in candidates if os.path.isfile(file)), None)
    if file is None:
        return None
    content = Path(file).read_bytes()
    return _Module(Path(file), hashlib.sha256(content).digest(), tuple(_imported(content.decode())))


def _imported(text: str) -> list[str]:
    """Every name in the import statements of a text that may be a module, wherever they are in it."""
    names: list[str] = []
    for match in _IMPORT.finditer(text):
        module = match["module"]
        names += re.findall(r"tracekit[\w.]*", match["modules"] or "")
        names += [module, *(f"{module}.{name}" for name in re.findall(r"\w+", match["names"]))] if module else []
    return names
