"""The run file: what was captured, under which conditions, and where each variant's traces lie."""

import math
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tracekit.errors import BadRunError, DirectoryGivenError, NoSuchFileError, OutputError, UnreadableFileError

SCHEMA = "tracekit.run/1"
# `crash`: the process died without a word. `failed` is what older files say: it reads as `error`.
Outcome = Literal["ok", "oom", "timeout", "crash", "error", "skipped", "interrupted", "failed"]
Which = Literal["cold", "steady", "detail"]
# What a file may say; readers divide by a step's time, and take quantiles of the steps.
_Ns = Annotated[int, msgspec.Meta(ge=0)]
_StepNs = Annotated[int, msgspec.Meta(gt=0)]
_TracePath = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]  # no system opens a name with a NUL
_LEAST_TOLERANCE = 1e-4  # of the loss, relative: in FP32 other orders of summation stay below it in most trainings
_DRIFTS = 3  # one drawn drift is no bound
_SNIFFED_BYTES = 4096
_LITTER_SECONDS = 60  # a write takes milliseconds: a part file older than this was left by a killed process


class Compile(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation. Times are unix ns, the trace's clock: `baseTimeNanoseconds + ts`."""

    id: str  # "frame/attempt", as in the trace's `…_data: … compile_id=` markers
    frame: int | None = None
    attempt: int | None = None
    kind: Literal["first", "recompile", "backward", "cudagraph", "autotune"]
    span: str = ""  # what the compiler calls it: of a "cudagraph" whether it recorded one, or prepared to
    reason: str | None = None  # every cache entry's first failing guard, as Dynamo words it
    guard: str | None = None  # the failing guard alone
    code: str | None = None  # "file.py:12 forward": the user's function
    start_ns: int
    end_ns: int
    thread: int  # native thread id, the trace's tid
    phases: dict[str, int] = {}  # name → ns of its own, children left out: they add up to the compilation
    step: int | None = None  # the N of ProfilerStep#N
    during: str = msgspec.field(name="pass", default="")  # "cold", "warmup", "steady", "detail" or ""
    failed: str | None = None  # why no code came out of it
    guard_ns: int | None = None  # one evaluation of its guards, as Dynamo timed it; torch 2.7 and later


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """One graph break. A recompilation meets those of its frame again: each time it is one more."""

    compile: str
    reason: str
    file: str | None = None
    line: int | None = None
    stack: str = ""
    t_ns: int


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Dynamo gave up on a frame: from here on it runs eagerly."""

    frame: int | None = None
    file: str | None = None
    line: int | None = None
    name: str | None = None
    reason: str | None = None
    t_ns: int


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Inductor recorded no CUDA graph of what it compiled, or gave up recording it anew."""

    compile: str | None = None
    reason: str
    file: str | None = None  # the user's line that stood in the way, where it says so
    line: int | None = None
    t_ns: int


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiler did in the profiled pass, in order of time."""

    compiles: list[Compile] = []
    breaks: list[Break] = []
    limits: list[Limit] = []
    skips: list[Skip] = []


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of torch.compile; `compile` false is eager."""

    compile: bool
    mode: str | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    backend: str | None = None
    options: dict[str, Any] = {}


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; each note is one sentence about a difference."""

    mode: str | None = None
    notes: list[str] = []
    remarks: list[str] = []  # worth knowing, and nothing to doubt
    ran_eagerly: str | None = None  # why, where compiling was asked for and nothing compiled


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """Paths relative to the run file, with forward slashes."""

    cold: _TracePath | None = None
    steady: _TracePath | None = None
    detail: _TracePath | None = None


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One unprofiled pass, in a process of its own."""

    round: Annotated[int, msgspec.Meta(ge=0)]  # 0 is the first, with empty caches; from 1 on the variants take turns
    started_ns: int  # unix ns
    step_ns: _StepNs  # median of step_all_ns
    step_all_ns: Annotated[list[_Ns], msgspec.Meta(min_length=1)]
    counted: bool = True  # the variant's step_ns rests on it
    seconds: float = 0  # all of it, from its start to its end
    load: float | None = None  # the machine's load average of the minute before; None where no system tells
    compiles_timed: int = 0  # compilations while its timed steps ran


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The unprofiled passes: the step time to quote."""

    step_ns: _StepNs  # of one pass the median of step_all_ns; of several the geometric mean of their medians
    step_all_ns: Annotated[list[_Ns], msgspec.Meta(min_length=1)]  # of all the passes that count
    spread_ns: _Ns  # between the quartiles
    first_steps_ns: list[int] = []  # steps 0–2, where compilation shows
    warmup_steps: int = 0  # steps before the timed ones, the first three included
    compile_ns: int = 0  # wall time inside compilations
    compiles: int = 0
    compiles_timed: int = 0  # of these, while the timed steps ran: they never settled
    infer_ns: int | None = None  # median of the recipe's infer()
    clock: Literal["cuda events", "perf_counter"]
    passes: list[Pass] = []  # in order of time; a run of an earlier version has one, and does not list it

    @property
    def steps(self) -> int:
        """How many steps were timed."""
        return len(self.step_all_ns)

    @property
    def counted(self) -> list[Pass]:
        """The passes on which the step time rests."""
        return [each for each in self.passes if each.counted]


class Profiled(msgspec.Struct, frozen=True, kw_only=True):
    """The profiled pass: never to be quoted, only to state the profiler's inflation."""

    step_ns: _StepNs  # median on a CPU; the mean on a GPU, which the host runs ahead of
    steps: int


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Peaks of the unprofiled pass; None where there is no such device."""

    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    host_peak_rss_bytes: int | None = None


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One way of running the recipe, and everything known about it."""

    name: str
    outcome: Outcome
    error: str | None = None  # one line
    params: dict[str, Any] = {}  # only those that differ from the run's
    requested: Requested
    effective: Effective = Effective()
    traces: Traces = Traces()
    measured: Measured | None = None
    profiled: Profiled | None = None
    memory: Memory = Memory()
    gpu: dict[str, Any] = {}  # clocks, power and what held them down, asked right after the timed steps, under load
    losses: list[float | None] = []  # of the check run: seeded, random numbers as in eager; None is not finite
    loss_drift: float | None = None  # how far they move when sums round differently, relative; of eager variants
    metrics: dict[str, float | None] = {}  # the recipe's evaluate() after the check run
    step: str = ""  # what a step of a script is: "1 step of Adam, 4 micro-batches (backward passes)"
    ledger: Ledger = Ledger()

    def __post_init__(self) -> None:
        if self.outcome == "failed":
            msgspec.structs.force_setattr(self, "outcome", "error")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One capture: a recipe, its conditions, and a result for each variant."""

    schema: str = SCHEMA
    created: str  # ISO 8601 with offset; tells runs apart
    tracekit: str
    recipe: str  # its name, "gcn_cora"
    script: str  # its path as given
    params: dict[str, Any] = {}
    data: str | None = None  # what it trained on, in the recipe's own words
    device: str = "cpu"
    steps: int = 0  # profiled steps asked for
    warmup: int = 0
    seed: int = 0
    environment: dict[str, Any] = {}
    planned: list[str] = []  # variants asked for: more than `variants` where the capture was cut short
    variants: list[Variant]

    def variant(self, name: str) -> Variant | None:
        """The variant of that name."""
        return next((variant for variant in self.variants if variant.name == name), None)

    def trace_path(self, run_file: str | Path, variant: Variant, which: Which = "steady") -> Path | None:
        """Where that trace lies, given where the run file lies; None if it was not captured."""
        named: str | None = getattr(variant.traces, which)
        if named is None:
            return None
        folder = Path(run_file).resolve().parent
        path = (folder / named).resolve()
        if not path.is_relative_to(folder):
            raise BadRunError(run_file, f"the trace {named} of {variant.name} lies outside the run's folder")
        return path


def is_run(source: str | Path | bytes) -> bool:
    """Does this look like a run file? Reads at most 4 KiB."""
    if not isinstance(source, bytes):
        try:
            with open(source, "rb") as file:
                source = file.read(_SNIFFED_BYTES)
        except OSError:
            return False
    head = source[:_SNIFFED_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"{") and b'"tracekit.run/' in head


def read(path: str | Path) -> Run:
    """The run in this file, validated."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise NoSuchFileError(path) from None
    except IsADirectoryError:
        raise DirectoryGivenError(path) from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or str(error)) from None
    return _decode(content, path)


