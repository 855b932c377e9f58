"""The parent's request to a child process, and the child's answer: two JSON files."""

from typing import Any, Literal

import msgspec

from tracekit.capture.audit.rows import Audit
from tracekit.run import (
    Effective,
    GraphSizes,
    Ledger,
    Measured,
    Memory,
    Outcome,
    Profiled,
    RankTraces,
    Requested,
    Traces,
    Training,
    Window,
    Workload,
)

SO_FAR = "so_far.json"  # in the scratch folder: an answer, but for what is still to come
Stage = Literal["inspect", "measure", "profile", "check", "train", "audit"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of one variant."""

    stage: Stage
    round: int = 0  # of the unprofiled passes: the first has empty caches, later ones are shorter
    recipe: str
    label: str = ""  # "gcn_cora compiled", for the trace's header
    params: dict[str, Any] = {}
    requested: Requested = Requested(compile=False)
    device: str = "cpu"
    seed: int = 0
    steps: int = 20
    warmup: int = 10
    epochs: int = 0  # to train
    workload: Workload = "training"  # of a recipe: a step trains, or calls infer()
    python: str = ""  # the interpreter to run in; "" is the parent's
    script: bool = False  # no recipe: it trains by itself, and its optimizer says where steps end
    arguments: list[str] = []  # the script's own
    module: bool = False  # `recipe` is the name of a module, as python -m takes it
    step_every: int = 1  # ends of steps in a step
    step_at: str = ""  # where a step ends: a Boundary's name, "call", or FILE:LINE; "" is for the script to show
    windows: tuple[Window, ...] = ("cold", "steady", "detail")  # to trace
    available: int | None = None  # all the steps the script has, where it came to its end before
    folder: str = "."  # where the traces go
    scratch: str = ""  # where the answers go, and the journal of a script's files; none where no parent waits
    in_place: bool = False  # what a script does to files stays
    rank: int = 0
    ranks: int = 1  # of a job of several processes
    port: int = 0  # where the first rank listens
    meeting: str = ""  # the folder in which ranks agree
    rounded: bool = False  # sums are rounded differently, to see how far losses move


class PassResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a pass; only the fields of its stage are set."""

    outcome: Outcome = "ok"
    error: str | None = None  # one line
    traceback: str = ""  # the recipe's own, without tracekit's frames
    notes: list[str] = []  # what the recipe said with ctx.note
    # inspect
    params: dict[str, Any] = {}
    variants: dict[str, dict[str, Any]] = {}
    environment: dict[str, Any] = {}
    devices: list[str] = []
    accelerator: str | None = None  # what PyTorch would train on, measurable or not
    why_no_gpu: str | None = None
    backends: list[str] = []  # that torch.compile knows
    has_setup: bool = False
    ended: int | None = None  # the script came to its end after so many steps
    boundary: str = ""  # where a script's steps end: a Boundary's name
    step: str = ""  # what a step of a script is, in words
    no_steps: bool = False  # there are none in any variant: running it again would find none either
    # measure
    measured: Measured | None = None
    memory: Memory = Memory()
    gpu: dict[str, Any] = {}
    # profile
    profiled: Profiled | None = None
    traces: Traces = Traces()
    ranks: list[RankTraces] = []  # the traces of the ranks after the first
    ledger: Ledger = Ledger()
    effective: Effective = Effective()
    # measure: of the timed steps; profile: of all steps
    graphs: GraphSizes | None = None
    # check
    losses: list[float | None] = []
    loss_drift: float | None = None
    metrics: dict[str, float | None] = {}
    # train
    training: Training | None = None
    # audit
    audit: Audit = Audit()


def has_something(answer: PassResult) -> bool:
    """Whether the pass found what is worth having, however it ended."""
    return answer.measured is not None or answer.traces != Traces()
