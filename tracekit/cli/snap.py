"""`tracekit snap`: a trace of a training that runs now, and is watched."""

import argparse
import os
import secrets
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.base.names import sanitize
from tracekit.cli.arguments import Verb, positive
from tracekit.cli.output import tell, write_out

if TYPE_CHECKING:
    from tracekit.watched.registry import Desk, Entry

_POLL_S = 0.05
_PATIENCE_S = 120


class SnapVerb(Verb):
    """Trace the next steps of a training that tracekit.watch() watches, while it runs."""

    name = "snap"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("process", type=positive, metavar="PID", help="the training's process")
        parser.add_argument(
            "--reason", default="snap", metavar="TEXT", help="becomes part of the trace's name (default: snap)"
        )
        parser.add_argument(
            "--timeout",
            type=positive,
            default=_PATIENCE_S,
            metavar="S",
            help=f"give up when the trace is not written after so many seconds (default: {_PATIENCE_S})",
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Ask for the trace, wait for it, and print its path."""
        from tracekit.capture.messages import short
        from tracekit.errors import named
        from tracekit.errors.watching import NoTraceTakenError
        from tracekit.watched import registry

        desk, entry = _desk(options.process)
        request = registry.Request(token=secrets.token_hex(8), reason=options.reason)
        is_asked = False
        give_up = time.monotonic() + options.timeout
        try:
            while (answer := desk.answered(request)) is None:
                is_asked = is_asked or (desk.is_open and desk.ask(request))
                if not (desk.is_open and registry.is_running(entry)):
                    if (answer := desk.answered(request)) is not None:  # its last deed
                        break
                    ended = "its watch ended" if registry.is_running(entry) else "it ended"
                    raise NoTraceTakenError(options.process, f"{ended} before the trace was written")
                if time.monotonic() > give_up:
                    late = f"within {options.timeout} s"
                    if desk.withdraw(request) or not is_asked:
                        when = "every few seconds, between two steps, and not while another trace is taken"
                        why = f"it took no request {late}: it looks for one {when}"
                    else:
                        why = f"the steps to be traced did not end {late}; the trace will be in {named(entry.folder)}"
                    raise NoTraceTakenError(options.process, why)
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            desk.withdraw(request)
            raise
        if answer.why:
            raise NoTraceTakenError(options.process, sanitize(answer.why))
        trace = str(short(Path(answer.trace)))
        write_out(f"{sanitize(trace)}\n")
        tell(f"Next: tracekit report {sanitize(shlex.quote(trace))}")
        return 0


def _desk(process: int) -> "tuple[Desk, Entry]":
    """Where this process can be asked. Raises NotWatchedError."""
    from tracekit.errors.watching import NotWatchedError
    from tracekit.watched import registry

    running = registry.running()
    for desk, entry in running:
        if entry.process == process:
            return desk, entry
    if registry.began(process) is None:
        why = "does not run"
    elif registry.is_others(process):
        why = "belongs to another user, who alone can ask it"
    else:
        why = "is not watched"
    others = [f"{entry.process} ({sanitize(os.path.basename(entry.script)) or 'no script'})" for _, entry in running]
    raise NotWatchedError(process, why, others)
