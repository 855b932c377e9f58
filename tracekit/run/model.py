"""What was captured, under which conditions, and where each variant's traces are: the contents of a run file.

This includes the sizes of the graphs that steps receive, complete trainings, whether the machine was busy
meanwhile, and whether two training curves are the same.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from tracekit.errors.reading import BadRunError
from tracekit.run.ledger import Count, Ledger, Ns, Number, UnixNs
from tracekit.vocabulary.graph_size import GraphSize

SCHEMA = "tracekit.run/1"
# `crash`: the process died without an error message. Older files say `failed`, which is read as `error`.
Outcome = Literal["ok", "oom", "timeout", "crash", "error", "skipped", "interrupted", "failed"]
Window = Literal["cold", "steady", "detail"]
WINDOWS: tuple[Window, ...] = get_args(Window)  # in the order in which a pass takes them
Workload = Literal["training", "inference"]
# What the process of a pass does, in the usual order; `wait` is for its turn, or to be forked.
Activity = Literal["start", "import", "set up", "warm up", "compile", "wait", "steps", "trace", "losses", "end"]
# Limits on what a file may contain: readers divide by a step's time and take quantiles of the steps.
_StepNs = Annotated[int, msgspec.Meta(gt=0, le=1 << 53)]
_TracePath = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]  # no system opens a path that contains NUL
Counts = list[Count | None]
_Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
TrainingOutcome = Literal["ok", "oom", "timeout", "crash", "error", "skipped", "interrupted"]
_MOST_CROWDED = 100.0
_OWN_LOAD = 1.5  # load in cores that the passes themselves cause
_LEAST_TOLERANCE = 1e-4  # of the loss: in FP32, a different order of summation changes most trainings less
_LEAST_OF_GRADIENTS = 1e-3  # of the norm
_DRIFTS = 3  # a single measured drift is not an upper bound


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of torch.compile; if `compile` is false, the variant is eager."""

    compile: bool
    mode: str | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    backend: str | None = None
    options: dict[str, Any] = {}


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that took effect; each note is one sentence about a difference from those requested."""

    mode: str | None = None
    notes: list[str] = []
    remarks: list[str] = []  # worth knowing, but no reason for doubt
    ran_eagerly: str | None = None  # the reason, if compiling was requested but nothing was compiled

    def plus(self, notes: Iterable[str] = (), remarks: Iterable[str] = ()) -> "Effective":
        """The same with more notes and remarks."""
        return replace(self, notes=[*self.notes, *notes], remarks=[*self.remarks, *remarks])


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """Paths relative to the run file, with forward slashes."""

    cold: _TracePath | None = None
    steady: _TracePath | None = None
    detail: _TracePath | None = None
    loader: _TracePath | None = None  # the folder of what the loader's workers recorded meanwhile

    def of(self, window: Window) -> str | None:
        """The path of that trace; None if it was not captured."""
        path: str | None = getattr(self, window)
        return path

    def moved_under(self, folder: str) -> "Traces":
        """The paths as seen from the folder above: each with `folder` in front."""
        paths = {name: path for name in (*WINDOWS, "loader") if (path := getattr(self, name))}
        return replace(self, **{name: f"{folder}/{path}" for name, path in paths.items()})


class RankTraces(msgspec.Struct, frozen=True, kw_only=True):
    """The traces of one of the ranks after the first."""

    rank: _Positive
    traces: Traces = Traces()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A block of consecutive steps, after which the process waited while those of other variants took theirs."""

    started_ns: UnixNs  # unix ns
    steps: _Positive
    processor_ns: Ns  # of all threads of the process
    thread_ns: Ns | None = None  # processor time of the thread that drives the steps; None in older files
    # That this thread waited for a core, which is not in step_all_ns; None if it is, as on a GPU and in older files.
    queued_ns: Ns | None = None
    # What two pieces of work that are always the same took just before and after it, on average: one within a core's
    # own caches, and one all over a few MB. Empty in older files.
    yardsticks_ns: list[Ns] = []
    # Of the whole process, during its steps: pages that it was given anew, and how often a thread gave up its core, by
    # itself or not. None in older files.
    minor_faults: Count | None = None
    voluntary_switches: Count | None = None
    involuntary_switches: Count | None = None


