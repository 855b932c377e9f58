"""The ledger of a run: what the compiler did, entry by entry."""

from typing import Annotated, Literal

import msgspec

# What a file may hold: a reader adds up many of these in 64 bits.
Ns = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # a hundred days
UnixNs = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # also of bytes
Number = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]  # which is not added to others


class Compile(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation. Times are unix ns, the trace's clock: `baseTimeNanoseconds + ts`."""

    id: str  # "frame/attempt", as in the trace's `…_data: … compile_id=` markers
    frame: Number | None = None
    attempt: Number | None = None
    kind: Literal["first", "recompile", "backward", "cudagraph", "autotune"]
    span: str = ""  # the compiler's name for it: for "cudagraph" it says whether a graph was recorded or only prepared
    reason: str | None = None  # the first failing guard of every cache entry, in Dynamo's words
    guard: str | None = None  # the failing guard alone
    code: str | None = None  # "file.py:12 forward": the user's function
    start_ns: UnixNs
    end_ns: UnixNs
    thread: Number  # native thread id, the trace's tid
    phases: dict[str, Ns] = {}  # name → ns without its children, so that phases add up to the compilation
    step: Number | None = None  # the N of ProfilerStep#N
    during: str = msgspec.field(name="pass", default="")  # the window or "warmup"; "" is before the first step
    failed: str | None = None  # why it produced no code
    # Whether it made a graph; a frame without operators makes none. Runs of earlier versions did not tell.
    has_graph: bool = True
    guard_ns: Ns | None = None  # one evaluation of its guards, as Dynamo timed it; torch 2.7 and later


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """One graph break, as often as compilations meet it: those of other functions, and recompilations."""

    compile: str
    reason: str
    file: str | None = None
    line: Number | None = None
    stack: str = ""
    t_ns: UnixNs


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Dynamo gave up on a frame, which runs eagerly from here on."""

    frame: Number | None = None
    file: str | None = None
    line: Number | None = None
    name: str | None = None
    reason: str | None = None
    t_ns: UnixNs


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Inductor did not record a CUDA graph of what it compiled, or stopped recording it again."""

    compile: str | None = None
    reason: str
    file: str | None = None  # the user's line that prevented it, if Inductor names one
    line: Number | None = None
    t_ns: UnixNs


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiler did in the profiled pass, in order of time."""

    compiles: list[Compile] = []
    breaks: list[Break] = []
    limits: list[Limit] = []
    skips: list[Skip] = []

    @property
    def graphs(self) -> int:
        """How many graphs were compiled, first ones and recompilations: what torch counts as unique graphs.

        A compilation that failed made none, and neither did a frame without operators.
        """
        return sum(
            compilation.kind in ("first", "recompile") and compilation.has_graph and not compilation.failed
            for compilation in self.compiles
        )

    @property
    def recompiles(self) -> int:
        """How often a frame was compiled again because a guard failed, including the times that this failed."""
        return sum(compilation.kind == "recompile" for compilation in self.compiles)

    @property
    def break_places(self) -> int:
        """How many graph breaks there are to mend. `len(breaks)` is how often compilations meet them, and how often a
        step is interrupted by them is neither."""
        return len({(graph_break.file, graph_break.line, graph_break.reason) for graph_break in self.breaks})
