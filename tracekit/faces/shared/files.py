"""Writes the files of a report: whole or not at all, and never over something that cannot be recreated."""

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from tracekit.atomic import filling, reason, replacing
from tracekit.errors import NeedsFolderError, OutputError
from tracekit.faces import Face, Options
from tracekit.report import Report
from tracekit.run import is_run
from tracekit.sanitize import sanitize
from tracekit.trace.reading.source import Source

# No name in a report can look like this, because quotes are escaped in JSON.
_TRACES_BEGINNING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*[\[{].*?"(?:schemaVersion|traceEvents|displayTimeUnit|ph)"\s*:', re.DOTALL
)
_LOOKED_AT = 1 << 16  # bytes
_STRANGE = re.compile(r"[^\w.+=-]+")
_NAME = 80  # letters of a variant in the name of a file


@dataclass(frozen=True)
class Overwriting:
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
            if any(os.path.exists(each) and os.path.samefile(each, path) for each in self.inputs):
                raise OutputError(path, "the report is made from it")
            if not self.force and holds_a_trace(path):
                raise OutputError(path, "a trace or a run is there, which only --force replaces")


def holds_a_trace(path: Path) -> bool:
    """Whether a file begins like a trace or a run, packed or not."""
    head = bytearray(_LOOKED_AT)
    with Source(path) as source:
        begun = bytes(head[: source.readinto(memoryview(head))])
    return is_run(begun) or _TRACES_BEGINNING.match(begun) is not None


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


def write(face: Face, report: Report, path: Path, options: Options, overwriting: Overwriting) -> list[Path]:
    """Write a report to a file, or to a folder if its format makes several; yields the files written.

    Raises OutputError and NeedsFolderError. All of them are replaced, or none.
    """
    if face.draw is not None:
        put(face.draw(report, options), path, overwriting)
        return [path]
    profiles, write_variant = report.profiles, face.write_variant
    if len(profiles) != 1 and _is_file_of_a_variant(face, path):
        raise NeedsFolderError(face.name, "a file for each variant")
    if write_variant is not None and _is_file_of_a_variant(face, path):
        _put_atomically(path, lambda part: write_variant(report, profiles[0], part), overwriting)
        return [path]
    if write_variant is not None:
        names = file_names([profile.name for profile in profiles])

        def each_variant(folder: Path) -> None:
            for name, profile in zip(names, profiles, strict=True):
                write_variant(report, profile, folder / f"{name}{face.suffix}")

        return fill(path, each_variant, overwriting)
    assert face.fill is not None
    return fill(path, lambda folder: face.fill and face.fill(report, folder, options), overwriting)


def put(content: str | bytes, path: Path, overwriting: Overwriting | None = None) -> None:
    """Write the content to a file; if that fails, an earlier file stays. Raises OutputError."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    _put_atomically(path, lambda part: part.write_bytes(data), overwriting or Overwriting())


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


def _put_atomically(path: Path, make: Callable[[Path], object], overwriting: Overwriting) -> None:
    overwriting.refuse(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # /dev/null or a pipe, which cannot be replaced
            make(path)
        else:
            with replacing(Path(os.path.realpath(path))) as part:  # a link stays a link
                make(part)
    except OSError as error:
        raise OutputError(path, reason(error)) from None


def file_names(names: list[str]) -> list[str]:
    """A file name for each that any system accepts: letters, digits and `._+=-`, unique even without regard to case."""
    safe: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = _STRANGE.sub("_", sanitize(name))[:_NAME].strip(".") or "_"
        unique, tries = plain, 1
        while unique.lower() in taken:
            tries += 1
            unique = f"{plain}-{tries}"
        taken.add(unique.lower())
        safe.append(unique)
    return safe