def write(run: Run, path: str | Path) -> Path | None:
    """Put the run there in one instant; an earlier run moves aside to `run-<its time>.json`, never lost: says where.

    A link is written through: it stays, and what it leads to is replaced.
    """
    path = Path(os.path.realpath(path) if os.path.islink(path) else path)
    try:
        _sweep_litter(path)
        part = _write_part(msgspec.json.format(msgspec.json.encode(run), indent=1), path)
        try:
            aside = _keep_earlier(path, run)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from None
    return aside


def divergence(losses: list[float | None], others: list[float | None]) -> float | None:
    """The largest difference of two curves, relative to the first; None where they cannot be compared.

    Of curves that are not equally long the common beginning: a pass of a slow script may be shorter.
    """
    if not losses or not others:
        return None
    pairs = [*zip(losses, others, strict=False)]
    if any((one is None) != (other is None) for one, other in pairs):
        return math.inf
    finite = [(one, other) for one, other in pairs if one is not None and other is not None]
    return max((abs(one - other) / max(abs(one), 1e-12) for one, other in finite), default=0.0)


def loss_tolerance(*drifts: float | None) -> float:
    """How far losses may lie apart before it says something, where rounding alone moves them so far."""
    return max([_LEAST_TOLERANCE, *(_DRIFTS * each for each in drifts if each is not None)])


