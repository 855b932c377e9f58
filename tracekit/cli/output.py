"""Where a verb's output goes: to stdout, or into files, each of which is named on stderr."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.streams import tell, write_out
from tracekit.errors import BytesToTerminalError, NeedsFolderError
from tracekit.sanitize import sanitize

if TYPE_CHECKING:
    from tracekit.faces import Face, Options
    from tracekit.faces.shared.files import Overwriting
    from tracekit.report import Report

STDOUT = Path("-")


def add_output(parser: argparse.ArgumentParser, help_text: str, metavar: str = "FILE", required: bool = False) -> None:
    """`-o` and `--force`."""
    parser.add_argument("-o", "--output", type=Path, metavar=metavar, required=required, help=help_text)
    parser.add_argument("--force", action="store_true", help="overwrite a trace or a run, too, unless it is an input")


def overwriting(options: argparse.Namespace, inputs: list[Path]) -> "Overwriting":
    """What must not be overwritten, as the command line names it."""
    from tracekit.faces.shared.files import Overwriting

    return Overwriting(inputs, options.force)


def check_output(face: "Face", options: argparse.Namespace, inputs: list[Path]) -> None:
    """Refuse, before anything is read, what cannot be written. Raises TracekitError."""
    from tracekit.faces.shared.files import refuse_early

    if options.output in (None, STDOUT):
        if face.draw is None:
            raise NeedsFolderError(face.name, "a file for each variant" if face.write_variant else "several files")
    else:
        refuse_early(face, options.output, overwriting(options, inputs))


def write_report(face: "Face", report: "Report", how: "Options", options: argparse.Namespace) -> None:
    """Draw a report, and put it where the command line says. Raises TracekitError."""
    from tracekit.faces.shared.files import write

    if face.draw is not None and options.output in (None, STDOUT):
        # All of it before any goes out: a failure leaves no half report.
        send(face.draw(report, how))
        return
    for path in write(face, report, options.output, how, overwriting(options, options.inputs)):
        tell_written(path)


def send(content: str | bytes) -> None:
    """Write to stdout; bytes only if it is not a terminal. Raises BytesToTerminalError."""
    if isinstance(content, str):
        write_out(content)
    elif sys.stdout.isatty():
        raise BytesToTerminalError
    else:
        write_out(content)


def tell_written(path: Path) -> None:
    """Say that a file is there."""
    tell(f"Wrote {sanitize(str(path))}")
