"""`tracekit audit`: which lines would block on a GPU, found without one."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import Verb, add_parameters, add_script_arguments, given, names, positive
from tracekit.cli.output import write_out


class AuditVerb(Verb):
    """Find the lines of a training script that would wait for a GPU, copy to it, crash or break a graph. Needs no
    GPU."""

    name = "audit"
    runs_scripts = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "program",
            type=Path,
            metavar="FILE",
            help="a training script, unchanged: train.py -- ITS ARGUMENTS, or a recipe, which may be one of those in "
            "tracekit recipes",
        )
        parser.add_argument(
            "--steps", type=positive, default=3, metavar="N", help="steps to run after the first (default: %(default)s)"
        )
        parser.add_argument(
            "--fail-on",
            type=kinds,
            default=(),
            metavar="A,B,…",
            help="exit with 1 if any of these is reported: sync, copy, mixed, break",
        )
        parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
        parser.add_argument(
            "--variant",
            default="eager",
            metavar="NAME",
            help="variant of a recipe: eager, or one of its own (default: %(default)s)",
        )
        add_parameters(parser)
        add_script_arguments(parser)
        parser.add_argument(
            "--seed", type=int, default=0, help="seed of every random number generator (default: %(default)s)"
        )
        parser.add_argument(
            "--timeout",
            type=float,
            default=600,
            metavar="S",
            help="seconds that the audit may take (default: %(default)s)",
        )
        parser.set_defaults(unknown="A script's own arguments go after --: tracekit audit train.py -- --epochs 3")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Run the steps, and print the result; 1 if they failed, or if --fail-on says so."""
        from tracekit.capture.audit.auditing import Options, as_json, as_text, audit, exit_code
        from tracekit.catalogue import located

        if not options.module:
            options.program = located(options.program)
        findings = audit(Options(**given(options, Options), variants=[options.variant]))
        draw = as_json if options.format == "json" else as_text
        write_out(draw(findings, options.program))
        return exit_code(findings, options.fail_on)


def kinds(text: str) -> tuple[str, ...]:
    """Kinds of rows, separated by commas."""
    from tracekit.capture.job import KINDS

    requested = names(text)
    if unknown := [kind for kind in requested if kind not in KINDS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not a kind of row: give {', '.join(KINDS)}")
    return requested
