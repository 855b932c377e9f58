"""The verbs; the one place where errors become exit codes.

0 fine, 1 a failure the user can cause, 2 usage, 130 interrupted (143 by SIGTERM, 129 by SIGHUP). stdout is data,
stderr is for people.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tracekit.errors import NoTerminalError, OutputError, StandardOutputError, TracekitError, UnreadableFileError
from tracekit.sanitize import sanitize

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from tracekit.report import Report as Found

_PIPED_WIDTH = 160  # of a report that goes to no terminal
_MESSAGE_WIDTH = 400  # of what argparse says of an argument


class Report:
    """Say where each step's wall time went, and what changed between variants."""

    name = "report"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        _inputs(parser)
        parser.add_argument(
            "--baseline", metavar="NAME", help="variant the others are set against (default: the first)"
        )
        parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
        parser.add_argument(
            "--rows", type=_rows, default=5, metavar="N", help="rows of each table, or 'all' (default: 5)"
        )
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw the report."""
        from tracekit.draw.progress import Progress
        from tracekit.profile import open_subject
        from tracekit.report import report

        if options.output is not None:
            _spare(options.output, options.inputs)
        with Progress() as progress:
            found = report(open_subject(options.inputs, progress), options.baseline)
        content = _drawn(found, options)  # all of it before any goes out: a failure leaves no half report
        if options.output is None:
            _print(content)
        else:
            _write(content, options.output)
        return 0


class Capture:
    """Run a recipe, or any training script, eager and compiled under the profiler, and write what it took."""

    name = "capture"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "recipe",
            type=Path,
            metavar="RECIPE",
            help="a recipe, or a training script as it is: train.py -- ITS ARGUMENTS",
        )
        parser.add_argument(
            "--step-every",
            type=_positive,
            default=1,
            metavar="N",
            help="optimizer steps that make a step of a script (default: 1)",
        )
        parser.add_argument(
            "--variants",
            type=_names,
            default=(),
            metavar="A,B,…",
            help="eager, compiled, a mode (max-autotune:dynamic=true), or the recipe's own; by default eager, compiled "
            "and the recipe's own",
        )
        parser.add_argument(
            "--param",
            action="append",
            type=_pair,
            default=[],
            metavar="KEY=VALUE",
            help="a parameter of the recipe, repeatable (default: those in its PARAMS)",
        )
        parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
        parser.add_argument("--backend", default="inductor", help="inductor or aot_eager (default: inductor)")
        parser.add_argument("--steps", type=_positive, default=20, help="profiled steps (default: 20)")
        parser.add_argument("--warmup", type=_positive, default=10, help="steps before, at least (default: 10)")
        parser.add_argument("--seed", type=int, default=0, help="of every random number generator (default: 0)")
        parser.add_argument(
            "--timeout", type=float, default=1800, metavar="S", help="seconds a pass may take (default: 1800)"
        )
        parser.add_argument(
            "--passes",
            type=_positive,
            default=8,
            metavar="N",
            help="unprofiled passes of each variant, at most: fewer where their intervals are narrow (default: 8)",
        )
        parser.add_argument(
            "--budget",
            type=float,
            metavar="S",
            help="seconds that the passes after the first may take together (default: 30 a variant, or as long as the "
            "first ones took, up to 600)",
        )
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            default=Path("run.json"),
            metavar="FILE",
            help="the run, its traces in a folder beside it; an earlier run is kept (default: run.json)",
        )
        parser.set_defaults(unknown="A script's own arguments go after --: tracekit capture train.py -- --epochs 3")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Capture."""
        from tracekit.capture.harness import Options, capture, exit_code

        return exit_code(
            capture(
                Options(
                    recipe=options.recipe,
                    variants=options.variants,
                    params=dict(options.param),
                    device=options.device,
                    backend=options.backend,
                    steps=options.steps,
                    warmup=options.warmup,
                    seed=options.seed,
                    timeout=options.timeout,
                    passes=options.passes,
                    budget=options.budget,
                    out=options.output,
                    arguments=options.script_arguments,
                    step_every=options.step_every,
                )
            )
        )