class GraphSizes(msgspec.Struct, frozen=True, kw_only=True):
    """An entry for each of some steps, in order; None if no graph was seen in a step."""

    nodes: Counts = []  # all types together
    edges: Counts = []
    node_types: dict[str, Counts] = {}  # of heterogeneous graphs, by type
    edge_types: dict[str, Counts] = {}  # as "user__rates__movie"

    @staticmethod
    def of(steps: Sequence[GraphSize | None], by_type: bool = False) -> "GraphSizes | None":
        """The graphs of these steps; None if no graph was seen in any."""
        if not any(steps):
            return None
        nodes = [size.nodes if size else None for size in steps]
        edges = [size.edges if size else None for size in steps]
        return GraphSizes(
            nodes=[sum(counts.values()) if counts else None for counts in nodes],
            edges=[sum(counts.values()) if counts is not None else None for counts in edges],
            node_types=_by_type(nodes) if by_type else {},
            edge_types=_by_type(edges) if by_type else {},
        )


class StageTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pass took, or all rounds together."""

    stage: str  # "inspect", "measure", "live", "profile", "check", "train"
    round: Count = 0  # of the unprofiled passes; for all rounds together, their number
    seconds: float = 0.0  # as the capture saw it
    activities: dict[Activity, float] = {}  # as the process saw it, s; they add up to no more than `seconds`


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One unprofiled pass, in a separate process."""

    # 0 is the first, with empty caches; from 1 on the variants take turns, and their passes of a round are a pair.
    round: Count
    started_ns: UnixNs  # unix ns
    step_ns: _StepNs  # the typical one of step_all_ns: their median, if they are alike
    step_all_ns: Annotated[list[Ns], msgspec.Meta(min_length=1)]
    # Both are the same in all passes of a run: `with_common_period`. In runs of earlier versions, each pass decided.
    alike: bool = True  # if not, step_ns is a mean, over a period if the durations repeat
    period: _Positive = 1  # steps after which durations repeat; 1 if they do not
    counted: bool = True  # whether the variant's step_ns includes it
    seconds: float = 0  # from its start to its end
    load: float | None = None  # the machine's load average in the minute before; None if the system has none
    cores: _Positive | None = None  # that it may use; None if unknown
    compiles_timed: Count = 0  # compilations while its timed steps ran
    graphs: GraphSizes | None = None  # of the steps of step_all_ns, in order; None if no graph was seen
    # In order of step_all_ns. With turns, the passes of a round ran at the same time; without, one after the other.
    turns: list[Turn] = []
    parent: Count | None = None  # earlier versions forked passes; by this number, from the process of which round
    trace: _TracePath | None = None  # of a few steps after the last turn, under the profiler; relative, as all traces

    @property
    def steps_in_a_row(self) -> list[list[int]]:
        """The durations of its steps, ns, each turn by itself: between two turns, its process is halted."""
        remaining = iter(self.step_all_ns)
        return [[*islice(remaining, turn.steps)] for turn in self.turns] or [self.step_all_ns]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The unprofiled passes: the step time to quote."""

    step_ns: _StepNs  # of several passes, the geometric mean without the fifth at either end
    step_all_ns: Annotated[list[Ns], msgspec.Meta(min_length=1)]  # of all counted passes
    spread_ns: Ns  # the interquartile range
    first_steps_ns: list[Ns] = []  # steps 0–2, where compilation shows
    warmup_steps: Count = 0  # steps before the timed ones, the first three included
    compile_ns: Ns = 0  # wall time inside compilations
    compile_before_ns: Ns = 0  # of that, before the first step; runs of earlier versions did not tell
    compiles: Count = 0
    compiles_timed: Count = 0  # of these, during the timed steps: compilation never settled
    infer_ns: Ns | None = None  # a typical call of the recipe's infer()
    epoch_steps: _Positive | None = None  # None if steps do not belong to epochs
    clock: Literal["cuda events", "perf_counter"]
    passes: list[Pass] = []  # in order of time; runs of earlier versions had one pass and did not list it

    @property
    def steps(self) -> int:
        """How many steps were timed."""
        return len(self.step_all_ns)

    @property
    def counted_passes(self) -> list[Pass]:
        """The passes that the step time is taken from."""
        return [measured_pass for measured_pass in self.passes if measured_pass.counted]

    @property
    def alike(self) -> bool:
        """Whether most passes saw steps that are alike, so that the step time is a median."""
        unlike = sum(not measured_pass.alike for measured_pass in self.counted_passes)
        return 2 * unlike <= len(self.counted_passes)

    @property
    def period(self) -> int:
        """The number of steps after which their durations repeat; 1 if they do not."""
        return statistics.mode([measured_pass.period for measured_pass in self.counted_passes] or [1])


class Profiled(msgspec.Struct, frozen=True, kw_only=True):
    """The profiled pass, which only shows how much the profiler slows steps down; never to be quoted."""

    step_ns: _StepNs  # median on a CPU; the mean on a GPU, which the host runs ahead of
    steps: Count


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of the unprofiled pass; None if there is no such device, or the system does not report it.

    The start is right before the first measured step: data and model exist, the optimizer's state does not yet.
    """

    start_allocated_bytes: Count | None = None  # on the GPU
    peak_allocated_bytes: Count | None = None  # during the timed steps
    peak_reserved_bytes: Count | None = None
    split_peak_bytes: Count | None = None  # in unused parts of split blocks: the most that fragmentation costs
    allocated_in_step_bytes: Count | None = None  # including what is released again
    allocations_in_step: Count | None = None
    alloc_retries: Count | None = None  # how often the cache had to be emptied to get memory
    # In use while the process reserved most, compiling included: its own, its CUDA context, and what others use.
    device_peak_bytes: Count | None = None
    device_total_bytes: Count | None = None
    start_rss_bytes: Count | None = None  # resident on the host
    step_peak_rss_bytes: Count | None = None  # during the timed steps
    host_peak_rss_bytes: Count | None = None  # of the whole process, compilation included

    @property
    def above_start_bytes(self) -> int | None:
        """How much more is held at the peak of the timed steps than at the start: on the GPU, else on the host."""
        for peak, start in (
            (self.peak_allocated_bytes, self.start_allocated_bytes),
            (self.step_peak_rss_bytes, self.start_rss_bytes),
        ):
            if peak is not None:
                return max(peak - start, 0) if start is not None else None
        return None


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """One complete training, unprofiled, in a separate process."""

    seed: Number
    epochs: _Positive
    outcome: TrainingOutcome = "ok"
    error: str | None = None  # one line
    steps: Count = 0  # of an epoch
    epoch_all_ns: list[Ns] = []  # including compilation, which only the first seed does without a cache
    loss: float | None = None  # of the last step; None if it is not finite, or there is none
    metrics: dict[str, float | None] = {}  # the recipe's evaluate()


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One way of running the program, and everything that was measured about it."""

    name: str
    outcome: Outcome
    error: str | None = None  # one line
    params: dict[str, Any] = {}  # only those that differ from the run's
    workload: Workload = "training"  # what a step is: one of training, or the recipe's infer()
    requested: Requested
    effective: Effective = Effective()
    traces: Traces = Traces()  # of a job with several ranks, the first one's
    ranks: list[RankTraces] = []  # the other ranks
    measured: Measured | None = None
    profiled: Profiled | None = None
    memory: Memory = Memory()
    gpu: dict[str, Any] = {}  # clocks, power and reasons for throttling, read under load right after the timed steps
    losses: list[float | None] = []  # of the seeded check pass; None for a loss that is not finite
    loss_drift: float | None = None  # relative change of the losses when sums round differently; eager variants only
    gradients: list[float | None] = []  # of the same pass: the norm of all gradients at each step of an optimizer
    gradient_drift: float | None = None  # the relative change of these norms when sums round differently
    metrics: dict[str, float | None] = {}  # the recipe's evaluate() after the check pass
    trainings: list[Training] = []  # complete trainings, one for each seed, if requested
    spent: list[StageTime] = []  # where the time of its passes went, in the order of their ends
    ended: Count | None = None  # steps of a script in all; None if it was stopped earlier
    step: str = ""  # what a step of a script is: "1 step of Adam, 4 micro-batches (backward passes)"
    ledger: Ledger = Ledger()
    graphs: GraphSizes | None = None  # of all steps of the profiled pass: that of ProfilerStep#N is the Nth

    def __post_init__(self) -> None:
        if self.outcome == "failed":
            msgspec.structs.force_setattr(self, "outcome", "error")

    @property
    def gpu_neighbours(self) -> int:
        """How many other processes had its GPU open while it was measured, as far as that is known."""
        processes = self.gpu.get("processes")
        return processes - 1 if isinstance(processes, int) and processes > 1 else 0

    @property
    def gpu_throttled_by(self) -> list[str]:
        """What kept its GPU from running as fast as it could while it was measured, as far as that is known."""
        reasons = self.gpu.get("throttled_by")
        return [*map(str, reasons)] if isinstance(reasons, list) else []


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One capture: a recipe or script, its conditions, and a result for each variant."""

    schema: str = SCHEMA
    created: str  # ISO 8601 with offset; identifies the run
    tracekit: str
    recipe: str  # the name of the program, "gcn_cora"; the key is older than scripts
    script: str  # the program as given: the path of a recipe or script, or a module
    params: dict[str, Any] = {}
    data: str | None = None  # the data set, in the recipe's own words
    device: str = "cpu"
    steps: Count = 0  # profiled steps requested
    warmup: Count = 0
    seed: Number = 0
    epochs: Count = 0  # of each complete training; 0 if none was requested
    environment: dict[str, Any] = {}
    planned: list[str] = []  # variants requested: more than `variants` if the capture ended early
    variants: list[Variant]
    spent: list[StageTime] = []  # where the time went that is of no single variant
    why_no_turns: str = ""  # why whole passes took turns, not blocks of their steps; "" where blocks did

    def variant(self, name: str) -> Variant | None:
        """The variant of that name."""
        return next((variant for variant in self.variants if variant.name == name), None)

    def trace_path(
        self, run_file: str | Path, variant: Variant, window: Window = "steady", rank: int = 0
    ) -> Path | None:
        """The path of that trace, given the path of the run file; None if it was not captured."""
        rank_traces = {captured.rank: captured.traces for captured in variant.ranks}
        trace = (rank_traces.get(rank, Traces()) if rank else variant.traces).of(window)
        return _path_in_run(run_file, variant, trace) if trace is not None else None

    def loader_path(self, run_file: str | Path, variant: Variant, rank: int = 0) -> Path | None:
        """The folder of what the workers of that rank's loader recorded; None if nothing was."""
        ranks = {captured.rank: captured.traces for captured in variant.ranks}
        folder = (ranks.get(rank, Traces()) if rank else variant.traces).loader
        return _path_in_run(run_file, variant, folder) if folder is not None else None

    def turn_paths(self, run_file: str | Path, variant: Variant) -> dict[int, Path]:
        """By round, the path of the trace that was taken after the last turn of its pass, where one was."""
        passes = variant.measured.passes if variant.measured is not None else []
        return {
            measured_pass.round: _path_in_run(run_file, variant, measured_pass.trace)
            for measured_pass in passes
            if measured_pass.trace is not None
        }


