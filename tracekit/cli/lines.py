"""`tracekit lines`: what each line of your code costs, beside the source."""

import argparse
import sys

from tracekit.cli.arguments import Verb, add_confidential, add_knowledge, add_no_cache, rows, source
from tracekit.cli.opening import open_given
from tracekit.cli.output import add_json, printed, write_out
from tracekit.errors.reading import NothingOfYoursError

_ROWS = 20


class LinesVerb(Verb):
    """Show what each line of your code costs, eager and compiled side by side."""

    name = "lines"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "input", type=source, metavar="INPUT", help="the run.json of a capture, a trace with stacks, or 'sample'"
        )
        parser.add_argument(
            "where",
            nargs="?",
            metavar="FILE[:FUNCTION]",
            help="print this file of yours with its costs, or one function of it",
        )
        parser.add_argument(
            "--view",
            choices=("wall", "host"),
            default="wall",
            help="wall time, or the host's time (default: %(default)s)",
        )
        add_knowledge(parser)
        add_confidential(parser)
        parser.add_argument(
            "--rows", type=rows, default=_ROWS, metavar="N", help="lines to list, or 'all' (default: %(default)s)"
        )
        add_json(parser)
        parser.add_argument("--full", action="store_true", help="split costs by forward and backward, and by bucket")
        add_no_cache(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw the lines."""
        from tracekit.faces import Options
        from tracekit.report.owner_costs import VariantOwners
        from tracekit.report.sections.lines import SideBySide
        from tracekit.trace.rereading import carries_call_stacks

        with open_given([options.input], options) as subject:
            profiles = subject.traced(options.input).profiles
            variants = [VariantOwners(profile.name, profile.owner_means, options.view) for profile in profiles]
        if not any(variant.total_ns for variant in variants):
            trace = profiles[0].trace
            raise NothingOfYoursError(
                options.input,
                variants[0].means.reason or f"it has no {options.view} time",
                in_operators=not trace.has_stacks and carries_call_stacks(trace),
            )
        side_by_side = SideBySide(variants, {variant.name: variants[0].name for variant in variants})
        blocks = [*side_by_side.blocks()] if options.where is None else side_by_side.excerpts_at(options.where)
        write_out(printed(blocks, Options(options.rows, options.full, sys.stdout), options))
        return 0
