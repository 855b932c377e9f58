"""`tracekit.trace_handler("traces")`, for `on_trace_ready=` of torch.profiler: its traces become one run with a report.

Each cycle of the profiler's schedule is a variant of the run, so that a report compares them: what has changed since
the first one? The run is written anew after each cycle, so that a killed training leaves it, too; the report, which
takes the time to read all traces, when the profiler stops or, where it never does, when the process ends.
"""

import atexit
import os
import socket
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracekit import run as runs
from tracekit.capture import messages
from tracekit.capture.child import event_tree
from tracekit.capture.child.traces import export
from tracekit.capture.recording import new_run, recorded_variant
from tracekit.errors import TracekitError
from tracekit.errors.training import NoTraceFolderError
from tracekit.integrations import results
from tracekit.integrations.core import Part, harmless, is_off, tell
from tracekit.run import RankTraces, Run, Traces, Variant
from tracekit.vocabulary.lines_file import lines_path
from tracekit.watching.process import rank

KEPT = 8  # traces of a rank
_WAIT_SECONDS, _LOOKS_SECONDS = 30.0, 0.1  # for the last trace of other ranks


def trace_handler(folder: str | Path = "traces", *, keep: int = KEPT, ranks: str = "0") -> "TraceHandler":
    """What `torch.profiler.profile(on_trace_ready=…)` is to call. It writes each trace into the folder and, when the
    profiler stops, `run.json` with all of them, a variant for each cycle of the schedule, and `report.html`.

    So many traces are kept (`keep`): the first one, which the others are compared with, and the last ones; a schedule
    that repeats for ever would fill the disk. Only rank 0 writes any, or each if `ranks` is "all". Does nothing while
    TRACEKIT_OFF=1 is set. What goes wrong is logged once, by the logger "tracekit"; training goes on. Raises ValueError
    if an argument means nothing.
    """
    if ranks not in ("0", "all"):
        raise ValueError(f'ranks is {ranks!r}: it must be "0" or "all"')
    if keep < 2:
        raise ValueError(f"keep is {keep}: it must be at least 2, for the first trace and the last one")
    return TraceHandler(Path(folder), keep, ranks)


