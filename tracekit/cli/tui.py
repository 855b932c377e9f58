"""`tracekit tui`: look around in the terminal."""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

from tracekit.cli.arguments import add_inputs
from tracekit.cli.start_up import import_numpy
from tracekit.errors import NoTerminalError

_KEYS = 0  # the file that Textual reads keys from


class TuiVerb:
    """Look around in a run or in traces, in the terminal."""

    name = "tui"

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
        from tracekit.tui import first_frame

        if Path("-") in options.inputs:
            _take_keys_from_the_terminal()
        if not _on_a_terminal():
            raise NoTerminalError(options.inputs)
        first_frame.show(options.inputs)
        import_numpy()  # here, and not by `reads_traces`: after there is something to look at
        try:
            from tracekit.tui.app import build_app

            app = build_app(options.inputs, options.baseline, infer_steps=options.steps == "infer")
        except BaseException:
            first_frame.leave()
            raise
        app.run()
        if app.failure is not None:
            raise app.failure
        return app.return_code or 0


def _on_a_terminal() -> bool:
    return os.isatty(_KEYS) and sys.stdout.isatty()


def _take_keys_from_the_terminal() -> None:
    """What is piped in is a trace, which is left to whoever reads `-`; keys come from the terminal itself."""
    if os.isatty(_KEYS):
        return
    with suppress(OSError):  # without a terminal, that is what is said
        terminal = os.open("/dev/tty", os.O_RDWR)
        sys.stdin = open(os.dup(_KEYS), encoding="utf-8")  # noqa: SIM115 - read to its end
        os.dup2(terminal, _KEYS)
