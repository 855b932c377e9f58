"""Opens the inputs of a verb according to its options."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.cli.progress import Progress
    from tracekit.profile import Subject


@contextmanager
def open_given(inputs: list[Path], options: argparse.Namespace) -> Iterator["Subject"]:
    """The runs and traces, opened according to `--mine`, `--compile-log` and, if the verb has them, `--steps`,
    `--only`, `--workers` and `--cluster`. While the context lasts, it is shown how far reading has come.

    Raises TracekitError.
    """
    from tracekit.cli.progress import Progress

    with Progress() as progress:
        subject = _opened(inputs, options, progress)
        if axes := getattr(options, "only", None):
            subject = _narrowed(subject, axes, inputs[0])
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
    from tracekit.ranks.opening_many import open_ranks
    from tracekit.ranks.readers import readers

    with readers(workers or 1, cluster) as rank_readers:
        return open_ranks(inputs, rank_readers, open_here, infer_steps=infer_steps, watch=progress.ranks)


def _narrowed(subject: "Subject", axes: dict[str, list[str]], path: Path) -> "Subject":
    """The selected cells of a study."""
    from tracekit.errors.capturing import NotAStudyError
    from tracekit.profile.assembled import study_subject
    from tracekit.study.narrowed import narrowed

    if subject.study is None:
        raise NotAStudyError(path)
    return study_subject(narrowed(subject.study, axes))
