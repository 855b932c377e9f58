"""`tracekit tui`: look around in the terminal."""

import argparse
import sys

from tracekit.cli.arguments import add_inputs
from tracekit.errors import NoTerminalError


class TuiVerb:
    """Look around in a run or in traces, in the terminal."""

    name = "tui"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        parser.add_argument(
            "--baseline", metavar="NAME", help="variant the others are set against (default: the first)"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Open the app, and stay until the user leaves."""
        if not _on_a_terminal():
            raise NoTerminalError(options.inputs)
        from tracekit.tui.app import build_app

        app = build_app(options.inputs, options.baseline, infer_steps=options.steps == "infer")
        app.run()
        if app.failure is not None:
            raise app.failure
        return app.return_code or 0


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
