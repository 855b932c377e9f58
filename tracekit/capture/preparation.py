"""Before anything is timed, examines the recipe and the machine, and refuses what cannot work.

Can another Python run a pass? Checked before anything is captured, by starting that Python once.

Is a file a training script or a recipe? Judged by its source, without running it.
"""

import ast
import math
import shlex
import subprocess
from pathlib import Path
from typing import Any

from msgspec import Struct

from tracekit import installed
from tracekit import run as runs
from tracekit.capture import environment, messages, process
from tracekit.capture.child.program import marked
from tracekit.capture.device import GPU
from tracekit.capture.job import Job, PassResult
from tracekit.capture.options import Options, PlannedVariant, parse_all, plan_variants
from tracekit.catalogue import recipes, similar
from tracekit.errors.capturing import (
    BadParameterError,
    BrokenSyntaxError,
    NoCompilerError,
    NoInterpreterError,
    NoSuchDeviceError,
    NoSuchLineError,
    NoSuchRecipeError,
    NotARecipeError,
    NoTorchError,
    NotPythonError,
    OnlyRecipesHaveEpochsError,
    OnlyRecipesTakeThisError,
    OnlyScriptsHaveRanksError,
    OnlyScriptsTakeThisError,
    RecipeFailedError,
    UnsupportedDeviceError,
)
from tracekit.run import Run

_NEEDED = ("torch", "msgspec")
_OLDEST_PYTHON = (3, 11)
_QUESTION = f"""
import importlib.util, sys
print("Python %d.%d" % sys.version_info[:2] if sys.version_info < {_OLDEST_PYTHON} else "")
print(" and ".join(name for name in {_NEEDED} if importlib.util.find_spec(name) is None))
"""
_PATIENCE_S = 60


class Prepared(Struct, frozen=True):
    """A run without variants yet, the variants to capture, and the parameters given for all of them."""

    run: Run
    variants: list[PlannedVariant]
    overrides: dict[str, Any]
    is_script: bool = False  # not a recipe
    period: int = 1  # the number of steps after which their durations repeat, once the first passes have shown it


def prepare(options: Options) -> Prepared:
    """Load the recipe in a child process, let it fetch its data, and plan the variants. A script is not run."""
    check_options(options)
    if options.python:
        check(options.python)
    is_script = trains_by_itself(options)
    check_kind(options, is_script)
    result = _inspect(options, is_script)
    overrides = parse_all(options.params, result.params)
    params = {**result.params, **overrides}
    variants = plan_variants(options.variants, params, result.variants, options.backend)
    backends = [("--backend", options.backend), *(("backend", variant.requested.backend) for variant in variants)]
    for name, backend in backends:
        if backend is not None and backend not in result.backends:
            raise BadParameterError(name, backend, f"one of {', '.join(result.backends)}")
    device = _choose_device(options, result)
    uses_inductor = any(variant.requested.backend == "inductor" for variant in variants)
    if uses_inductor and (missing := environment.missing_compiler(device)):
        raise NoCompilerError(missing)
    if is_script:  # its arguments and how its steps are counted, as parameters
        own_params = {
            "arguments": shlex.join(options.arguments),
            "step_every": options.step_every if options.step_every > 1 else None,
            "nproc": options.ranks if options.ranks > 1 else None,
            "step_at": options.step_at,
        }
        params = {name: value for name, value in own_params.items() if value}
    run = Run(
        created=runs.now(),
        tracekit=installed.version() or "0",
        recipe=str(options.program).rpartition(".")[2] if options.module else Path(options.program).stem,
        script=str(options.program),
        params=params,
        device=device,
        steps=options.steps,
        warmup=options.warmup,
        seed=options.seed,
        epochs=options.epochs,
        environment=result.environment,
        planned=[variant.name for variant in variants],
        variants=[],
    )
    return Prepared(run, variants, overrides, is_script)


def check_options(options: Options) -> None:
    """Refuse options that no capture and no audit can work with."""
    if not options.module:
        if not Path(options.program).is_file():
            raise NoSuchRecipeError(options.program, similar(options.program, recipes()))
        if Path(options.program).suffix != ".py":
            raise NotPythonError(options.program)
        statements(options.program)
    file, _, line = options.step_at.rpartition(":")
    if not file and options.step_at not in ("", "optimizer", "call"):
        raise BadParameterError("--step-at", options.step_at, "optimizer, call, or FILE:LINE")
    if file:
        if not line.isdecimal() or not Path(file).is_file():
            raise NoSuchLineError(file, line)
        statements(file)
        marked(Path(file).read_bytes(), file, int(line))
    if not options.python and not environment.has_torch():
        raise NoTorchError
    for name, value, minimum in (
        ("--steps", options.steps, 1),
        ("--warmup", options.warmup, 0),
        ("--step-every", options.step_every, 1),
        ("--passes", options.passes, 1),
        ("--epochs", options.epochs, 0),
        ("--seeds", options.seeds, 1),
        ("--threads", options.threads, 0),
    ):
        if value < minimum:
            raise BadParameterError(name, value, f"a whole number, {minimum} or more")
    if not 0 < options.timeout < math.inf:
        raise BadParameterError("--timeout", options.timeout, "a number of seconds above 0")
    if options.precision is not None and not 0 < options.precision < 1:
        raise BadParameterError("--precision", f"{options.precision:.0%}", "above 0 % and below 100 %")
    if options.budget is not None and not 0 <= options.budget < math.inf:
        raise BadParameterError("--budget", options.budget, "a number of seconds, 0 or more")


