"""Opens the inputs of a verb according to its options, and shows on a terminal how far reading has come."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tracekit.base.units import count, size

if TYPE_CHECKING:
    from tracekit.profile import Subject
    from tracekit.trace.reading.convert import Seen

_PATIENCE_S = 1.0  # before anything is shown


def refuse_to_disclose(options: argparse.Namespace) -> None:
    """Raise NotConfidentialError where `--confidential` is combined with what cannot hide anything."""
    from tracekit.errors.asking import NotConfidentialError
    from tracekit.study import is_study
    from tracekit.trace.reading.source import is_address

    shows = {
        "compile_log": "a compile log",
        "hta": "what HTA says",
        "workers": "what other processes read",
        "cluster": "what a cluster reads",
    }
    for name, what in shows.items():
        if getattr(options, name, None):
            raise NotConfidentialError(what, f"leave out --{name.replace('_', '-')}")
    inputs = options.inputs if "inputs" in options else [options.input] if "input" in options else []
    if any(not is_address(path) and is_study(path) for path in inputs):
        raise NotConfidentialError("a study", "give the run.json of one of its cells")


@contextmanager
def open_given(inputs: list[Path], options: argparse.Namespace) -> Iterator["Subject"]:
    """The runs and traces, opened according to `--mine`, `--compile-log` and, if the verb has them, `--steps`,
    `--only`, `--workers` and `--cluster`. While the context lasts, it is shown how far reading has come.

    Raises TracekitError.
    """
    with Progress() as progress:
        subject = _opened(inputs, options, progress)
        if axes := getattr(options, "only", None):  # cells of a study
            from tracekit.errors.capturing import NotAStudyError
            from tracekit.profile.assembled import study_subject
            from tracekit.study.settings import narrowed

            if subject.study is None:
                raise NotAStudyError(inputs[0])
            subject = study_subject(narrowed(subject.study, axes))
        if options.compile_log is not None:
            from tracekit.profile.assembled import with_compile_log

            subject = with_compile_log(subject, options.compile_log)
        yield subject


def _opened(inputs: list[Path], options: argparse.Namespace, progress: "Progress") -> "Subject":
    from tracekit.profile import open_subject

    infer_steps = getattr(options, "steps", None) != "annotated"
    ranks = not getattr(options, "no_ranks", False)

    def open_here(paths: list[Path]) -> "Subject":
        return open_subject(paths, progress, options.mine, infer_steps, ranks=ranks)

    workers, cluster = getattr(options, "workers", None), getattr(options, "cluster", None)
    if not ranks or not (workers or cluster):
        return open_here(inputs)
    from tracekit.ranks.readers import open_ranks, readers

    with readers(workers or 1, cluster) as rank_readers:
        return open_ranks(inputs, rank_readers, open_here, infer_steps=infer_steps, watch=progress.ranks)


class Progress:
    """A line on stderr while traces are read, if stderr is a terminal and it takes more than a second. It is called
    with what has been read.
    """

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty()
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._last = 0

    def __call__(self, reading: "Seen") -> None:
        """Show how far reading has come."""
        if reading.bytes_read < self._last:  # the next file
            self._began = time.monotonic()
        self._last = reading.bytes_read
        rate = count(round(reading.events / max(time.monotonic() - self._began, 1e-3)))
        text = f"{size(reading.bytes_read)} of {size(reading.size)}, {count(reading.events)} events, {rate} a second"
        self._show(reading.bytes_read, max(reading.size, 1), text)

    def ranks(self, ranks_read: int, total: int) -> None:
        """Show how many of the ranks have been read."""
        self._show(ranks_read, total, f"{count(ranks_read)} of {count(total)} ranks")

    def _show(self, completed: int, total: int, text: str) -> None:
        if not self._wanted or time.monotonic() - self._began < _PATIENCE_S:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("reading"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("")
            self._bar.start()
        self._bar.update(self._task, completed=completed, total=total, description=text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
