"""What `steps.c` offers."""

from typing import Any

class Tally:
    """As PlainTally."""

    thread: int
    number: int
    began_ns: int
    unix_ns: int
    due_ns: int
    usual_ns: int
    limit_ns: int
    left: int
    peak_bytes: int
    waited_ns: int
    batches: int
    longest_wait_ns: int
    worker: int
    maker: int
    wait_began_ns: int
    compile_ns: int
    compiles: int
    compile_began_ns: int
    collect_ns: int
    collections: int
    collect_began_ns: int
    nodes: int
    edges: int
    schedstat: int
    processor_ns: int
    queued_ns: int
    unread_ns: int
    off_core_ns: int
    has_marks: bool
    is_asked: bool
    apart: bool
    loading: bool
    optimizer: Any
    iterators: list[int]
    attend: Any
    clock: Any

    def end(self, optimizer: object) -> bool: ...
    def clear(self) -> None: ...
    def begin_wait(self) -> bool: ...
    def end_wait(self, batches: int, worker: int) -> None: ...
    def collection(self, phase: str, facts: object) -> None: ...
    def write_to(self, memory: Any, count_at: int, ring_at: int, capacity: int) -> bool: ...
    stream: Any
    stream_key: Any
    resolved_ns: int
    @property
    def waiting(self) -> int: ...
    def use_gpu(self, *calls: Any) -> bool: ...
    def fresh_event(self) -> Any: ...
    def mark(self, number: int, event: Any) -> None: ...
    def restart(self, event: Any) -> None: ...
    def resolve(self) -> int: ...
    def pop(self) -> None: ...
    def release(self) -> None: ...
