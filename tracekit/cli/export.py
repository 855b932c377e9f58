"""`tracekit export`: every table, for notebooks and databases."""

import argparse

from tracekit.cli.arguments import Verb, add_confidential, add_inputs, add_knowledge, add_readers, add_selection
from tracekit.cli.opening import open_given
from tracekit.cli.output import add_format, add_output, find_face, write_report

_FORMATS = ("parquet", "csv", "xlsx")


class ExportVerb(Verb):
    """Write every table as Parquet, for pandas, polars or DuckDB, or as CSV or a workbook."""

    name = "export"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_readers(parser)
        add_knowledge(parser)
        add_confidential(parser)
        add_selection(parser)
        add_format(parser, _FORMATS, "xlsx is one file; ")
        add_output(parser, "folder to write into; a file for xlsx", "DIR", required=True)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Write the tables."""
        from tracekit import faces
        from tracekit.report import report

        face = find_face(options, _FORMATS)
        with open_given(options.inputs, options) as subject:
            opened = report(subject)
        write_report(face, opened, faces.Options(), options)
        return 0
