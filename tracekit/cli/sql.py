"""`tracekit sql`: SQL queries over the tables of a run."""

import argparse
import sys

from tracekit.cli.arguments import Verb, add_inputs, add_knowledge
from tracekit.cli.opening import open_given
from tracekit.cli.output import (
    STDOUT,
    add_format,
    add_output,
    check_format,
    format_of,
    overwriting,
    send,
    tell_written,
)

_FORMATS = ("text", "csv", "json", "parquet")


class SqlVerb(Verb):
    """Query the tables of a run or a trace in SQL, with DuckDB: every table that `export` writes is a view."""

    name = "sql"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        parser.add_argument(
            "query", metavar="QUERY", help="for example: select variant, wall_ns / 1e6 as ms from variants"
        )
        add_knowledge(parser)
        add_format(parser, _FORMATS, _FORMATS[0])
        add_output(parser, "write to this file instead of stdout (-)")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Run the query, and write its result."""
        from tracekit.cli.progress import Progress
        from tracekit.faces.shared.one_table import drawn
        from tracekit.faces.shared.output_files import write_content
        from tracekit.report import report
        from tracekit.sql import query

        check_format(options, _FORMATS)
        spared = overwriting(options, options.inputs)
        to_file = options.output not in (None, STDOUT)
        if to_file:
            spared.refuse(options.output)
        with Progress() as progress:
            opened = report(open_given(options.inputs, options, progress))
            answer = query(opened, options.query)
        content = drawn(answer, format_of(options, _FORMATS, _FORMATS[0]), None if to_file else sys.stdout)
        if to_file:
            write_content(options.output, content, spared)
            tell_written(options.output)
        else:
            send(content)
        return 0
