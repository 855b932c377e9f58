"""Where a verb's output goes: data to stdout or into files, each of which is named on stderr, and what is for people to
stderr.
"""

import argparse
import math
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracekit.base.names import sanitize
from tracekit.errors.asking import (
    BytesToTerminalError,
    NeedsFolderError,
    NotConfidentialError,
    OtherFormatError,
    StandardOutputError,
)

if TYPE_CHECKING:
    from tracekit.faces import Face, Options
    from tracekit.faces.shared.output_files import Overwriting
    from tracekit.report import Report
    from tracekit.report.blocks import Block

STDOUT = Path("-")
_FORMATS = {
    ".txt": "text",
    ".md": "markdown",
    ".htm": "html",
    ".tex": "latex",
    ".xml": "junit",
    ".speedscope.json": "speedscope",
}
# The formats that show nothing but what was read: others read an input once more, or may do so.
_CONFIDENTIAL = ("text", "html", "markdown", "latex", "json", "csv", "xlsx", "parquet", "speedscope")


def add_output(parser: argparse.ArgumentParser, help_text: str, metavar: str = "FILE", required: bool = False) -> None:
    """`-o` and `--force`."""
    parser.add_argument("-o", "--output", type=Path, metavar=metavar, required=required, help=help_text)
    parser.add_argument("--force", action="store_true", help="also overwrite a trace or a run that is not an input")


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str], remark: str = "") -> None:
    """`--format`, which the suffix of the output file can replace."""
    parser.add_argument(
        "--format",
        choices=formats,
        help=f"output format; {remark}default: by the suffix of the file named with -o, or else {formats[0]}",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--format` of a verb that prints blocks."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default: %(default)s)"
    )


def printed(blocks: "list[Block]", how: "Options", options: argparse.Namespace) -> str:
    """Blocks as the text of a verb or, for programs, as `tracekit.VERB/1`: one object with all rows of the tables and,
    for each column, its unit and what it means."""
    from tracekit.faces.text import draw_blocks

    if options.format == "text":
        return draw_blocks(blocks, how)
    from tracekit.faces.shared.document import as_data, as_json

    document = {
        "schema": f"tracekit.{options.verb.name.replace('-', '_')}/1",
        "blocks": [{"kind": block.kind, **as_data(block)} for block in blocks],
    }
    return as_json(_finite(document), default=str)


def _finite(value: Any) -> Any:
    """Plain data in which what is no number is null, as JSON wants it."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_of(options: argparse.Namespace, formats: Sequence[str]) -> str:
    """The format of the output: the one requested, else the one that the file's suffix names, else the first."""
    return options.format or _format_by_name(options.output, formats) or formats[0]


def check_format(options: argparse.Namespace, formats: Collection[str]) -> None:
    """Refuse a file whose suffix names another format than `--format` does. Raises OtherFormatError."""
    by_name = _format_by_name(options.output, formats)
    if options.format is not None and by_name not in (None, options.format, "text"):  # .txt suits all that is text
        raise OtherFormatError(options.output, str(by_name), options.format)


def _format_by_name(output: Path | None, formats: Collection[str]) -> str | None:
    """The format that a file's suffix names; None if it names none, or the path is a folder."""
    if output is None or os.path.isdir(output):
        return None
    file_name = output.name.lower()
    by_ending = (name for ending, name in _FORMATS.items() if file_name.endswith(ending))
    name = next(by_ending, output.suffix.lower().removeprefix("."))
    return name if name in formats else None


def overwriting(options: argparse.Namespace, inputs: list[Path]) -> "Overwriting":
    """What must not be overwritten, according to the command line."""
    from tracekit.faces.shared.output_files import Overwriting

    return Overwriting(inputs, options.force)


def find_face(options: argparse.Namespace, formats: Sequence[str]) -> "Face":
    """The face of the format of the output. Raises TracekitError, before anything is read, if it cannot be written."""
    from tracekit import faces
    from tracekit.faces.shared.output_files import refuse_early

    face = faces.find(format_of(options, formats))
    if getattr(options, "confidential", False) and face.name not in _CONFIDENTIAL:
        raise NotConfidentialError(f"--format {face.name}", "choose another format")
    if options.output in (None, STDOUT):
        if face.draw is None:
            raise NeedsFolderError(face.name, "a file for each variant" if face.write_variant else "several files")
        if not face.on_terminal and sys.stdout.isatty():
            raise BytesToTerminalError
    elif face.fill is not None and options.format is None and _format_by_name(options.output, [face.name]):
        raise NeedsFolderError(face.name)
    else:
        refuse_early(face, options.output, overwriting(options, options.inputs))
    check_format(options, formats)
    return face


def write_report(face: "Face", report: "Report", how: "Options", options: argparse.Namespace) -> None:
    """Draw a report, and write it where the command line says. Raises TracekitError."""
    from tracekit.faces.shared.output_files import write

    if face.draw is not None and options.output in (None, STDOUT):
        # Draw everything before anything is written, so that a failure does not leave half a report.
        send(face.draw(report, how))
        return
    suffix = sanitize(options.output.suffix)
    is_unknown = (
        face.draw is not None and suffix and not (options.format or _format_by_name(options.output, [face.name]))
    )
    for path in write(face, report, options.output, how, overwriting(options, options.inputs)):
        tell_written(path, f" as {face.name}, because {suffix} means no format" if is_unknown else "")


def send(content: str | bytes) -> None:
    """Write to stdout; bytes only if it is not a terminal. Raises BytesToTerminalError."""
    if isinstance(content, bytes) and sys.stdout.isatty():
        raise BytesToTerminalError
    write_out(content)


def deliver(content: str | bytes, options: argparse.Namespace, spared: "Overwriting") -> None:
    """Write to the file that the command line names, or else to stdout. Raises TracekitError."""
    from tracekit.faces.shared.output_files import write_content

    if options.output in (None, STDOUT):
        send(content)
    else:
        write_content(options.output, content, spared)
        tell_written(options.output)


def tell_written(path: Path, how: str = "") -> None:
    """Say that a file was written."""
    tell(f"Wrote {sanitize(str(path))}{how}")


def open_streams() -> None:
    """Replace every stream that was closed (`>&-`), and keep all from failing at a character that they cannot encode.

    Otherwise, the next file to be opened would take the place of the closed stream.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY), encoding="utf-8")  # noqa: SIM115 - fails when read
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115 - when written
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it is never read
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tell(sentence: str) -> None:
    """Print a sentence on stderr; if that cannot be written either, it is lost."""
    with suppress(OSError):
        print(sentence, file=sys.stderr)


def write_out(content: str | bytes = "") -> None:
    """Write to stdout and flush it, so that a failure is reported here and not when Python exits."""
    try:
        if isinstance(content, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        elif content:  # unbuffered, even an empty write fails on a full disk
            sys.stdout.write(content)
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer needs a destination when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise StandardOutputError(error.strerror or str(error)) from None
