"""In a step, how long do building graphs, sampling, fetching features, copying them and the training itself take?

What builds a graph is a stage of its own, wherever it happens: while the loop waits for its batch, or in the model.
Operators that pick rows of a table of numbers while the loop waits for its batch count as fetching; the recording with
stacks has the shapes and types that distinguish such tables from lists of edges. All other waiting is for sampling or
collating.
"""

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis, table
from tracekit.analyses.message_passing import kind_of
from tracekit.base.intervals import NO_INTS, Bools, Ints, Union
from tracekit.base.units import percent
from tracekit.profile import Profile
from tracekit.profile.graph_building import per_step_ns, time_of_all
from tracekit.trace.rereading import Arguments, arguments
from tracekit.trace.roles import DATALOAD, OPERATOR
from tracekit.trace.schema import LABEL, column

SUMMARY = pa.schema(
    [
        column(
            "stage",
            LABEL,
            "sampling, fetching features, graph building, copying, or training (running the model, without a backward "
            "pass): together they are the step",
        ),
        column(
            "step_ns",
            pa.float64(),
            "wall time of the stage per counted step, as far as no other stage overlaps it",
            "ns",
        ),
        column("share", pa.float64(), "share of the step", "share"),
    ]
)
_BY_WORKERS = 0.1  # of the waiting that operators fill: with less, other processes make the batches
_WAITED = "waiting for batches that other processes make"
_MADE = "sampling and collating"
_MADE_OTHERWISE = "other work on batches"  # beside the graphs that are built for them
BUILDING = "graph building"
_COPYING, _TRAINING, _COMPUTING = "copying", "training", "running the model"
# The bucket of a stage; of the others, it is waiting for data.
BUCKET_OF_STAGE = {_COPYING: "gpu_copy", _TRAINING: "gpu_compute", _COMPUTING: "gpu_compute"}
_FLOATS = ("float", "double", "c10::Half", "c10::BFloat16")


@analysis("stages", rank=16)
def answer(profile: Profile) -> Answer:
    """One row per stage; they add up to the step."""
    mean = profile.means["wall"]
    loading = mean.parts["dataload"] if mean is not None else 0.0
    built = time_of_all(profile.graph_builders)
    if mean is None or not (loading or built.total()):
        status: Status = "absent"
        sentence = "The loop does not wait for a loader, and builds no graph that is seen."
        if mean is None:
            status, sentence = "unanswered", "Cannot be answered, because the wall time is unknown."
        elif not profile.trace.census.any(lambda roles: roles.annotation & roles.named(DATALOAD)):
            sentence = "No event of a data loader was recorded, and none that builds a graph."
        return Answer("stages", "From sampling to training", sentence, SUMMARY.empty_table(), worth=0.0, status=status)
    # The operators that run while the loop waits for its batch.
    trace, pieces = profile.trace, profile.attribution.pieces
    waits, running = pieces.union(pieces.of("dataload")), [NO_INTS]
    for part in trace.parts():
        rows = part.rows(part.process & (part.roles.kind == OPERATOR) & ~part.roles.annotation)
        running.append(rows[waits.covers(trace.ts_ns[rows])])
    rows = np.concatenate(running)
    is_building = built.covers(trace.ts_ns[rows])
    fetching = _covered(profile, rows[_fetches(profile, rows) & ~is_building])
    # A graph is built while the loop waits for its batch, or elsewhere in the step.
    in_wait, in_copy = (
        per_step_ns(profile, built.common(pieces.union(pieces.of(key)))) for key in ("dataload", "gpu_copy")
    )
    making = _MADE if not in_wait else _MADE_OTHERWISE
    if loading and _is_made_elsewhere(profile, rows, loading):
        making = _WAITED
    stages = {
        making: loading - fetching - in_wait,
        "fetching features": fetching,
        BUILDING: per_step_ns(profile, built),
        _COPYING: mean.parts.get("gpu_copy", 0.0) - in_copy,
    }
    rest = _TRAINING if trace.census.any(lambda roles: roles.backward_node) else _COMPUTING
    stages[rest] = mean.step_ns - sum(stages.values())
    stage_ns = {stage: ns for stage, ns in stages.items() if ns >= 1}
    shares = {stage: ns / mean.step_ns for stage, ns in stage_ns.items()}
    summary = table(SUMMARY, {"stage": [*stage_ns], "step_ns": [*stage_ns.values()], "share": [*shares.values()]})
    listed = ", ".join(f"{stage} {percent(share)}" for stage, share in shares.items())
    sentence = f"Shares of a step: {listed}."
    return Answer("stages", "From sampling to training", sentence, summary, worth=1 - shares.get(rest, 0.0))


def _is_made_elsewhere(profile: Profile, rows: Ints, loading: float) -> bool:
    """Whether other processes make the batches: the loader's iterator says so, or else that few operators run here."""
    for iterator, elsewhere in (("_MultiProcessingDataLoaderIter", True), ("_SingleProcessDataLoaderIter", False)):
        if any(iterator in name for name in profile.trace.names):
            return elsewhere
    return _covered(profile, rows) / loading < _BY_WORKERS


def _covered(profile: Profile, rows: Ints) -> float:
    """How long these operators run while a counted step waits for its batch, ns."""
    pieces, trace = profile.attribution.pieces, profile.trace
    is_waiting = pieces.of("dataload") & profile.counted[pieces.step]
    operators = Union.of(trace.ts_ns[rows], trace.events_at(rows).end_ns)
    filled = operators.within(pieces.start[is_waiting], pieces.end[is_waiting]).sum()
    return float(filled) / profile.counted_steps


def _fetches(profile: Profile, rows: Ints) -> Bools:
    """Which of them pick rows of a table of numbers, or of one beside such a table."""
    trace, recording = profile.trace, profile.ownership.recording
    gathers = np.array([kind_of(name) == "gather" for name in trace.names])
    gathering = np.flatnonzero(gathers[trace.name_codes[rows]])
    if recording is None or not len(gathering):
        return np.zeros(len(rows), bool)
    matched = profile.ownership.rows_in_recording(rows[gathering])
    call_arguments = arguments(recording.trace, matched[matched >= 0])
    tables = [_table(call_arguments.get(row)) for row in matched.tolist()]
    lengths = {shape[0] for shape in tables if shape is not None and shape[1]}
    fetches = np.zeros(len(rows), bool)
    fetches[gathering] = [shape is not None and shape[0] in lengths for shape in tables]
    return fetches


def _table(operator: Arguments | None) -> tuple[int, bool] | None:
    """How many rows a table has, and whether they hold numbers; None for anything with fewer than two columns."""
    inputs = operator.inputs if operator is not None else None
    if operator is None or not inputs or not operator.types or len(inputs[0]) < 2 or inputs[0][1] < 2:
        return None
    return inputs[0][0], operator.types[0] in _FLOATS
