"""The files of a report: one, one for each variant, or a folder of them."""

import os
import re
from pathlib import Path

from tracekit.base.names import sanitize
from tracekit.errors.asking import NeedsFolderError, OutputError
from tracekit.faces import Face, Options
from tracekit.faces.shared.output_files import Overwriting, fill, write_atomically, write_content
from tracekit.report import Report

_STRANGE = re.compile(r"[^\w.+=-]+")
_NAME = 80  # letters of a variant in the name of a file


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
        write_content(path, face.draw(report, options), overwriting)
        return [path]
    profiles, write_variant = report.profiles, face.write_variant
    if len(profiles) != 1 and _is_file_of_a_variant(face, path):
        raise NeedsFolderError(face.name, "a file for each variant")
    if write_variant is not None and _is_file_of_a_variant(face, path):
        write_atomically(path, lambda part: write_variant(report, profiles[0], part), overwriting)
        return [path]
    if write_variant is not None:
        names = file_names([profile.name for profile in profiles])

        def each_variant(folder: Path) -> None:
            for name, profile in zip(names, profiles, strict=True):
                write_variant(report, profile, folder / f"{name}{face.suffix}")

        return fill(path, each_variant, overwriting)
    assert face.fill is not None
    return fill(path, lambda folder: face.fill and face.fill(report, folder, options), overwriting)


def file_names(names: list[str]) -> list[str]:
    """A file name for each that any system accepts: letters, digits and `._+=-`, unique even without regard to case."""
    safe: list[str] = []
    used_names: set[str] = set()
    for name in names:
        plain = _STRANGE.sub("_", sanitize(name))[:_NAME].strip(".") or "_"
        unique, tries = plain, 1
        while unique.lower() in used_names:
            tries += 1
            unique = f"{plain}-{tries}"
        used_names.add(unique.lower())
        safe.append(unique)
    return safe
