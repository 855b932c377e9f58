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
