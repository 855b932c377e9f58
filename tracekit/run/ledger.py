"""The ledger of a run: what the compiler did, entry by entry."""

from typing import Literal

import msgspec


class Compile(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation. Times are unix ns, the trace's clock: `baseTimeNanoseconds + ts`."""

    id: str  # "frame/attempt", as in the trace's `…_data: … compile_id=` markers
    frame: int | None = None
    attempt: int | None = None
    kind: Literal["first", "recompile", "backward", "cudagraph", "autotune"]
    span: str = ""  # the compiler's name for it: for "cudagraph" it says whether a graph was recorded or only prepared
    reason: str | None = None  # the first failing guard of every cache entry, in Dynamo's words
    guard: str | None = None  # the failing guard alone
    code: str | None = None  # "file.py:12 forward": the user's function
    start_ns: int
    end_ns: int
    thread: int  # native thread id, the trace's tid
    phases: dict[str, int] = {}  # name → ns without its children, so that phases add up to the compilation
    step: int | None = None  # the N of ProfilerStep#N
    during: str = msgspec.field(name="pass", default="")  # the window or "warmup"; "" is before the first step
    failed: str | None = None  # why it produced no code
    # Whether it made a graph; a frame without operators makes none. Runs of earlier versions did not tell.
    has_graph: bool = True
    guard_ns: int | None = None  # one evaluation of its guards, as Dynamo timed it; torch 2.7 and later


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """One graph break, as often as compilations meet it: those of other functions, and recompilations."""

    compile: str
    reason: str
    file: str | None = None
    line: int | None = None
    stack: str = ""
    t_ns: int


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Dynamo gave up on a frame, which runs eagerly from here on."""

    frame: int | None = None
    file: str | None = None
    line: int | None = None
    name: str | None = None
    reason: str | None = None
    t_ns: int


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Inductor did not record a CUDA graph of what it compiled, or stopped recording it again."""

    compile: str | None = None
    reason: str
    file: str | None = None  # the user's line that prevented it, if Inductor names one
    line: int | None = None
    t_ns: int


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
