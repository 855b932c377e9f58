"""The files of a report: one, one for each variant, or a folder of them. All files are written whole or not at all, and
never over something that cannot be recreated.
"""

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit.base.atomic import filling, reason, replacing
from tracekit.base.names import sanitize
from tracekit.errors.asking import NeedsFolderError, OutputError
from tracekit.faces import Face, Options
from tracekit.run import is_run
from tracekit.trace.reading.source import Source

if TYPE_CHECKING:
    from tracekit.report import Report

# No name in a report can look like this, because quotes are escaped in JSON.
_TRACES_BEGINNING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*[\[{].*?"(?:schemaVersion|traceEvents|displayTimeUnit|ph)"\s*:', re.DOTALL
)
_LOOKED_AT = 1 << 16  # bytes
_STRANGE = re.compile(r"[^\w.+=-]+")
_NAME = 80  # letters of a variant in the name of a file


class Overwriting(Struct, frozen=True):
    """What must not be overwritten: the inputs in any case, other traces and runs unless forced."""

    inputs: Collection[Path] = ()
    force: bool = False

    def refuse(self, path: Path) -> None:
        """Raise OutputError if a file must not be written there."""
        if os.path.isdir(path):
            raise OutputError(path, f"it is a folder: name a file in it, as in {path / 'report.txt'}")
        if not os.path.isdir(path.parent):
            raise OutputError(path, "its folder does not exist")
        if os.path.isfile(path):
            if any(os.path.exists(source) and os.path.samefile(source, path) for source in self.inputs):
                raise OutputError(path, "it is an input")
            if not self.force and holds_a_trace(path):
                raise OutputError(path, "a trace or a run is there, which only --force replaces")


def holds_a_trace(path: Path) -> bool:
    """Whether a file begins like a trace or a run, packed or not."""
    head = bytearray(_LOOKED_AT)
    with Source(path) as source:
        begun = bytes(head[: source.readinto(memoryview(head))])
    return is_run(begun) or _TRACES_BEGINNING.match(begun) is not None or begun.startswith(b"SQLite format 3\0")


def write_content(path: Path, content: str | bytes, overwriting: Overwriting) -> None:
    """Write the content to a file; if that fails, an earlier file stays. Raises OutputError."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_atomically(path, lambda part: part.write_bytes(data), overwriting)


def write_atomically(path: Path, make: Callable[[Path], object], overwriting: Overwriting) -> None:
    """Let `make` write a file; if that fails, an earlier one stays. Raises OutputError."""
    overwriting.refuse(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # /dev/null or a pipe, which cannot be replaced
            make(path)
        else:
            with replacing(Path(os.path.realpath(path))) as part:  # a link stays a link
                make(part)
    except OSError as error:
        raise OutputError(path, reason(error)) from None


def fill(folder: Path, make: Callable[[Path], object], overwriting: Overwriting) -> list[Path]:
    """Let `make` fill an empty folder, then move its files to the named folder, all or none. Raises OutputError."""
    try:
        with filling(folder) as part:
            make(part)
            written = [folder / file.relative_to(part) for file in sorted(part.rglob("*")) if file.is_file()]
            for path in written:
                if path.is_dir():
                    raise OutputError(path, "there is a folder of that name")
                if path.parent.is_dir():
                    overwriting.refuse(path)
    except OSError as error:
        raise OutputError(folder, reason(error)) from None
    return written


def refuse_early(face: Face, path: Path, overwriting: Overwriting) -> None:
    """Raise OutputError before anything is read, if it is already clear that the report cannot be written there."""
    if face.draw is not None or _is_file_of_a_variant(face, path):
        overwriting.refuse(path)


def _is_file_of_a_variant(face: Face, path: Path) -> bool:
    """Whether the path names a file, not a folder for one file per variant. Raises OutputError for a wrong suffix."""
    if face.write_variant is None or os.path.isdir(path):
        return False
    if path.suffix and not path.name.endswith(face.suffix):
        raise OutputError(path, f"the name of its file must end in {face.suffix}")
    return bool(path.suffix)


def write(face: Face, report: "Report", path: Path, options: Options, overwriting: Overwriting) -> list[Path]:
    """Write a report to a file, or to a folder if its format makes several; yields the files written.

    Raises OutputError and NeedsFolderError. All of them are replaced, or none.
    """
    if face.draw is not None:
        write_content(path, face.draw(report, options), overwriting)
        return [path]
    profiles, write_variant = report.profiles, face.write_variant
    if len(profiles) != 1 and _is_file_of_a_variant(face, path):
        raise NeedsFolderError(face.name, "a file for each variant")
    if write_variant is not None and _is_file_of_a_variant(face, path):
        write_atomically(path, lambda part: write_variant(report, profiles[0], part), overwriting)
        return [path]
    if write_variant is not None:

        def write_variants(folder: Path) -> None:
            used_names: set[str] = set()
            for profile in profiles:  # letters, digits and `._+=-`: a name that any system accepts
                plain_name = _STRANGE.sub("_", sanitize(profile.name))[:_NAME].strip(".") or "_"
                write_variant(report, profile, folder / f"{unused_name(plain_name, used_names)}{face.suffix}")

        return fill(path, write_variants, overwriting)
    assert face.fill is not None
    return fill(path, lambda folder: face.fill and face.fill(report, folder, options), overwriting)


def unused_name(name: str, used_names: set[str], kept_letters: int | None = None) -> str:
    """The name or, where it is used, so many of its letters and a number that makes it unique, even without regard to
    case; from now on, it is used."""
    unique, tries = name, 1
    while unique.lower() in used_names:
        tries += 1
        unique = f"{name[:kept_letters]}-{tries}"
    used_names.add(unique.lower())
    return unique
