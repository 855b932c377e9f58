"""`tracekit export`: every table, for notebooks and databases."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import add_inputs, add_knowledge
from tracekit.cli.opening import open_given
from tracekit.cli.streams import tell
from tracekit.sanitize import sanitize


class ExportVerb:
    """Write every table as Parquet, for pandas, polars or DuckDB."""

    name = "export"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_knowledge(parser)
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write into")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Write the tables."""
        from tracekit.cli.progress import Progress
        from tracekit.faces import Options, parquet
        from tracekit.report import report

        with Progress() as progress:
            opened = report(open_given(options.inputs, options, progress))
        for path in parquet.export(opened, options.output, Options()):
            tell(f"Wrote {sanitize(str(path))}")
        return 0
