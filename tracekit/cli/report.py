"""`tracekit report`: where each step's wall time went."""

import argparse
import sys
from pathlib import Path

from tracekit import faces
from tracekit.cli.arguments import add_inputs, add_knowledge, rows
from tracekit.cli.opening import open_given
from tracekit.cli.output import refuse_to_overwrite, write_file
from tracekit.cli.streams import tell, write_out
from tracekit.errors import NeedsFolderError
from tracekit.sanitize import sanitize


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
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout; a folder for parquet"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw the report."""
        from tracekit.cli.progress import Progress
        from tracekit.report import report

        face = faces.find(options.format)
        if face.write is not None and options.output is None:
            raise NeedsFolderError(options.format)
        if face.draw is not None and options.output is not None:
            refuse_to_overwrite(options.output, options.inputs)
        with Progress() as progress:
            opened = report(open_given(options.inputs, options, progress), options.baseline)
        if face.write is not None:
            for path in face.write(opened, options.output, _how(options)):
                tell(f"Wrote {sanitize(str(path))}")
        if face.draw is not None:
            # All of it before any goes out: a failure leaves no half report.
            content = face.draw(opened, _how(options))
            write_out(content) if options.output is None else write_file(content, options.output)
        return 0


def _how(options: argparse.Namespace) -> faces.Options:
    stream = sys.stdout if options.output is None else None
    return faces.Options(rows=options.rows, full=options.full, stream=stream)
