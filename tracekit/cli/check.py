"""`tracekit check`: does a run stay within its budget, or keep up with an earlier one?"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.arguments import NOT_CHECKED, Verb, add_no_cache, percentage, source
from tracekit.cli.output import STDOUT, add_format, add_output, check_format, format_of, overwriting, send, tell_written

if TYPE_CHECKING:
    from tracekit.gate import Check

_FORMATS = ("text", "markdown", "json", "junit")
_NO = ("", "0", "false", "no", "off")  # of an environment variable that switches something on


class CheckVerb(Verb):
    """Compare a run with a budget or an earlier run, and exit with 1 if it is worse, with 3 if that could not be
    checked. Made for pull requests."""

    name = "check"
    reads_traces = True
    failure = NOT_CHECKED

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
            "--min-detectable",
            type=percentage,
            metavar="PERCENT",
            help="fail if a regression of this size could not have been seen; capture with the same option",
        )
        parser.add_argument(
            "--strict",
            action=argparse.BooleanOptionalAction,
            default=os.environ.get("CI", "").lower() not in _NO,
            help="fail if a time is too uncertain to show one tolerance more than its limit (default: where the "
            "environment variable CI is set)",
        )
        parser.add_argument(
            "--allow-unanswered",
            action="append",
            default=[],
            metavar="NAME",
            help="a metric that may stay unanswered or uncertain, repeatable (default: what cannot be answered fails)",
        )
        add_format(parser, _FORMATS)
        add_output(parser, "write to this file instead of stdout (-)")
        parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML to this file")
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write Markdown to this file")
        add_no_cache(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Check, and print the outcome."""
        from tracekit.errors import TracekitError
        from tracekit.faces import Options
        from tracekit.faces.shared.output_files import write_content
        from tracekit.gate.drawing import FORMATS, junit_error

        check_format(options, _FORMATS)
        name = format_of(options, _FORMATS)
        to_file = options.output not in (None, STDOUT)
        files = {"junit": options.junit, "markdown": options.markdown, **({name: options.output} if to_file else {})}
        outputs = {path: format_name for format_name, path in files.items() if path not in (None, STDOUT)}
        inputs = [*options.inputs, *(path for path in (options.budget, options.against) if path is not None)]
        spared = overwriting(options, inputs)
        for path in outputs:
            spared.refuse(path)
        try:
            check = _checked(options)
        except TracekitError as error:
            for path in (path for path, format_name in outputs.items() if format_name == "junit"):
                write_content(path, junit_error(str(error)), spared)
                tell_written(path)
            if not to_file and name == "junit":
                send(junit_error(str(error)))
            raise
        for path, format_name in outputs.items():
            write_content(path, FORMATS[format_name](check, Options()), spared)
            tell_written(path)
        if not to_file:
            send(FORMATS[name](check, Options()))
        failing = {row.outcome for row in check.rows if row.fails}
        return 0 if not failing else NOT_CHECKED if failing == {"unanswered"} else 1


def _checked(options: argparse.Namespace) -> "Check":
    from tracekit.cli.opening import Progress
    from tracekit.errors.asking import ToleratedRegressionError, UnknownMetricError
    from tracekit.gate import Check, Demand, against, differences, read_budget, within
    from tracekit.gate.metrics import METRICS
    from tracekit.profile import open_subject

    for metric in (*options.metric, *options.allow_unanswered):
        if metric not in METRICS:
            raise UnknownMetricError(metric, list(METRICS))
    smallest, tolerance = options.min_detectable, options.tolerance
    if smallest is not None and options.against is not None and smallest <= tolerance:
        raise ToleratedRegressionError(smallest, tolerance)
    allow = frozenset(options.allow_unanswered)
    demand = Demand(tolerance, smallest, options.strict or smallest is not None, allow)
    budget = read_budget(options.budget) if options.budget is not None else None
    with Progress() as progress:
        new = open_subject(options.inputs, progress)
        if budget is not None:
            return Check(within(new, budget, demand), [], "limit")
        old = open_subject([options.against], progress)
        return Check(against(new, old, options.metric, demand), differences(new, old))
