"""Sentences about the files that a pass wrote: undone, left, or changed by something unknown."""

import os
from pathlib import Path

from msgspec.structs import replace

from tracekit.capture.job import PassResult
from tracekit.capture.undo import Undone

_NAMED = 3  # files in a sentence


def with_files(result: PassResult, files: Undone, changed: list[str]) -> PassResult:
    """The result, with a sentence for each kind of change. `changed` lists files whose content differs."""
    remarks, notes = [*result.effective.remarks], [*result.effective.notes]
    if files.undone:
        remarks.append(f"what it wrote was undone: {_some(files.undone)} (--in-place leaves it)")
    if files.left:
        remarks.append(f"data that it prepared before its first step is left: {_some(files.left)}")
    if files.failed:
        failed = [f"{path} ({why})" for path, why in files.failed.items()]
        notes.append(f"what it wrote could not be undone: {_some(failed)}")
    if others := [path for path in changed if path not in files.left and path not in files.failed]:
        notes.append(
            f"files changed and were not put back: {_some(others)}. A library in C or another program wrote them, "
            "and later passes may find them changed"
        )
    return replace(result, effective=replace(result.effective, remarks=remarks, notes=notes))


def _some(paths: list[str]) -> str:
    """A few of the files, as one would type them in the current folder."""
    here = f"{Path.cwd()}{os.sep}"
    named = [path.removeprefix(here) for path in paths]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"{', '.join(named[:_NAMED])}{more}"