class Doctor:
    """Say what can be captured here, and what to do about what is missing."""

    name = "doctor"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="for machines")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Look; 1 where not even CPU training can be captured."""
        from tracekit.capture import doctor

        results = doctor.examine()
        print(doctor.as_json(results) if options.json else doctor.as_text(results))
        return 0 if doctor.can_capture(results) else 1


class Tui:
    """Look around in a run or in traces, in the terminal."""

    name = "tui"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        _inputs(parser)
        parser.add_argument(
            "--baseline", metavar="NAME", help="variant the others are set against (default: the first)"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Open the app, and stay until the user leaves."""
        if not _on_a_terminal():
            raise NoTerminalError(options.inputs)
        from tracekit.tui.app import build_app

        app = build_app(options.inputs, options.baseline)
        app.run()
        if app.failure is not None:
            raise app.failure
        return app.return_code or 0


class Export:
    """Write every table as Parquet, for pandas, polars or DuckDB."""

    name = "export"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        _inputs(parser)
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write into")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Write the tables."""
        from tracekit.draw.progress import Progress
        from tracekit.export import parquet
        from tracekit.profile import open_subject
        from tracekit.tables import tables

        with Progress() as progress:
            subject = open_subject(options.inputs, progress)
        for path in parquet.write(tables(subject.profiles), options.output):
            _tell(f"Wrote {sanitize(str(path))}")
        return 0


