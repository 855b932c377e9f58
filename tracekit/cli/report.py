"""`tracekit report`: where each step's wall time went."""

import argparse
import sys

from tracekit import faces
from tracekit.cli.arguments import add_inputs, add_knowledge, rows
from tracekit.cli.opening import open_given
from tracekit.cli.output import STDOUT, add_output, check_output, write_report


class ReportVerb:
    """Say where each step's wall time went, and what changed between variants."""

    name = "report"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_knowledge(parser)
        parser.add_argument(
            "--baseline", metavar="NAME", help="variant the others are set against (default: the first of each run)"
        )
        parser.add_argument("--format", choices=faces.names(), default=faces.FIRST)
        parser.add_argument(
            "--rows",
            type=rows,
            metavar="N",
            help="rows of each table, or 'all' (default: few, where they are worth it)",
        )
        parser.add_argument("--full", action="store_true", help="everything: all sections, all rows, all conditions")
        add_output(parser, "write there instead of to stdout (-); a folder for csv and parquet")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw the report."""
        from tracekit.cli.progress import Progress
        from tracekit.report import report

        face = faces.find(options.format)
        check_output(face, options, options.inputs)
        with Progress() as progress:
            opened = report(open_given(options.inputs, options, progress), options.baseline)
        write_report(face, opened, _how(options), options)
        return 0


def _how(options: argparse.Namespace) -> faces.Options:
    stream = sys.stdout if options.output in (None, STDOUT) else None
    return faces.Options(rows=options.rows, full=options.full, stream=stream)
