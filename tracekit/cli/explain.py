"""`tracekit explain`: the facts of a run in a given number of tokens."""

import argparse

from tracekit.cli.arguments import Verb, add_baseline, add_confidential, add_inputs, add_knowledge, positive
from tracekit.cli.opening import open_given
from tracekit.cli.output import add_json, printed, write_out


class ExplainVerb(Verb):
    """Print the facts of a run for a language model, most valuable first, in at most a given number of tokens."""

    name = "explain"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_knowledge(parser)
        add_confidential(parser)
        parser.add_argument(
            "--budget-tokens",
            type=positive,
            default=1000,
            metavar="N",
            help="print at most N tokens, each counted as 3 bytes of UTF-8 (default: 1000)",
        )
        add_baseline(parser)
        add_json(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Print them."""
        from tracekit.faces import Options
        from tracekit.faces.shared.explain import explain
        from tracekit.report import report
        from tracekit.report.blocks import Block, Sentences

        with open_given(options.inputs, options) as subject:
            opened = report(subject, options.baseline)
        facts = explain(opened, options.budget_tokens)
        blocks: list[Block] = [Sentences(tuple(facts.removesuffix("\n").split("\n")))]
        write_out(facts if options.format == "text" else printed(blocks, Options(), options))
        return 0