def _path_in_run(run_file: str | Path, variant: Variant, trace: str) -> Path:
    folder = Path(run_file).resolve().parent
    path = (folder / trace).resolve()
    if not path.is_relative_to(folder):
        raise BadRunError(run_file, f"the trace {trace} of {variant.name} is outside the run's folder")
    return path


def _by_type(steps: list[dict[str, int] | None]) -> dict[str, Counts]:
    names = dict.fromkeys(name for counts in steps if counts for name in counts if name)
    return {name: [None if counts is None else counts.get(name, 0) for counts in steps] for name in names}


def was_busy(environment: Mapping[str, Any], before: float | None, during: float | None = None) -> bool:
    """Whether more processes wanted to run than there are cores; False if either is unknown.

    `before` is the load average before anything was measured, `during` the one between the passes, which add to it.
    """
    cores = environment.get("cpus_usable")
    if not isinstance(cores, int) or not isinstance(before, int | float):
        return False
    return before > cores or (during is not None and during > _OWN_LOAD * cores)


def crowding(load: float | None, cores: int | None) -> float:
    """How many times as many processes wanted to run as the passes themselves cause; 1 if not more, or if unknown, and
    at most 100, beyond which nothing is known either."""
    return max(1.0, min(load / (_OWN_LOAD * cores), _MOST_CROWDED)) if load is not None and cores else 1.0


