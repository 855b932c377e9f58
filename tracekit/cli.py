"""The verbs; the one place where errors become exit codes.

0 fine, 1 a failure the user can cause, 2 usage, 130 interrupted. stdout is data, stderr is for people.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path

from tracekit.errors import NoTerminalError, OutputError, TracekitError
from tracekit.plain import plain


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

        with Progress() as progress:
            found = report(open_subject(options.inputs, progress), options.baseline)
        if options.format == "text" and options.output is None:
            from rich.console import Console

            from tracekit.draw import text

            console = Console(highlight=False, emoji=False, markup=False)
            if not console.is_terminal:
                console.width = 160
            text.show(found, console, options.rows)
            return 0
        if options.format == "json":
            from tracekit.draw.json import render as render_json

            content = render_json(found) + "\n"
        elif options.format == "markdown":
            from tracekit.draw.markdown import render as render_markdown

            content = render_markdown(found, options.rows)
        else:
            content = _as_text(found, options.rows)
        return _write(content, options.output)


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
        parser.add_argument("--param", action="append", type=_pair, default=[], metavar="KEY=VALUE")
        parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
        parser.add_argument("--backend", default="inductor", help="inductor or aot_eager (default: inductor)")
        parser.add_argument("--steps", type=_positive, default=20, help="profiled steps (default: 20)")
        parser.add_argument("--warmup", type=_positive, default=10, help="steps before, at least (default: 10)")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--timeout", type=float, default=1800, metavar="S", help="seconds a pass may take")
        parser.add_argument("-o", "--output", type=Path, default=Path("run.json"), metavar="FILE")

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
            print(f"Wrote {plain(str(path))}", file=sys.stderr)
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
        from tracekit.trace import cache
        from tracekit.units import size

        where = plain(str(cache.home()))
        if options.clear:
            print(f"Removed {cache.clear()} traces from {where}", file=sys.stderr)
            return 0
        kept = cache.entries()
        for entry in kept:
            print(f"{size(entry.size):>10}  {plain(str(entry.told.get('path', '')))}")
        print(f"{len(kept)} traces, {size(sum(entry.size for entry in kept))} in {where}", file=sys.stderr)
        return 0


VERBS = (Capture, Report, Tui, Export, Cache, Doctor)


def entry() -> int:
    """The console script."""
    sys.meta_path.insert(0, _WithoutPandas())
    return main()


class _WithoutPandas(MetaPathFinder):
    """pyarrow imports pandas at its first array, a third of a report's start-up; no verb has a use for it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Refuse pandas; leave everything else to those who come after."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="tracekit", description="Where a PyTorch training step's wall time goes, to the nanosecond."
    )
    parser.add_argument("--version", action="version", version=f"tracekit {_version()}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb in VERBS:
        own = verbs.add_parser(verb.name, help=verb.__doc__, description=verb.__doc__)
        verb.arguments(own)
        own.set_defaults(run=verb.run)
    given, script_arguments = _split([*(sys.argv[1:] if arguments is None else arguments)])
    options = parser.parse_args(given)
    options.script_arguments = script_arguments
    if getattr(options, "no_cache", False):
        os.environ["TRACEKIT_NO_CACHE"] = "1"
    return _guarded(options.run, options)


def _split(given: list[str]) -> tuple[list[str], list[str]]:
    """A capture's own arguments, and those after `--`, which are the script's."""
    at = given.index("--") if given[:1] == [Capture.name] and "--" in given else len(given)
    return given[:at], given[at + 1 :]


def _guarded(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        code = run(options)
        sys.stdout.flush()
        return code
    except TracekitError as error:
        print(f"tracekit: {plain(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tracekit: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): what it wanted, it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


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
    rows = int(text)
    if rows < 0:
        raise ValueError
    return rows


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError
    return key, value


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _as_text(found: object, rows: int | None) -> str:
    import io

    from rich.console import Console

    from tracekit.draw import text
    from tracekit.report import Report as Found

    assert isinstance(found, Found)
    written = io.StringIO()
    text.show(found, Console(file=written, width=160, highlight=False, emoji=False, markup=False), rows)
    return written.getvalue()


def _write(content: str, path: Path | None) -> int:
    if path is None:
        sys.stdout.write(content)
        return 0
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from None
    print(f"Wrote {plain(str(path))}", file=sys.stderr)
    return 0


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tracekit")
    except PackageNotFoundError:
        return "unknown"
