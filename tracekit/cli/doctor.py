"""`tracekit doctor`: what can be captured here."""

import argparse

from tracekit.cli.arguments import Verb
from tracekit.cli.output import add_json


class DoctorVerb(Verb):
    """Check what this machine can capture, and say how to get what is missing."""

    name = "doctor"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_json(parser)
        parser.add_argument(
            "--json", dest="format", action="store_const", const="json", help="print the results as JSON"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Check; 1 if not even CPU training can be captured."""
        from tracekit.capture import doctor

        results = doctor.examine()
        print(doctor.as_json(results) if options.format == "json" else doctor.as_text(results))
        return 0 if doctor.can_capture(results) else 1