def divergence(losses: list[float | None], other_losses: list[float | None]) -> float | None:
    """The largest difference between two curves, relative to the first; None if they cannot be compared.

    If their lengths differ, the common beginning is compared, because a pass of a slow script may be shorter.
    """
    if not losses or not other_losses:
        return None
    pairs = [*zip(losses, other_losses, strict=False)]
    if any((loss is None) != (other_loss is None) for loss, other_loss in pairs):
        return math.inf
    finite = [(loss, other_loss) for loss, other_loss in pairs if loss is not None and other_loss is not None]
    return max((abs(loss - other_loss) / max(abs(loss), 1e-12) for loss, other_loss in finite), default=0.0)


def times_apart(norms: list[float | None], other_norms: list[float | None]) -> float:
    """How many times as large as the other the larger norm of a step is, where they differ most."""
    pairs = zip(norms, other_norms, strict=False)
    finite = [(norm, base_norm) for norm, base_norm in pairs if norm is not None and base_norm is not None]
    return max((max(pair) / max(min(pair), 1e-12) for pair in finite), default=1.0)


def gradient_tolerance(*drifts: float | None) -> float:
    """How far norms of gradients may differ without significance: they are more sensitive than the losses."""
    return max([_LEAST_OF_GRADIENTS, *(_DRIFTS * drift for drift in drifts if drift is not None)])


def loss_tolerance(*drifts: float | None) -> float:
    """How far losses may differ without significance, given how far rounding by itself moves them."""
    return max([_LEAST_TOLERANCE, *(_DRIFTS * drift for drift in drifts if drift is not None)])
