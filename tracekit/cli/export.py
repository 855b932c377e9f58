"""`tracekit export`: every table, for notebooks and databases."""

import argparse

from tracekit.cli.arguments import add_inputs, add_knowledge
from tracekit.cli.opening import open_given
from tracekit.cli.output import add_output, write_report


class ExportVerb:
    """Write every table as Parquet, for pandas, polars or DuckDB."""

    name = "export"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_knowledge(parser)
        add_output(parser, "folder to write into", "DIR", required=True)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Write the tables."""
        from tracekit import faces
        from tracekit.cli.progress import Progress
        from tracekit.report import report

        with Progress() as progress:
            opened = report(open_given(options.inputs, options, progress))
        write_report(faces.find("parquet"), opened, faces.Options(), options)
        return 0
