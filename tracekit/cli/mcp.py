"""`tracekit mcp`: a server through which a language model's agent asks about runs and traces."""

import argparse
import sys
from pathlib import Path

from tracekit.cli.arguments import Verb, positive
from tracekit.cli.output import tell
from tracekit.errors.asking import FewBytesError, NeedsPackageError, NotConfidentialError
from tracekit.errors.reading import NoSuchFileError

_NEEDED = ("mcp", "anyio")


class McpVerb(Verb):
    """Serve an agent's questions about runs and traces over standard input and output (Model Context Protocol)."""

    name = "mcp"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--root",
            type=Path,
            default=Path(),
            metavar="FOLDER",
            help="read only what lies below this folder (default: the current folder)",
        )
        parser.add_argument(
            "--allow-run",
            action="store_true",
            help="offer audit and capture, too, which run programs below the root, with your rights (default: nothing "
            "is run)",
        )
        parser.add_argument(
            "--max-bytes",
            type=positive,
            default=6000,
            metavar="N",
            help="answer in at most N bytes of JSON; 2000 or more (default: %(default)s)",
        )
        parser.add_argument(
            "--mine",
            action="append",
            default=[],
            metavar="PACKAGE",
            help="count this package as your code, in traces that were not captured by tracekit; repeatable",
        )
        parser.add_argument(
            "--confidential",
            action="store_true",
            help="answer with stand-ins such as file-1.py for all names that are not public, and without source",
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Serve until the client ends."""
        try:
            from tracekit.agent.server import LEAST, Settings, serve
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in _NEEDED:
                raise
            raise NeedsPackageError("tracekit mcp", "the package mcp, version 2", "mcp") from None
        if not options.root.is_dir():
            raise NoSuchFileError(options.root)
        if options.max_bytes < LEAST:
            raise FewBytesError(options.max_bytes, LEAST)
        if options.confidential and options.allow_run:
            raise NotConfidentialError("what a program says", "leave out --allow-run")
        if sys.stdin.isatty():
            tell("A client starts this, and talks to it in JSON: docs/agents.md has what to configure. Ctrl-C ends it.")
        serve(Settings(options.root, options.allow_run, options.max_bytes, options.mine))
        return 0