def trains_by_itself(options: Options) -> bool:
    """Whether the program is a script, by the options or by its content."""
    return options.is_script or options.module or is_script(options.program)


def check_kind(options: Options, is_script: bool, verb: str = "capture") -> None:
    """Refuse options for scripts that are given to a recipe, and the other way round."""
    if not is_script and (options.arguments or options.step_every > 1 or options.step_at):
        raise OnlyScriptsTakeThisError(options.program)
    if options.epochs and (is_script or options.workload == "inference"):
        raise OnlyRecipesHaveEpochsError(options.program)
    if options.ranks > 1 and not is_script:
        raise OnlyScriptsHaveRanksError(options.program)
    if is_script:
        for name, value in options.params.items():
            raise OnlyRecipesTakeThisError(options.program, name, value, verb)


def _inspect(options: Options, is_script: bool) -> PassResult:
    options.tell(messages.doing(Path(options.program).stem, "inspect"))
    job = Job(
        stage="inspect",
        program=str(options.program),
        params=dict(options.params),
        seed=options.seed,
        is_script=is_script,
        python=options.python,
        threads=options.threads,
    )
    with process.scratch() as scratch:
        result = process.perform(job, scratch, scratch / "inspect.log", options.timeout)
    for note in result.notes:
        options.tell(f"  {note}")
    if result.outcome != "ok":
        for line in messages.quoted(result.traceback):
            options.tell(line)
        raise RecipeFailedError(options.program, result.error or result.outcome, result.outcome)
    if not result.has_setup and not is_script:
        raise NotARecipeError(options.program, "it has no setup(ctx)")
    return result


def _choose_device(options: Options, result: PassResult) -> str:
    requested, available = options.device, result.devices
    if requested == "auto":
        if result.why_no_gpu:
            options.tell(messages.on_the_cpu(result.why_no_gpu))
        return available[0]
    if requested not in available:
        is_unsupported = result.accelerator not in (None, GPU) and requested.partition(":")[0] == result.accelerator
        raise UnsupportedDeviceError(requested) if is_unsupported else NoSuchDeviceError(requested, available)
    return requested


def check(python: str) -> None:
    """Raise NoInterpreterError with the reason if this executable cannot run a pass."""
    try:
        answer = subprocess.run(
            [python, "-c", _QUESTION], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except OSError as error:
        raise NoInterpreterError(python, error.strerror or "it does not start") from None
    except subprocess.TimeoutExpired:
        raise NoInterpreterError(python, f"no answer within {_PATIENCE_S} s") from None
    except subprocess.CalledProcessError as error:
        raise NoInterpreterError(python, f"it ended with exit code {error.returncode}") from None
    version, missing = [*answer.stdout.split("\n"), "", ""][:2]
    if version:
        raise NoInterpreterError(
            python, f"it is {version}, but {'.'.join(map(str, _OLDEST_PYTHON))} or later is needed"
        )
    if missing:
        raise NoInterpreterError(python, f"it has no {missing}")


def is_script(path: str | Path) -> bool:
    """Whether it is a training script; a recipe defines `setup`. Raises BrokenSyntaxError."""
    return not any(_defines_setup(statement) for statement in statements(path))


def statements(path: str | Path) -> list[ast.stmt]:
    """The statements of the file. Raises BrokenSyntaxError."""
    try:
        return ast.parse(Path(path).read_bytes()).body
    except SyntaxError as error:
        raise BrokenSyntaxError(path, error.lineno or 1, error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:  # old versions, and code that is nested too deeply
        raise BrokenSyntaxError(path, 1, str(error) or type(error).__name__) from None


def _defines_setup(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef(name="setup", args=arguments):
            return len(arguments.args) == 1 or arguments.vararg is not None  # setup(rank, world_size) is distributed
        case ast.ClassDef(name="setup"):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == "setup" for target in targets)
        case ast.ImportFrom(names=names):
            return any((alias.asname or alias.name) == "setup" for alias in names)
    return False
