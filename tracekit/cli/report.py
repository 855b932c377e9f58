"""`tracekit report`: where each step's wall time went."""

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext

from tracekit import faces
from tracekit.cli.arguments import (
    NOT_CHECKED,
    Verb,
    add_baseline,
    add_choice,
    add_confidential,
    add_inputs,
    add_knowledge,
    add_readers,
    add_selection,
    choice_given,
    rows,
)
from tracekit.cli.opening import open_given
from tracekit.cli.output import STDOUT, add_format, add_output, find_face, write_report
from tracekit.errors.asking import NeedsFormatError


class ReportVerb(Verb):
    """Report where each step's wall time went, and what changed between variants."""

    name = "report"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_readers(parser)
        add_knowledge(parser)
        add_confidential(parser)
        add_baseline(parser)
        add_selection(parser)
        add_format(parser, faces.names())
        parser.add_argument(
            "--rows",
            type=rows,
            metavar="N",
            help="rows to show of each table, or 'all' (default: a few, in the sections that matter most)",
        )
        parser.add_argument(
            "--full",
            action="store_true",
            help="show all sections, rows and conditions (but only the first cells of a large study)",
        )
        add_choice(parser)
        parser.add_argument(
            "--step",
            type=int,
            metavar="N",
            help="with --format speedscope: only what happens during ProfilerStep#N (default: the whole recording)",
        )
        parser.add_argument(
            "--hta", action="store_true", help="add sections by HTA: critical path, idle time, overlap, queue length"
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="exit with 3 if a trace breaks a law, so that figures of it must not be believed",
        )
        add_output(parser, "write to this file instead of stdout (-); a folder for csv and parquet")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw the report."""
        from tracekit.findings.choice import ALL
        from tracekit.report import report

        face = find_face(options, faces.names())
        if options.step is not None and face.name != "speedscope":
            raise NeedsFormatError("--step", ["speedscope"])
        choice = choice_given(options) or ALL
        with _requested_sections(options):
            with open_given(options.inputs, options) as subject:
                opened = report(subject, options.baseline, choice)
            stream = sys.stdout if options.output in (None, STDOUT) else None
            how = faces.Options(rows=options.rows, full=options.full, stream=stream, step=options.step)
            write_report(face, opened, how, options)
        doubtful = any(breach.is_grave for profile in opened.profiles for breach in profile.health)
        return NOT_CHECKED if options.strict and doubtful else 0


def _requested_sections(options: argparse.Namespace) -> AbstractContextManager[None]:
    """A context in which a report has the sections that an option requests. Raises NeedsPackageError."""
    if not options.hta:
        return nullcontext()
    from tracekit.cli.start_up import admit_pandas
    from tracekit.hta import needed

    admit_pandas()
    needed()
    from tracekit.hta.sections import asked_for

    return asked_for()
