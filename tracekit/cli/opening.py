"""Opening what a verb was given, with what its options say of it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.profile import Subject
    from tracekit.trace.reading.convert import Watch


def open_given(inputs: list[Path], options: argparse.Namespace, watch: "Watch") -> "Subject":
    """The runs and traces, by `--mine`, `--compile-log` and, where the verb has it, `--steps`. Raises TracekitError."""
    from tracekit.profile import open_subject

    infer_steps = getattr(options, "steps", None) == "infer"
    ranks = not getattr(options, "no_ranks", False)
    subject = open_subject(inputs, watch, options.mine, infer_steps, ranks=ranks)
    if options.compile_log is None:
        return subject
    from tracekit.profile.compile_log import with_compile_log

    return with_compile_log(subject, options.compile_log)
