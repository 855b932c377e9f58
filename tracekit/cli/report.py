"""`tracekit report`: where each step's wall time went."""

import argparse
import os
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.arguments import add_inputs, rows
from tracekit.cli.output import refuse_to_overwrite, write_file
from tracekit.cli.streams import write_out

if TYPE_CHECKING:
    from tracekit.report import Report as Found

_PIPED_WIDTH = 160  # of a report that goes to no terminal


class Report:
    """Say where each step's wall time went, and what changed between variants."""

    name = "report"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        parser.add_argument(
            "--baseline", metavar="NAME", help="variant the others are set against (default: the first)"
        )
        parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
        parser.add_argument(
            "--rows", type=rows, default=5, metavar="N", help="rows of each table, or 'all' (default: 5)"
        )
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw the report."""
        from tracekit.draw.progress import Progress
        from tracekit.profile import open_subject
        from tracekit.report import report

        if options.output is not None:
            refuse_to_overwrite(options.output, options.inputs)
        with Progress() as progress:
            found = report(open_subject(options.inputs, progress), options.baseline)
        content = _drawn(found, options)  # all of it before any goes out: a failure leaves no half report
        if options.output is None:
            write_out(content)
        else:
            write_file(content, options.output)
        return 0


def _drawn(found: "Found", options: argparse.Namespace) -> str:
    """The report in the format that is asked for; for a terminal, with its colours and as wide as it is."""
    if options.format == "json":
        from tracekit.draw.json import render as render_json

        return render_json(found) + "\n"
    if options.format == "markdown":
        from tracekit.draw.markdown import render as render_markdown

        return render_markdown(found, options.rows)
    from rich.console import Console

    from tracekit.draw import text

    file = sys.stdout if options.output is None else StringIO()
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        asked = os.environ.get("COLUMNS", "")
        console.width = int(asked) if asked.isdecimal() and int(asked) else _PIPED_WIDTH
    with console.capture() as drawn:
        text.show(found, console, options.rows)
    return drawn.get()
