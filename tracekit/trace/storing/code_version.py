"""Which code made what the cache holds? A module's version is the content of all the files that it imports."""

import hashlib
import re
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]  # the folder of the package `tracekit`
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>tracekit[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<modules>tracekit[\w. ,\t]*))",
    re.MULTILINE,
)


@cache
def code_version(*modules: str) -> str:
    """A name for the code of these modules of tracekit and all that they import: it is another for any change."""
    digest = hashlib.sha256()
    for name, file in sorted(sources(*modules).items()):
        content = file.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def sources(*modules: str, root: Path = _ROOT) -> dict[str, Path]:
    """The modules of tracekit that these import, directly or not, themselves included; and the file of each.

    A package counts with each of its modules, for importing a module runs it. The outermost one does not: it imports
    nothing before something is asked of it.
    """
    files: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in files or "." not in name or (file := _file(root, name)) is None:
            continue
        files[name] = file
        waiting += [name.rpartition(".")[0], *_imported(file.read_text())]
    return files


def _file(root: Path, name: str) -> Path | None:
    path = root.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _imported(text: str) -> list[str]:
    """Everything that could be a module in the import statements of a text, wherever in it they stand."""
    names: list[str] = []
    for match in _IMPORT.finditer(text):
        module = match["module"]
        names += re.findall(r"tracekit[\w.]*", match["modules"] or "")
        names += [module, *(f"{module}.{name}" for name in re.findall(r"\w+", match["names"]))] if module else []
    return names
