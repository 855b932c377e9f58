"""`tracekit tui`: explore runs and traces in the terminal."""

import argparse
import gc
import os
import sys
from contextlib import suppress
from pathlib import Path

from tracekit.cli.arguments import Verb, add_baseline, add_choice, add_inputs, choice_given
from tracekit.cli.start_up import import_numpy
from tracekit.errors.asking import NoTerminalError

_KEYS, _SCREEN = 0, 2  # the file descriptors from which Textual reads keys, and to which it draws


class TuiVerb(Verb):
    """Explore runs and traces in the terminal."""

    name = "tui"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_baseline(parser)
        add_choice(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Open the app, and stay until the user leaves."""
        from tracekit.tui.terminal import answer_escape_soon, leave_frame, show_frame

        if Path("-") in options.inputs:
            _take_keys_from_the_terminal()
        if not is_on_a_terminal():
            raise NoTerminalError(options.inputs)
        choice = choice_given(options)
        show_frame(options.inputs)
        gc.disable()  # collecting garbage among imported modules would take an eighth of the start-up time
        import_numpy()  # here, not because of `reads_traces`, so that the first screen appears earlier
        from tracekit.trace.storing import cache, code_version

        if cache.is_on():  # while Textual is imported, the name of each trace in the cache is worked out
            code_version.begin(options.inputs)
        try:
            answer_escape_soon()
            from tracekit.study import is_study

            if len(options.inputs) == 1 and is_study(options.inputs[0]):
                from tracekit.tui.study import browse

                return browse(options.inputs[0])
            from tracekit.watched.reading import is_watch

            if len(options.inputs) == 1 and is_watch(options.inputs[0]):
                from tracekit.tui.watch import browse as browse_watch

                return browse_watch(options.inputs[0])
            from tracekit.tui.app import build_app

            app = build_app(options.inputs, options.baseline, infer_steps=options.steps != "annotated", choice=choice)
        except BaseException:
            leave_frame()
            raise
        finally:
            gc.freeze()
            gc.enable()
        app.run()
        if app.failure is not None:
            raise app.failure
        return app.return_code or 0


def is_on_a_terminal() -> bool:
    """Whether keys can be read from a terminal and a screen be drawn on one."""
    return os.isatty(_KEYS) and sys.stdout.isatty() and os.isatty(_SCREEN)


def _take_keys_from_the_terminal() -> None:
    """Read keys from the terminal itself, because standard input may be a trace, which the reader of `-` needs."""
    if os.isatty(_KEYS):
        return
    with suppress(OSError):  # the lack of a terminal is reported elsewhere
        terminal = os.open("/dev/tty", os.O_RDWR)
        sys.stdin = open(os.dup(_KEYS), encoding="utf-8")  # noqa: SIM115 - read to its end
        os.dup2(terminal, _KEYS)
