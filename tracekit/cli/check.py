"""`tracekit check`: does a run stay within its budget, or keep up with an earlier one?"""

import argparse
from pathlib import Path

from tracekit.cli.arguments import percentage, source
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
from tracekit.cli.verb import Verb

_FORMATS = ("text", "markdown", "json", "junit")


class CheckVerb(Verb):
    """Compare a run with a budget or an earlier run, and exit with 1 if it is worse. Made for pull requests."""

    name = "check"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "inputs", nargs=1, type=source, metavar="INPUT", help="the run.json of a capture, a trace, or 'sample'"
        )
        limit = parser.add_mutually_exclusive_group(required=True)
        limit.add_argument(
            "--budget",
            type=Path,
            metavar="FILE",
            help="a TOML file with the limits: [variant.NAME], and below it METRIC = LIMIT",
        )
        limit.add_argument("--against", type=source, metavar="EARLIER", help="an earlier run of the same variants")
        parser.add_argument(
            "--metric",
            action="append",
            default=[],
            metavar="NAME",
            help="with --against: what to compare, repeatable (default: the step time and the counts that the run has)",
        )
        parser.add_argument(
            "--tolerance",
            type=percentage,
            default=0.03,
            metavar="PERCENT",
            help="with --against: how much slower a run may be and still pass (default: 3)",
        )
        parser.add_argument(
            "--allow-unanswered",
            action="append",
            default=[],
            metavar="NAME",
            help="a metric that may stay unanswered, repeatable (default: what cannot be answered fails)",
        )
        add_format(parser, _FORMATS, _FORMATS[0])
        add_output(parser, "write to this file instead of stdout (-)")
        parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML to this file")
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write Markdown to this file")
        parser.add_argument("--no-cache", action="store_true", help="read every trace anew, and cache nothing")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Check, and print the outcome."""
        from tracekit.cli.progress import Progress
        from tracekit.errors import UnknownMetricError
        from tracekit.faces import Options
        from tracekit.gate import Check, against, differences, failed, read_budget, within
        from tracekit.gate.drawing import FORMATS
        from tracekit.gate.metrics import METRICS
        from tracekit.output_files import write_content
        from tracekit.profile import open_subject

        check_format(options, _FORMATS)
        name = format_of(options, _FORMATS, _FORMATS[0])
        for metric in (*options.metric, *options.allow_unanswered):
            if metric not in METRICS:
                raise UnknownMetricError(metric, list(METRICS))
        outputs = {
            path: FORMATS[each]
            for each, path in (
                (name, options.output),
                ("junit", options.junit),
                ("markdown", options.markdown),
            )
            if path not in (None, STDOUT)
        }
        inputs = [*options.inputs, *(each for each in (options.budget, options.against) if each is not None)]
        spared = overwriting(options, inputs)
        for path in outputs:
            spared.refuse(path)
        budget = read_budget(options.budget) if options.budget is not None else None
        allow = frozenset(options.allow_unanswered)
        with Progress() as progress:
            new = open_subject(options.inputs, progress)
            if budget is not None:
                check = Check(within(new, budget, allow), [])
            else:
                old = open_subject([options.against], progress)
                check = Check(against(new, old, options.metric, options.tolerance, allow), differences(new, old))
        for path, draw in outputs.items():
            write_content(path, draw(check, Options()), spared)
            tell_written(path)
        if options.output in (None, STDOUT):
            send(FORMATS[name](check, Options()))
        return int(failed(check.rows))
