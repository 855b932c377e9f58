"""What a training script makes its machine do: a tree of host time, recorded spans, submissions and waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Args = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Busy:
    """Host time that a resource costs, such as `python` or `dispatch`."""

    ns: int
    of: str = "python"


@dataclass(frozen=True, slots=True)
class Span:
    """What the profiler records of its body: an operator, a Python frame, an annotation."""

    cat: str
    name: str
    body: Nodes = ()
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activity:
    """Work of the GPU; `of` is `gpu`, `copy` or `comm`. Communication ends in all ranks at once."""

    name: str
    ns: int
    of: str = "gpu"
    cat: str = "kernel"
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submit:
    """A runtime call that puts activities into the queue of a stream, one after the other; a graph launch has several.

    `waits` if the call returns when they are done, as copies of pageable memory do.
    """

    call: str
    work: tuple[Activity, ...]
    ns: int = 4_000
    stream: int = 7
    waits: bool = False
    cat: str = "cuda_runtime"


@dataclass(frozen=True, slots=True)
class Sync:
    """A call that waits until the GPU is done: with a stream, or with all (None)."""

    call: str = "cudaStreamSynchronize"
    stream: int | None = 7
    of: str = "sync"


@dataclass(frozen=True, slots=True)
class Join:
    """One stream waits for what another has been given so far; the host does not."""

    stream: int
    other: int


@dataclass(frozen=True, slots=True)
class Call:
    """A runtime call that takes its time, and submits nothing."""

    name: str
    ns: int
    of: str = "alloc"


@dataclass(frozen=True, slots=True)
class Handover:
    """Autograd's thread runs the body while the calling thread waits."""

    body: Nodes


@dataclass(frozen=True, slots=True)
class Fetch:
    """The loop asks for its next batch, which one of the workers has been preparing."""

    workers: int
    ns: int  # that a worker takes for a batch
    ahead: int = 2  # batches that each worker may be ahead


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the profiler's tool reports on a row of its own while the host is busy with it."""

    name: str
    ns: int
    of: str


Node = Busy | Span | Submit | Sync | Join | Call | Handover | Fetch | Overhead
Nodes = tuple[Node, ...]
