"""`tracekit sql`: SQL queries over the tables of a run."""

import argparse
import sys

from tracekit.cli.arguments import Verb, add_inputs, add_knowledge
from tracekit.cli.opening import open_given
from tracekit.cli.output import STDOUT, add_format, add_output, check_format, deliver, format_of, overwriting

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
        add_format(parser, _FORMATS)
        add_output(parser, "write to this file instead of stdout (-)")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Run the query, and write its result."""
        from tracekit.faces.shared.one_table import drawn
        from tracekit.report import report
        from tracekit.sql import query

        check_format(options, _FORMATS)
        spared = overwriting(options, options.inputs)
        to_file = options.output not in (None, STDOUT)
        if to_file:
            spared.refuse(options.output)
        with open_given(options.inputs, options) as subject:
            opened = report(subject)
            answer = query(opened, options.query)
        deliver(drawn(answer, format_of(options, _FORMATS), None if to_file else sys.stdout), options, spared)
        return 0
