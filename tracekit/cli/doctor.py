"""`tracekit doctor`: what can be captured here."""

import argparse

from tracekit.cli.arguments import Verb
from tracekit.cli.output import add_json, write_out


class DoctorVerb(Verb):
    """Check what this machine can capture, and say how to get what is missing."""

    name = "doctor"
    needs_pandas = True  # torch looks for it

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_json(parser)
        parser.add_argument(
            "--json", dest="format", action="store_const", const="json", help="print the results as JSON"
        )
        parser.add_argument(
            "--overhead",
            action="store_true",
            help="instead, measure what tracekit.watch() costs the steps of three small trainings, in a minute or two",
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Check; 1 if not even CPU training can be captured."""
        if options.overhead:
            return _print_overhead(options.format == "json")
        from tracekit.capture import doctor

        results = doctor.examine()
        print(doctor.as_json(results) if options.format == "json" else doctor.as_text(results))
        return 0 if doctor.can_capture(results) else 1


def _print_overhead(as_json: bool) -> int:
    """Measure what watching costs; 1 if it may be more than is allowed. Raises NoTorchError."""
    from tracekit.capture.environment import has_torch
    from tracekit.errors.capturing import NoTorchError

    if not has_torch():
        raise NoTorchError
    from tracekit.watching import overhead

    costs = []
    for cost in overhead.measured():
        costs.append(cost)
        if not as_json:
            write_out(f"{cost.sentence()}\n")
    if as_json:
        write_out(f"{overhead.as_json(costs)}\n")
    else:
        write_out(f"\n{overhead.verdict(costs)}\n")
    return 0 if all(cost.is_within for cost in costs) else 1