class TraceHandler(Part):
    """Called by a profiler with itself, at the end of each cycle."""

    name = "tracekit.trace_handler"

    def __init__(self, folder: Path, keep: int, ranks: str) -> None:
        self.folder, self.keep, self.ranks = folder, keep, ranks
        self._run: Run | None = None  # its variants are the cycles that are kept
        self._rank, self._ranks = 0, 1
        self._cycles = 0
        self._reported = 0  # cycles
        self._process = 0
        self._made = runs.now()

    @property
    def run_file(self) -> Path:
        """The run of this rank."""
        return self.folder / _run_name(self._rank)

    @harmless
    def __call__(self, profiler: Any) -> None:
        """Write the trace that is ready."""
        if is_off(self.ranks):
            return
        if self._run is None or self._process != os.getpid():  # a copy in another process begins anew
            self._run = self._begin()
            self._cycles = self._reported = 0
        self._cycles += 1
        stops = _is_stopping(profiler)
        trace = self.folder / f"{self._worker()}.{time.time_ns()}.pt.trace.json.gz"
        export(profiler, trace, profiler.step_num if stops else profiler.step_num - 1)
        if profiler.with_stack:
            event_tree.write(profiler, trace, [])
        self._add(recorded_variant(f"cycle {self._cycles}", Traces(steady=trace.name), compiled=_has_compiled()))
        results.note_trace(trace)
        if stops:
            self.finish()
        elif "stop" not in vars(profiler):
            self._follow(profiler)

    @harmless
    def finish(self) -> None:
        """Write the report, if there is a trace that is in none yet."""
        if self._run is None or self._reported == self._cycles or self._process != os.getpid():
            return
        self._reported = self._cycles
        if self._rank > 0:
            return
        if self.ranks == "all":
            self._run = self._with_other_ranks(self._run)
            runs.write(self._run, self.run_file)
        report = self.folder / "report.html"
        results.write_report(self.run_file, report)
        for line in messages.written(self.run_file):
            tell(line)
        tell(f"Its report: {report}")

    def release(self) -> None:
        """Nothing of torch's is replaced but the `stop` of profilers, which goes back by itself."""
        atexit.unregister(self.finish)

    def _begin(self) -> Run:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoTraceFolderError(self.folder, error.strerror or str(error)) from None
        (self._rank, self._ranks), self._process = rank(), os.getpid()
        atexit.register(self.finish)
        script = getattr(sys.modules["__main__"], "__file__", None)  # a notebook has none
        run = new_run("tracekit.trace_handler")
        return replace(run, recipe=Path(script).stem) if script else run

    def _worker(self) -> str:
        """What torch.profiler.tensorboard_trace_handler calls a worker, so that every tool that knows its files reads
        these: the host and the process."""
        of_rank = f"-rank{self._rank}" if self._ranks > 1 else ""
        return f"{socket.gethostname()}{of_rank}_{os.getpid()}"

    def _add(self, variant: Variant) -> None:
        assert self._run is not None
        first, *others = [*self._run.variants, variant]
        dropped, others = others[: 1 - self.keep], others[1 - self.keep :]
        self._run = replace(self._run, variants=[first, *others])
        runs.write(self._run, self.run_file)
        for old in dropped:  # only now: the run never names a trace that is gone
            trace = self.folder / str(old.traces.steady)
            trace.unlink(missing_ok=True)
            lines_path(trace).unlink(missing_ok=True)

    def _follow(self, profiler: Any) -> None:
        """Finish when the profiler stops, which it may do without calling any handler."""
        stop = profiler.stop

        def stop_and_finish() -> None:
            vars(profiler).pop("stop", None)
            stop()
            self.finish()

        profiler.stop = stop_and_finish

    def _with_other_ranks(self, run: Run) -> Run:
        """The run with the traces of the other ranks, for which it waits a while if they are late."""
        until = time.monotonic() + _WAIT_SECONDS
        last = run.variants[-1].name
        while True:
            traces = {number: self._traces_of(number) for number in range(1, self._ranks)}
            late = [f"rank {number}" for number, by_cycle in traces.items() if last not in by_cycle]
            if not late or time.monotonic() > until:
                break
            time.sleep(_LOOKS_SECONDS)
        if late:
            tell(f"The report lacks {last} of {', '.join(late)}: it was not there after {_WAIT_SECONDS:.0f} s")
        return replace(run, variants=[replace(cycle, ranks=_among(traces, cycle.name)) for cycle in run.variants])

    def _traces_of(self, number: int) -> dict[str, Traces]:
        """The traces of another rank by the cycle, as far as it has written them since this training began."""
        try:
            run = runs.read(self.folder / _run_name(number))
        except TracekitError:
            return {}
        is_earlier = datetime.fromisoformat(run.created) < datetime.fromisoformat(self._made)
        return {} if is_earlier else {cycle.name: cycle.traces for cycle in run.variants}


def _among(traces: dict[int, dict[str, Traces]], cycle: str) -> list[RankTraces]:
    return [RankTraces(rank=rank, traces=by_cycle[cycle]) for rank, by_cycle in traces.items() if cycle in by_cycle]


def _run_name(rank: int) -> str:
    return f"run-rank{rank}.json" if rank else "run.json"


def _has_compiled() -> bool:
    """Whether Dynamo has compiled anything in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["stats"]["unique_graphs"])


def _is_stopping(profiler: Any) -> bool:
    """Whether this is called by the profiler's `stop`: its state does not tell that from the begin of another cycle."""
    stop, frame = type(profiler).stop.__code__, sys._getframe()
    while (caller := frame.f_back) is not None:
        frame = caller
        if frame.f_code is stop and frame.f_locals.get("self") is profiler:
            return True
    return False
