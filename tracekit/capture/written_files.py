"""What became of the files that passes wrote, and the sentences about it: one of each kind for all passes."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from tracekit.capture import journal
from tracekit.capture.job import Job, PassResult, Written
from tracekit.capture.undo import Undone, data
from tracekit.capture.view import View
from tracekit.run import Effective

_NAMED = 3  # files in a sentence


def in_view(files: View, job: Job) -> Written:
    """Keep the data that the program prepared, and let the view take the rest with it.

    A script's data is what it made before its first step and read back; a recipe's is every new file, because its
    contract is to write nothing else.
    """
    is_data: Callable[[str], bool] = lambda _: True  # noqa: E731
    if job.is_script:
        is_data = data([*journal.read(Path(job.journal, journal.JOURNAL))])
        Path(job.journal, journal.JOURNAL).unlink(missing_ok=True)
    kept_paths = [path for path in files.new() if is_data(path) and files.keep(path)]
    return Written(discarded=files.discarded(), kept=sorted(kept_paths) if job.is_script else [])


def without_view(why: str, files: Undone, changed: list[str]) -> Written:
    """What a journal undid. `changed` lists files whose content differs, whatever wrote them."""
    other_paths = [path for path in changed if path not in files.prepared_data and path not in files.failed]
    return Written(undone=files.undone, kept=files.prepared_data, failed=files.failed, changed=other_paths, no_view=why)


def with_files(effective: Effective, results: Iterable[PassResult]) -> Effective:
    """With a sentence for each kind of thing that happened to the files of these passes."""
    written = [result.written for result in results]
    notes, remarks = [*_notes(written)], [*_remarks(written)]
    return replace(effective, notes=[*effective.notes, *notes], remarks=[*effective.remarks, *remarks])


def _remarks(written: Sequence[Written]) -> Iterator[str]:
    if paths := _joined(pass_files.discarded for pass_files in written):
        yield f"what it wrote was discarded: {_listed(paths)} (--in-place keeps it)"
    if paths := _joined(pass_files.undone for pass_files in written):
        yield f"what it wrote was undone: {_listed(paths)} (--in-place keeps it)"
    if any(pass_files.undone or pass_files.failed or pass_files.changed for pass_files in written):
        why = next(filter(None, (pass_files.no_view for pass_files in written)), "")
        yield f"it wrote to your own files, because there was no copy-on-write view of them ({why})"
    if paths := _joined(pass_files.kept for pass_files in written):
        yield f"data that it prepared before its first step is left: {_listed(paths)}"


def _notes(written: Sequence[Written]) -> Iterator[str]:
    failed = {path: why for pass_files in written for path, why in pass_files.failed.items()}
    if failed:
        yield f"what it wrote could not be undone: {_listed([f'{path} ({why})' for path, why in failed.items()])}"
    if paths := _joined(pass_files.changed for pass_files in written):
        yield (
            f"files changed and were not put back: {_listed(paths)}. A library in C or another program wrote them, "
            "and later passes may find them changed"
        )


def _joined(lists: Iterable[list[str]]) -> list[str]:
    return [*dict.fromkeys(path for paths in lists for path in paths)]


def _listed(paths: list[str]) -> str:
    """A few of the files, as one would type them in the current folder."""
    current_folder = f"{Path.cwd()}{os.sep}"
    names = [path.removeprefix(current_folder) for path in paths]
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{rest}"
