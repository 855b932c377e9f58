"""`tracekit what-if`: what would a step take if something were different?"""

import argparse
import sys

from tracekit.cli.arguments import Verb, add_knowledge, add_no_cache, source
from tracekit.cli.opening import open_given
from tracekit.cli.output import add_json, printed, write_out

_ROWS = 20  # there are never as many changes
_HOW = (
    "Steps of the trace are replayed with each change. At best, the change costs nothing and nothing is late without a "
    "recorded cause; at worst, it costs what such changes cost at most. The range has a margin, which the gain leaves "
    "out."
)


class WhatIfVerb(Verb):
    """Tell what a step would take without its waits, as a CUDA graph, with batches that are ready."""

    name = "what-if"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "inputs", type=source, nargs="+", metavar="INPUT", help="run.json files, traces, or 'sample'"
        )
        add_knowledge(parser)
        add_json(parser)
        add_no_cache(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw a table for each variant."""
        from tracekit.analyses import summary
        from tracekit.faces import Options
        from tracekit.report.blocks import Block, Sentences, Table

        with open_given(options.inputs, options) as subject:
            profiles = subject.traced(options.inputs[0]).profiles
            answers = [(profile.name, summary(profile, "what_if")) for profile in profiles]
        blocks: list[Block] = []
        for name, answer in answers:
            blocks.append(Sentences((f"{name}: {answer.sentence}" if len(answers) > 1 else answer.sentence,)))
            if answer.table.num_rows:
                blocks.append(Table(f"what_if {name}", answer.table))
        if any(answer.table.num_rows for _, answer in answers):
            blocks.append(Sentences((_HOW,)))
        write_out(printed(blocks, Options(rows=_ROWS, stream=sys.stdout), options))
        return 0
