"""What verbs of the command line are and share: the inputs, common options, and the types of options."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from tracekit.findings.choice import Choice

NOT_CHECKED = 3  # the exit code of a check that could not be made, in which 1 is a verdict


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """The inputs, and the options for reading them."""
    parser.add_argument(
        "inputs",
        nargs="+",
        type=source,
        metavar="INPUT",
        help="a trace, a folder of them, the run.json of a capture, an address (s3://…), - for standard input, or "
        "'sample' for the run that comes with tracekit",
    )
    parser.add_argument(
        "--steps",
        choices=("annotated", "infer"),
        default="infer",
        help="what to do if a trace has no ProfilerStep: infer steps from what plainly repeats in it (infer, the "
        "default), or take all of it as one recording (annotated)",
    )
    add_no_cache(parser)
    parser.add_argument(
        "--no-ranks",
        action="store_true",
        help="make each trace a variant of its own, even if several are ranks of one job",
    )


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """The option that leaves the cache alone."""
    parser.add_argument("--no-cache", action="store_true", help="read every trace anew, and cache nothing")


def add_readers(parser: argparse.ArgumentParser) -> None:
    """The options that say what reads the ranks of a job, if there are many."""
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="read the ranks of a job in N processes on this machine"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="read the ranks with the workers of this Dask scheduler (tcp://…), where the traces are",
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The option that selects cells of a study."""
    parser.add_argument(
        "--only",
        type=selection,
        default={},
        metavar="AXIS=VALUE,…",
        help="use only these cells of a study, and the baselines that they are compared with, as in "
        "'model=gat|gcn,mode=default'",
    )


def add_baseline(parser: argparse.ArgumentParser) -> None:
    """The option that chooses the baseline."""
    parser.add_argument(
        "--baseline", metavar="NAME", help="variant to compare the others with (default: the first of each run)"
    )


def add_choice(parser: argparse.ArgumentParser) -> None:
    """The options that choose which findings are listed."""
    for option, meaning in (("--select", "list only these findings"), ("--ignore", "do not list these findings")):
        parser.add_argument(
            option,
            type=names,
            default=(),
            metavar="ID,…",
            help=f"{meaning}: ids, or how ids begin (tracekit explain-finding lists them); figures stay the same",
        )


def choice_given(options: argparse.Namespace) -> "Choice | None":
    """What these options choose; None for all findings. Raises UnknownIdError."""
    if not options.select and not options.ignore:
        return None
    from tracekit.report.explained import choice_of

    return choice_of(options.select, options.ignore)


def add_confidential(parser: argparse.ArgumentParser) -> None:
    """The option that hides what is the user's."""
    parser.add_argument(
        "--confidential",
        action="store_true",
        help="show stand-ins such as file-1.py and function-3 for all names that are not PyTorch's, CUDA's or those of "
        "public packages, and no source",
    )


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    """The options with what only the user knows about a trace that tracekit did not capture."""
    parser.add_argument(
        "--mine",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="count this package as your code, in a trace that was not captured by tracekit; repeatable",
    )
    parser.add_argument(
        "--compile-log",
        type=Path,
        metavar="DIR",
        help="the compiler's log for a trace that was not captured by tracekit: the folder that TORCH_TRACE named",
    )


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """The option that only a recipe takes."""
    parser.add_argument(
        "--param",
        dest="params",
        action=_Pairs,
        type=pair,
        default={},
        metavar="KEY=VALUE",
        help="a parameter of the recipe, repeatable (default: those in its PARAMS)",
    )


class _Pairs(argparse.Action):
    """Collects what `pair` returns; of one key, the last value counts."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), values[0]: values[1]})


def given(options: argparse.Namespace, kind: Any) -> dict[str, Any]:
    """What was given of the settings that a struct declares, whose defaults hold for the others."""
    return {name: value for name, value in vars(options).items() if name in kind.__struct_fields__}


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that only a script needs, because it knows nothing about steps."""
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module, as in python -m")
    parser.add_argument(
        "--script",
        dest="is_script",
        action="store_true",
        help="treat the file as a training script, even if it defines setup(ctx) like a recipe",
    )
    parser.add_argument(
        "--in-place", action="store_true", help="keep what a script writes in its passes (default: discard it)"
    )
    parser.add_argument(
        "--step-at",
        default=argparse.SUPPRESS,
        metavar="WHERE",
        help="where a step of a script ends: optimizer, call (of the outermost module), or FILE:LINE; by default where "
        "it calls tracekit.step(), or else where an optimizer steps, or else at a call, or else after backward()",
    )
    parser.add_argument(
        "--step-every",
        type=positive,
        default=argparse.SUPPRESS,
        metavar="N",
        help="how many of these ends make a step: 4 means 4 optimizer steps with all their micro-batches (default: 1)",
    )


def source(text: str) -> Path:
    """An input: a path, or the run that comes with tracekit."""
    path = Path(text)
    if text != "sample" or path.exists():
        return path
    from tracekit.installed import sample_run

    return sample_run()


def rows(text: str) -> int:
    """A number of rows, or more than any table has."""
    if text == "all":
        return sys.maxsize
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a row count: give 0 or more, or all")
    return int(text)


def names(text: str) -> tuple[str, ...]:
    """Names, separated by commas."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def selection(text: str) -> dict[str, list[str]]:
    """`model=gat|gcn,mode=default` → the values of each axis."""
    axes: dict[str, list[str]] = {}
    for piece in names(text):
        axis, equals, values = piece.partition("=")
        if not equals or not axis or not values:
            raise argparse.ArgumentTypeError(f"{piece!r} selects nothing: give AXIS=VALUE")
        axes[axis] = values.split("|")
    return axes


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not a parameter: give KEY=VALUE")
    return key, value


def positive(text: str) -> int:
    """A count of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count: give 1 or more")
    return int(text)


def percentage(text: str) -> float:
    """A percentage, as a share: `5` or `5%`."""
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage: give 0 or more")
    return share


class Verb:
    """A verb: the docstring of its class is its help."""

    name: ClassVar[str]
    reads_traces: ClassVar[bool] = False  # NumPy is imported first, without the threads that nothing here needs
    needs_pandas: ClassVar[bool] = False  # which otherwise counts as not installed, because importing it is slow
    runs_scripts: ClassVar[bool] = False  # what follows `--` on the command line belongs to a script
    failure: ClassVar[int] = 1  # the exit code of an error

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        raise NotImplementedError

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        raise NotImplementedError
