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
_NAME, _MODULE = re.compile(r"\w+"), re.compile(r"tracekit[\w.]*")
_IMPORTS_ALL = re.compile(r"iter_modules\((\w+)\.__path__\)")  # of a package: its modules register what they define


class _Module(NamedTuple):
    file: Path
    digest: bytes  # of its content
    imports: tuple[str, ...]  # modules of tracekit, and the package that it is in


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
        if name not in reached and (module := _read(root, name)) is not None:
            reached[name] = module
            waiting += module.imports
    return reached


@cache
def _read(root: Path, name: str) -> _Module | None:
    """Read each file once: a report uses the versions of a dozen modules, which share most of what they import."""
    files = _files(root)
    if name not in files:
        return None
    with open(files[name], "rb") as file:
        content = file.read()
    text = content.decode("utf-8", "ignore")  # a module that was compiled imports none of ours
    imports = {name.rpartition(".")[0], *_imported(text)}
    if imported_whole := _IMPORTS_ALL.findall(text):
        packages = [each for each in imports if each.rpartition(".")[2] in imported_whole]
        imports |= {each for each in files if each.rpartition(".")[0] in packages}
    return _Module(Path(files[name]), hashlib.sha256(content).digest(), tuple(imports & files.keys()))


@cache
def _files(root: Path) -> dict[str, str]:
    """All modules below the outermost package and their files. Looking for each name by itself would take longer."""
    files = {}
    for folder, _, names in os.walk(root / "tracekit"):
        package = os.path.relpath(folder, root).replace(os.sep, ".")
        for name in names:
            if name.endswith((".py", ".so", ".pyd")):
                module = name.partition(".")[0]
                files[f"{package}.{module}".removesuffix(".__init__")] = os.path.join(folder, name)
    files.pop("tracekit", None)
    return files


def _imported(text: str) -> list[str]:
    """Every name in the import statements of a text that may be a module, wherever they are in it."""
    names: list[str] = []
    for match in _IMPORT.finditer(text):
        module = match["module"]
        if module:
            names += [module, *(f"{module}.{name}" for name in _NAME.findall(match["names"]))]
        else:
            names += _MODULE.findall(match["modules"])
    return names
