"""The versions by which the cache knows what it holds: of the code that made it, which are all files that a module
imports, and of a trace, which is the digest of its content.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parents[3]  # the folder of the package `tracekit`
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>tracekit[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<modules>tracekit[\w. ,\t]*))",
    re.MULTILINE,
)
_NAME, _MODULE = re.compile(r"\w+"), re.compile(r"tracekit[\w.]*")
_IMPORTS_ALL = re.compile(r"iter_modules\((\w+)\.__path__\)")  # of a package: its modules register what they define
_BLOCK_BYTES = 16 << 20  # large, because after each block a thread waits until the interpreter is free again
_Status = tuple[int, int, int, int]
_begun: dict[Path, tuple[_Status, "Future[str]"]] = {}


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
    imports = {name.rpartition(".")[0]}
    for match in _IMPORT.finditer(text):  # every name that may be a module, wherever the statement is
        if module := match["module"]:
            imports |= {module, *(f"{module}.{imported}" for imported in _NAME.findall(match["names"]))}
        else:
            imports.update(_MODULE.findall(match["modules"]))
    if imported_whole := _IMPORTS_ALL.findall(text):
        packages = [module_name for module_name in imports if module_name.rpartition(".")[2] in imported_whole]
        imports |= {module_name for module_name in files if module_name.rpartition(".")[0] in packages}
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


def digest_of(path: Path) -> str:
    """128 bits of its SHA-256, in hexadecimal. Raises OSError or ValueError if the file cannot be read."""
    status, digest = _begun.pop(path, (None, None))
    if digest is not None and status == _status(path):
        return digest.result()
    return _digest(path)


def begin(paths: Iterable[Path]) -> None:
    """Work out in a thread what `digest_of` will be asked for. A file that changes before that is read again."""
    ahead: dict[Path, Future[str]] = {}
    for path in paths:
        with suppress(OSError, ValueError):  # raised again when it is asked for
            if path.is_file():
                ahead[path] = Future()
                _begun[path] = _status(path), ahead[path]

    def work() -> None:
        for path, digest in ahead.items():
            try:
                digest.set_result(_digest(path))
            except Exception as error:
                digest.set_exception(error)

    Thread(target=work, daemon=True, name="tracekit-digest").start()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        block = memoryview(bytearray(min(os.fstat(file.fileno()).st_size, _BLOCK_BYTES)))
        while count := file.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()[:32]


def _status(path: Path) -> _Status:
    """What changes with the content: a file that was written again at once may have the same size and time."""
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