class Cache:
    """List the traces that are kept for the next time, or forget them."""

    name = "cache"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--clear", action="store_true", help="remove all of them")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """List or clear."""
        from tracekit.trace.storing import cache
        from tracekit.units import size

        where = sanitize(str(cache.home()))
        if options.clear:
            _tell(f"Removed {cache.clear()} traces from {where}")
            return 0
        kept = cache.entries()
        _print("".join(f"{size(entry.size):>10}  {sanitize(str(entry.told.get('path', '')))}\n" for entry in kept))
        _tell(f"{len(kept)} traces, {size(sum(entry.size for entry in kept))} in {where}")
        return 0


VERBS = (Capture, Report, Tui, Export, Cache, Doctor)


def entry() -> int:
    """The console script."""
    from tracekit.interruption import by_any_signal

    sys.meta_path.insert(0, _WithoutPandas())
    _open_streams()
    with by_any_signal():
        return main()


def _open_streams() -> None:
    """Give every stream that was closed (`>&-`) a stand-in, and make none fail at a sign that it cannot encode.

    Without, the next file to be opened would be taken for the stream.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY), encoding="utf-8")  # noqa: SIM115 - fails when read
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115 - when written
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - nobody listens
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _WithoutPandas(MetaPathFinder):
    """pyarrow imports pandas at its first array, a third of a report's start-up; no verb has a use for it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Refuse pandas; leave everything else to those who come after."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    return _guarded(lambda: _run([*(sys.argv[1:] if arguments is None else arguments)]))


class _Parser(argparse.ArgumentParser):
    """What it quotes of the command line is shown, and not obeyed."""

    def error(self, message: str) -> NoReturn:
        super().error(sanitize(message, _MESSAGE_WIDTH))

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if file is sys.stdout:
            _print(message)  # argparse passes over what cannot be written
        else:
            super()._print_message(message, file)


def _run(arguments: list[str]) -> int:
    parser = _Parser(prog="tracekit", description="Where a PyTorch training step's wall time goes, to the nanosecond.")
    parser.add_argument("--version", action="version", version=f"tracekit {_version()}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb in VERBS:
        own = verbs.add_parser(verb.name, help=verb.__doc__, description=verb.__doc__)
        verb.arguments(own)
        own.set_defaults(run=verb.run)
    given, script_arguments = _split(arguments)
    options, unknown = parser.parse_known_args(given)
    if unknown:
        hint = getattr(options, "unknown", "")
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint and f'. {hint}'}")
    options.script_arguments = script_arguments
    if getattr(options, "no_cache", False):
        os.environ["TRACEKIT_NO_CACHE"] = "1"
    code: int = options.run(options)
    return code


def _split(given: list[str]) -> tuple[list[str], list[str]]:
    """A capture's own arguments, and those after `--`, which are the script's."""
    at = given.index("--") if given[:1] == [Capture.name] and "--" in given else len(given)
    return given[:at], given[at + 1 :]


def _guarded(work: Callable[[], int]) -> int:
    try:
        try:
            return work()
        finally:
            _print()  # what others have printed, argparse too
    except TracekitError as error:
        return _failed(error)
    except KeyboardInterrupt as interrupt:
        _tell("tracekit: interrupted")
        name = str(interrupt)  # as tracekit.interruption raises it; Ctrl-C gives none
        return 128 + (signal.Signals[name] if name in signal.Signals.__members__ else signal.SIGINT)
    except BrokenPipeError:
        return 0  # the reader of our output has gone (`| head`): what it wanted, it has
    except OSError as error:
        why = error.strerror or str(error)
        # An error that names no file is one of a stream.
        return _failed(UnreadableFileError(error.filename, why) if error.filename else StandardOutputError(why))


def _failed(error: TracekitError) -> int:
    _tell(f"tracekit: {sanitize(str(error))}")
    return 1


def _tell(sentence: str) -> None:
    """Say it on stderr; where that is full, nobody can be told."""
    with suppress(OSError):
        print(sentence, file=sys.stderr)


def _print(text: str = "") -> None:
    """To stdout, at once: what cannot be written is told of here, and not when Python ends."""
    try:
        if text:  # without a buffer, even an empty write fails on a full disk
            sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is left over has somewhere to go when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise StandardOutputError(error.strerror or str(error)) from None


def _inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        metavar="INPUT",
        help="a trace, a folder of them, the run.json of a capture, an address (s3://…), or - for standard input",
    )
    parser.add_argument("--no-cache", action="store_true", help="read every trace anew, and keep nothing of it")


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _rows(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows: give 0 or more, or all")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is no parameter: give KEY=VALUE")
    return key, value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count: give 1 or more")
    return int(text)


def _drawn(found: "Found", options: argparse.Namespace) -> str:
    """The report in the format that is asked for; for a terminal, with its colours and as wide as it is."""
    if options.format == "json":
        from tracekit.draw.json import render as render_json

        return render_json(found) + "\n"
    if options.format == "markdown":
        from tracekit.draw.markdown import render as render_markdown

        return render_markdown(found, options.rows)
    from rich.console import Console

    from tracekit.draw import text

    file = sys.stdout if options.output is None else StringIO()
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        asked = os.environ.get("COLUMNS", "")
        console.width = int(asked) if asked.isdecimal() and int(asked) else _PIPED_WIDTH
    with console.capture() as drawn:
        text.show(found, console, options.rows)
    return drawn.get()


def _spare(path: Path, inputs: list[Path]) -> None:
    """Refuse to write over what is read, and over any other trace or run: none can be made again."""
    if os.path.isdir(path):
        raise OutputError(path, f"it is a folder: name a file in it, as in {path / 'report.txt'}")
    if not os.path.isdir(path.parent):
        raise OutputError(path, "its folder does not exist")
    if os.path.isfile(path):
        if any(os.path.exists(each) and os.path.samefile(each, path) for each in inputs):
            raise OutputError(path, "the report is made from it")
        if _holds_a_trace(path):
            raise OutputError(path, "a trace or a run is there")


def _holds_a_trace(path: Path) -> bool:
    """Whether it begins as a trace or a run does, packed or not."""
    from tracekit.run import is_run
    from tracekit.trace.reading.source import Source

    head = bytearray(1 << 16)
    with Source(path) as source:
        begun = bytes(head[: source.readinto(memoryview(head))])
    return is_run(begun) or _TRACES_BEGINNING.match(begun) is not None


# A name of a report's cannot look so: in JSON its quotes are escaped.
_TRACES_BEGINNING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*[\[{].*?"(?:schemaVersion|traceEvents|displayTimeUnit|ph)"\s*:', re.DOTALL
)


def _write(content: str, path: Path) -> None:
    """Put the report there whole; where that fails, an earlier one stays."""
    from tracekit.atomic import reason, replacing

    try:
        if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, a pipe: nothing to put another file for
            path.write_text(content, encoding="utf-8")
        else:
            with replacing(Path(os.path.realpath(path))) as part:  # a link stays one
                part.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputError(path, reason(error)) from None
    _tell(f"Wrote {sanitize(str(path))}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tracekit")
    except PackageNotFoundError:
        return "unknown"
