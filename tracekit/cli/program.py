"""Turns the command line into a verb, and errors into exit codes; no other module does either.

Exit codes: 0 success, 1 a failure that the user can cause, or a check that fails, 2 wrong usage, 3 a check that could
not be made, 130 interrupted (143 by SIGTERM, 129 by SIGHUP).
"""

import argparse
import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, NoReturn

from tracekit.base.deprecation import of_command_line
from tracekit.base.names import sanitize
from tracekit.cli.arguments import Verb
from tracekit.cli.audit import AuditVerb
from tracekit.cli.cache import CacheVerb
from tracekit.cli.capture import CaptureVerb
from tracekit.cli.check import CheckVerb
from tracekit.cli.doctor import DoctorVerb
from tracekit.cli.explain import ExplainVerb
from tracekit.cli.explain_finding import ExplainFindingVerb
from tracekit.cli.export import ExportVerb
from tracekit.cli.hta import HtaVerb
from tracekit.cli.lines import LinesVerb
from tracekit.cli.mcp import McpVerb
from tracekit.cli.output import open_streams, tell, write_out
from tracekit.cli.plot import PlotVerb
from tracekit.cli.recipes import RecipesVerb
from tracekit.cli.report import ReportVerb
from tracekit.cli.restore import RestoreVerb
from tracekit.cli.skill import SkillVerb
from tracekit.cli.snap import SnapVerb
from tracekit.cli.sql import SqlVerb
from tracekit.cli.start_up import admit_pandas, import_numpy, refuse_pandas
from tracekit.cli.sweep import SweepVerb
from tracekit.cli.tui import TuiVerb, is_on_a_terminal
from tracekit.cli.what_if import WhatIfVerb
from tracekit.errors import TracekitError
from tracekit.errors.asking import NoFolderError, StandardOutputError
from tracekit.errors.reading import UnreadableFileError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

VERBS: tuple[type[Verb], ...] = (
    RecipesVerb,
    CaptureVerb,
    SweepVerb,
    AuditVerb,
    SnapVerb,
    ReportVerb,
    LinesVerb,
    WhatIfVerb,
    TuiVerb,
    CheckVerb,
    ExportVerb,
    SqlVerb,
    HtaVerb,
    PlotVerb,
    ExplainVerb,
    ExplainFindingVerb,
    CacheVerb,
    RestoreVerb,
    DoctorVerb,
    McpVerb,
    SkillVerb,
)
_EXIT_CODES = (
    "Exit codes: 0 success; 1 failure, or check found the run to be worse; 2 wrong usage; 3 check could not be made, "
    "or report --strict found a trace that breaks a law; 130 interrupted."
)
_MESSAGE_WIDTH = 400  # of argparse's message about an argument
_MANY_OBJECTS = 200_000  # between two garbage collections: importing makes as many, and almost none are garbage


def script() -> NoReturn:
    """The console script. What the process holds is not taken apart at its end, which would take as long as a twentieth
    of a report."""
    code = entry()
    if threading.active_count() > 1 or "duckdb" in sys.modules:  # which complains about what is left
        sys.exit(code)
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # what can be written was, and is flushed
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def entry() -> int:
    """All that the console script does; returns the exit code."""
    from tracekit.base.interruption import by_any_signal

    gc.set_threshold(_MANY_OBJECTS)
    refuse_pandas()
    open_streams()
    with by_any_signal():
        return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    try:
        try:
            return _run([*(sys.argv[1:] if arguments is None else arguments)])
        finally:
            write_out()  # flush what others have printed, including argparse
    except KeyboardInterrupt as interrupt:
        tell("tracekit: interrupted")
        name = str(interrupt)  # as raised by tracekit.base.interruption; empty for Ctrl-C
        return 128 + (signal.Signals[name] if name in signal.Signals.__members__ else signal.SIGINT)
    except BrokenPipeError:
        return 0  # the reader of our output has ended (`| head`), and has what it wanted
    except (TracekitError, OSError) as error:
        return _failed(error, code=1)


class _Version(argparse.Action):
    """Prints the version, which is looked up only then, because importing what reads a package's metadata is slow."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from tracekit.installed import version

        write_out(f"tracekit {version() or 'unknown'}\n")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """A parser whose messages quote the command line without letting it control the terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(sanitize(message, _MESSAGE_WIDTH))

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if file is sys.stdout:
            write_out(message)  # argparse ignores errors when writing
        else:
            super()._print_message(message, file)


