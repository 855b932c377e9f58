"""`tracekit hta`: the analyses of HTA on a trace."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.arguments import Verb, add_inputs, add_knowledge, rows
from tracekit.cli.opening import open_given
from tracekit.cli.output import add_json, add_output, overwriting, printed, tell_written, write_out
from tracekit.errors.asking import UnknownVariantError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracekit.profile import Profile

_ROWS = 20
_NAMES = (  # of tracekit.hta.results, which imports HTA: a test compares them
    *("temporal-breakdown", "idle-time-breakdown", "comm-comp-overlap", "gpu-kernel-breakdown"),
    *("gpu-user-annotation-breakdown", "cuda-kernel-launch-stats", "aten-op-kernels-and-delay", "queue-length"),
    *("memory-bandwidth", "critical-path", "cupti-counters", "trace-diff", "frequent-patterns", "potential-stragglers"),
)


class HtaVerb(Verb):
    """Ask HTA (Holistic Trace Analysis, extra `hta`) about a trace or its ranks, without reading it a second time."""

    name = "hta"
    reads_traces = True
    needs_pandas = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        parser.add_argument("analysis", choices=_NAMES, metavar="ANALYSIS", help=", ".join(_NAMES))
        add_knowledge(parser)
        parser.add_argument("--variant", metavar="NAME", help="the variant to ask about, if there are several")
        parser.add_argument(
            "--operator",
            default="aten::",
            metavar="NAME",
            help="for frequent-patterns: the operator that launches the kernels",
        )
        parser.add_argument(
            "--as-it-comes", action="store_true", help="use HTA's defaults: whole µs, and without the last step"
        )
        parser.add_argument(
            "--rows", type=rows, default=_ROWS, metavar="N", help="rows to show, or 'all' (default: %(default)s)"
        )
        add_json(parser)
        add_output(parser, "folder to write Parquet files to", "DIR")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Run the analysis, and show or write its tables."""
        from tracekit.faces.parquet import write_table
        from tracekit.faces.shared.output_files import fill
        from tracekit.hta import needed

        needed()
        with open_given(options.inputs, options) as subject:
            profiles = subject.traced(options.inputs[0]).profiles
        if options.output is None:
            write_out(_drawn(_answers(options, profiles, None), options))
            return 0

        def write(folder: Path) -> None:
            for name, table in _answers(options, profiles, folder).items():
                write_table(f"hta_{name}", table, folder / f"{name}.parquet")

        written = fill(options.output, write, overwriting(options, options.inputs))
        for path in written:
            tell_written(path)
        if not written:
            write_out(_drawn({}, options))
        return 0


def _answers(options: argparse.Namespace, profiles: "list[Profile]", folder: Path | None) -> "dict[str, pa.Table]":
    from tracekit.hta import quietly, trace_analysis

    exact = not options.as_it_comes
    with quietly():
        analyses = [
            trace_analysis(profile, rounded=not exact, include_last_profiler_step=exact)
            for profile in _compared(options, profiles)
        ]
        from tracekit.hta.results import Question, frames_of
        from tracekit.hta.tables import as_table

        second = analyses[1] if len(analyses) > 1 else None
        question = Question(analyses[0], second, options.operator, folder=folder)
        return {name: as_table(frame) for name, frame in frames_of(options.analysis, question).items()}


def _compared(options: argparse.Namespace, profiles: "list[Profile]") -> "list[Profile]":
    """The variant to analyse; if two are compared, preceded by the first of the others."""
    matching = [profile for profile in profiles if profile.name == options.variant] if options.variant else profiles[:1]
    if not matching:
        raise UnknownVariantError(options.variant, [profile.name for profile in profiles])
    if options.analysis != "trace-diff":
        return matching
    reference = [profile for profile in profiles if profile is not matching[0]][:1]
    return [*reference, *matching] if options.variant else [*matching, *reference]


def _drawn(tables: "dict[str, pa.Table]", options: argparse.Namespace) -> str:
    from tracekit.faces import Options
    from tracekit.report.blocks import Block, Sentences, Table

    if not tables and options.format == "text":
        return f"HTA has no answer here: {options.analysis} is empty.\n"
    blocks: list[Block] = []
    for name, table in tables.items():
        blocks += [Sentences((name.replace("_", " "),)), Table(name, table)]
    return printed(blocks, Options(options.rows, True, sys.stdout), options)