def now() -> str:
    """The time for `created`, with offset and microseconds."""
    return datetime.now(UTC).astimezone().isoformat()


def stamp(created: str) -> str:
    """`2026-11-21T07:05:01+00:00` → `20261121-070501`, as in the names of folders and earlier runs."""
    return datetime.fromisoformat(created).strftime("%Y%m%d-%H%M%S")


def _decode(content: bytes, path: str | Path) -> Run:
    try:
        schema = msgspec.json.decode(content, type=_Header).schema
        if schema.rpartition("/")[0] != "tracekit.run":
            raise BadRunError(path, "it has no tracekit.run schema")
        if schema != SCHEMA:
            raise BadRunError(path, f"its schema is {schema}, this version reads {SCHEMA}")
        run = msgspec.json.decode(content, type=Run)
        datetime.fromisoformat(run.created)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadRunError(path, str(error).splitlines()[0]) from None
    names = [variant.name for variant in run.variants]
    if not names or len(set(names)) < len(names):
        raise BadRunError(path, "two variants share a name" if names else "it holds no variants")
    return run


class _Header(msgspec.Struct):
    schema: str = ""


def _write_part(content: bytes, path: Path) -> Path:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with open(part, "wb") as file:
        file.write(content + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return part


def _sweep_litter(path: Path) -> None:
    for part in path.parent.glob(f".{path.name}.*.part"):
        if time.time() - part.stat().st_mtime > _LITTER_SECONDS:
            part.unlink(missing_ok=True)


def _keep_earlier(path: Path, run: Run) -> Path | None:
    """Give an earlier run a second name, and say it; `path` itself stays whole until the new one replaces it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        created = _decode(content, path).created
    except BadRunError:
        created = datetime.fromtimestamp(path.stat().st_mtime).isoformat()
    if created == run.created:
        return None
    return _link_aside(path, content, path.with_name(f"{path.stem}-{stamp(created)}{path.suffix}"))


def _link_aside(path: Path, content: bytes, aside: Path) -> Path:
    wanted, tries = aside, 1
    while True:
        try:
            os.link(path, aside)
            return aside
        except FileExistsError:
            if aside.is_file() and aside.read_bytes() == content:
                return aside  # a capture was killed between keeping this one and replacing it
            tries += 1
            aside = wanted.with_stem(f"{wanted.stem}-{tries}")
        except OSError:  # a file system without hard links
            _copy_aside(content, aside)
            return aside


def _copy_aside(content: bytes, aside: Path) -> None:
    part = _write_part(content, aside)
    os.replace(part, aside)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