def _run(arguments: list[str]) -> int:
    parser = _Parser(
        prog="tracekit",
        usage="%(prog)s [-h] [--version] VERB ...\n       %(prog)s RUN_OR_TRACE ...",
        description="Find out where a PyTorch training step's wall time goes, to the nanosecond. Without a verb, runs "
        "and traces are explored in the terminal or, in a pipe, reported.",
        epilog=_EXIT_CODES,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    verbs = parser.add_subparsers(required=True, metavar="VERB", prog=parser.prog)
    for verb in VERBS:
        subparser = verbs.add_parser(verb.name, help=verb.__doc__, description=verb.__doc__)
        verb.arguments(subparser)
        subparser.set_defaults(verb=verb)
    arguments = _with_verb(arguments, parser)
    # What follows `--` belongs to the script, if the verb runs any.
    runs_scripts = any(verb.runs_scripts for verb in VERBS if arguments[:1] == [verb.name])
    separator = arguments.index("--") if runs_scripts and "--" in arguments else len(arguments)
    options, unknown = parser.parse_known_args(arguments[:separator])
    if unknown:
        option_names = [name for action in verbs.choices[options.verb.name]._actions for name in action.option_strings]
        hint = getattr(options, "unknown", "") or _suggestion(unknown[0].partition("=")[0], option_names)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint and f'. {hint}'}")
    options.arguments = arguments[separator + 1 :]
    for told in of_command_line(options.verb.name, arguments[1:separator]):
        tell(f"tracekit: {told}")
    if options.verb.needs_pandas:
        admit_pandas()
    if options.verb.reads_traces:
        import_numpy()
    if getattr(options, "no_cache", False):
        os.environ["TRACEKIT_NO_CACHE"] = "1"
    try:
        if options.verb is not RestoreVerb:
            _say_what_to_restore()
        with _disclosing(options):
            code: int = options.verb.run(options)
    except BrokenPipeError:
        raise
    except (TracekitError, OSError) as error:
        return _failed(error, options.verb.failure)
    return code


def _disclosing(options: argparse.Namespace) -> AbstractContextManager[None]:
    """A context in which inputs are read without their secrets, if `--confidential` is given. Raises
    NotConfidentialError."""
    if not getattr(options, "confidential", False):
        return nullcontext()
    from tracekit.base.disclosure import confidential
    from tracekit.cli.opening import refuse_to_disclose
    from tracekit.confidential import Confidential

    refuse_to_disclose(options)
    return confidential(Confidential(getattr(options, "mine", ())))


def _with_verb(arguments: list[str], parser: _Parser) -> list[str]:
    """The arguments, with a verb where they begin with what is to be read: `tui` on a terminal, else `report`."""
    names = [verb.name for verb in VERBS]
    first = arguments[0] if arguments else ""
    if not first or (first.startswith("-") and first != "-") or first in names:
        return arguments
    if first in ("-", "sample") or os.path.lexists(first) or os.sep in first or first.endswith((".json", ".gz")):
        return [TuiVerb.name if is_on_a_terminal() else ReportVerb.name, *arguments]
    hint = _suggestion(first, names) or f"The verbs are {', '.join(names)}."
    parser.error(f"'{first}' is neither a verb nor an existing file. {hint}")


def _suggestion(word: str, candidates: list[str]) -> str:
    """A question whether a similar word was meant; empty if none is similar."""
    from difflib import get_close_matches

    similar = get_close_matches(word, candidates, n=1)
    return f"Did you mean {similar[0]}?" if similar else ""


def _say_what_to_restore() -> None:
    """A capture that was killed may have left files changed. What looks for it is imported only if need be."""
    from tracekit.base.workspace import state_folder

    with suppress(NoFolderError, OSError):
        if not any(state_folder("captures").iterdir()):
            return
        from tracekit.capture.guardian import abandoned

        if journal_count := len(abandoned()):
            captures = "a capture was killed" if journal_count == 1 else f"{journal_count} captures were killed"
            tell(f"tracekit: {captures} before the files it changed were put back. See: tracekit restore --dry-run")


def _failed(error: TracekitError | OSError, code: int) -> int:
    if isinstance(error, OSError):
        why = error.strerror or str(error)
        # An error that names no file is about a stream.
        error = UnreadableFileError(error.filename, why) if error.filename else StandardOutputError(why)
    tell(f"tracekit: {sanitize(str(error))}")
    return code
