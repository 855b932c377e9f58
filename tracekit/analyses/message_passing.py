"""What does message passing cost: how fast are rows gathered and scattered, layer by layer, and what would be faster?

Only the recording with stacks has shapes, and no two batches are the same. Both times and bytes are therefore taken
from that recording, in which operators and kernels take as long as in any other.
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis
from tracekit.base.intervals import Ints
from tracekit.base.units import duration, percent, size
from tracekit.lines.owners import PHASES
from tracekit.profile import Profile
from tracekit.profile.memory_bandwidth import memory_bandwidth
from tracekit.trace import Trace
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.reading.event_details import BYTES_OF_TYPE
from tracekit.trace.rereading import Arguments, arguments
from tracekit.trace.roles import COMPILED_CODE
from tracekit.trace.schema import LABEL, column

GATHERS = ("aten::index_select", "aten::gather", "aten::index")
SCATTERS = (
    "aten::scatter_add_",
    "aten::scatter_add",
    "aten::index_add_",
    "aten::scatter_reduce",
    "aten::scatter_reduce_",
    "aten::index_put_",
    "aten::_index_put_impl_",
)
SEGMENTS = (
    "aten::segment_reduce",
    "torch_scatter::segment_sum_csr",
    "torch_scatter::segment_mean_csr",
    "torch_scatter::segment_max_csr",
    "torch_scatter::gather_csr",
    "aten::_sparse_mm",
    "aten::_sparse_mm_reduce_impl",
    "aten::_sparse_addmm",
    "torch_sparse::spmm_sum",
    "torch_sparse::spmm_mean",
    "pyg::segment_matmul",
    "pyg::spmm",
)
_WITH_ROWS = SCATTERS[:5]  # self, dimension, index and the rows
SUMMARY = pa.schema(
    [
        column("layer", pa.string(), "the module, by its path or with those around it; null outside", role="name"),
        column("kind", LABEL, "gather, scatter, or segment (along sorted edges)"),
        column("operator", LABEL, "the operator that moves rows", role="name"),
        column("per_step", pa.float64(), "calls per counted step"),
        column("step_ns", pa.float64(), "time per counted step: on the GPU, or on the CPU where there is none", "ns"),
        column("share", pa.float64(), "share of all the step's work", "share"),
        column("bytes", pa.float64(), "fewest bytes that it must move per step; null where shapes are unknown", "B"),
        column("bytes_per_s", pa.float64(), "these bytes divided by its time; null where shapes are unknown", "B"),
    ]
)
_MIN_SHARE_OF_WORK = 0.05  # of the work: less needs no advice
_MEASURED = "gather_bytes_per_s"  # of a run's environment
_UNSORTED = (
    "Scattering adds row by row: with edges sorted by target once (`EdgeIndex.sort_by('col')`, `ToSparseTensor()`), "
    "PyG adds whole segments, and where messages are plain or weighted neighbours, multiplies a sparse matrix instead "
    "of gathering first."
)
_GATHERED = (
    "Most of it is gathering: with a sparse matrix (`EdgeIndex`, `adj_t`) plain or weighted neighbours are added up "
    "without a row for each edge{or_compile}."
)


def kind_of(operator: str) -> str:
    """`gather`, `scatter`, or `segment` (along sorted edges); None for an operator that moves no rows."""
    for kind, names in (("gather", GATHERS), ("scatter", SCATTERS), ("segment", SEGMENTS)):
        if operator in names:
            return kind
    return ""


def least_bytes(operator: str, arguments: Arguments) -> int | None:
    """The fewest bytes that the operator must move; None if shapes or types are unknown."""
    inputs, types = arguments.inputs, arguments.types
    if inputs is None or len(inputs) != len(types) or len(inputs) < 3 or not inputs[0]:
        return None
    target, index, size = inputs[0], inputs[2], BYTES_OF_TYPE.get(types[0])
    if size is None:
        return None
    if operator == "aten::index_select" and index and target[0]:
        # Rows of a table, read and written once each, and the index.
        rows = math.prod(index)
        return 2 * rows * math.prod(target[1:]) * size + rows * BYTES_OF_TYPE.get(types[2], 8)
    if operator == "aten::gather" and index:
        return 2 * math.prod(index) * size
    if operator in _WITH_ROWS and len(inputs) > 3 and inputs[3]:
        # Rows that are read once, the target, read and written, and an entry of the index for each row.
        return (math.prod(inputs[3]) + 2 * math.prod(target)) * size + 8 * (index[0] if index else 0)
    return None


@analysis("message_passing", rank=27)
def answer(profile: Profile) -> Answer:
    """One row per layer and operator, the costliest first."""
    recording = profile.recording
    missing = device_side_missing(recording.trace) is not None
    steps = max(len(recording.trace.steps), 1)
    pieces = recording.attribution.pieces
    work_ns = float(pieces.dur[pieces.of("gpu_compute", "cpu_compute")].sum()) / steps
    groups = {} if missing else _moved(recording)
    rows: list[dict[str, Any]] = []
    for (layer, operator), calls in sorted(groups.items(), key=lambda item: -sum(ns for ns, _ in item[1])):
        ns, known_bytes = sum(ns for ns, _ in calls), [size for _, size in calls if size is not None]
        bytes_sum = sum(known_bytes) if len(known_bytes) == len(calls) else None
        rows.append(
            {
                "layer": layer or None,
                "kind": kind_of(operator),
                "operator": operator,
                "per_step": len(calls) / steps,
                "step_ns": ns / steps,
                "share": ns / steps / work_ns if work_ns else 0.0,
                "bytes": None if bytes_sum is None else bytes_sum / steps,
                "bytes_per_s": None if bytes_sum is None else bytes_sum / ns * 1e9,
            }
        )
    summary = pa.Table.from_pylist(rows, schema=SUMMARY)
    is_compiled = any(COMPILED_CODE.fullmatch(name) for name in recording.trace.names)
    status: Status = "answered" if rows else "unanswered" if missing or is_compiled else "absent"
    return Answer(
        "message_passing",
        "Gathering and scattering",
        _sentence(profile, rows, missing=missing, is_compiled=is_compiled),
        summary,
        worth=sum(row["share"] for row in rows),
        status=status,
    )


def _moved(recording: Profile) -> dict[tuple[str, str], list[tuple[int, int | None]]]:
    """What moving rows takes, ns, and the bytes, if known, of every call in a step, by layer and operator: inside
    modules or not, neither the loader's nor those of compiling."""
    trace = recording.trace
    kinds = np.array([bool(kind_of(name)) for name in trace.names])
    rows = trace.where(lambda part: part.process & kinds[part.name_codes])
    # While something is being compiled, operators are called, too, with tensors that hold nothing.
    pieces = recording.attribution.pieces
    compiling = pieces.union(pieces.of("compile"))
    rows = rows[(trace.steps.of(trace.ts_ns[rows]) >= 0) & ~compiling.covers(trace.ts_ns[rows])]
    if not len(rows):
        return {}
    owners, paths = recording.ownership.owners, recording.module_paths
    owner = [owners.rows[owner_number] for owner_number in recording.ownership.of_events(rows).tolist()]
    durations_ns, call_arguments = _taken_ns(trace, rows), arguments(trace, rows)
    groups: dict[tuple[str, str], list[tuple[int, int | None]]] = {}
    for row, numbers, ns in zip(rows.tolist(), owner, durations_ns.tolist(), strict=True):
        if ns and PHASES[numbers.phase] not in ("data", "graph building"):
            name = trace.name(row)
            bytes_moved = least_bytes(name, call_arguments[row]) if row in call_arguments else None
            chain = owners.modules[numbers.module]
            layer = next((paths[module] for module in reversed(chain) if module in paths), " · ".join(chain))
            groups.setdefault((layer, name), []).append((ns, bytes_moved))
    return groups


def _taken_ns(trace: Trace, rows: Ints) -> Ints:
    """The time of each operator: of the kernels that it launches, or on a CPU its own."""
    if trace.device != "gpu":
        return trace.dur_ns[rows]
    taken_ns = np.zeros(len(rows), np.int64)
    for activities, launches in trace.links.some():
        operator = trace.operators.of(launches)
        index = np.minimum(np.searchsorted(rows, operator), len(rows) - 1)
        in_rows = rows[index] == operator
        np.add.at(taken_ns, index[in_rows], trace.dur_ns[activities[in_rows]])
    return taken_ns


def _sentence(profile: Profile, rows: list[dict[str, Any]], *, missing: bool, is_compiled: bool) -> str:
    if missing:
        return "Cannot be answered: what the device did was not recorded, only how the host submitted it."
    if not rows:
        why = (
            "Cannot be answered: compiled kernels gather and scatter among other things, and the trace does not "
            "show how much."
        )
        return why if is_compiled else "No operator gathers or scatters rows."
    ns, share = sum(row["step_ns"] for row in rows), sum(row["share"] for row in rows)
    work = "the GPU's work" if profile.trace.device == "gpu" else "the operators' work"
    sentence = f"Gathering and scattering rows take {duration(ns)} a step, {percent(share)} of {work}"
    sized = [row for row in rows if row["bytes"] is not None]
    if sized:
        rate = sum(row["bytes"] for row in sized) / sum(row["step_ns"] for row in sized) * 1e9
        sentence += f", and move at least {size(rate)} a second{_against(profile, rate)}"
    return f"{sentence}.{_advice(rows, share, is_compiled)}"


def _against(profile: Profile, rate: float) -> str:
    """The rate compared with what the device can do, as measured on it or by its data sheet."""
    measured = profile.run.environment.get(_MEASURED) if profile.run is not None else None
    if profile.trace.device == "gpu" and isinstance(measured, int | float) and measured > 0:
        return f": {percent(rate / measured)} of what was measured for gathering alone"
    if profile.trace.device == "gpu" and (data_sheet := memory_bandwidth(profile.trace)) is not None:
        return f": {percent(rate / data_sheet[1])} of the memory bandwidth of {data_sheet[0]} by its data sheet"
    return "; the memory bandwidth of this device is not known"


def _advice(rows: list[dict[str, Any]], share: float, is_compiled: bool) -> str:
    """Advice if rows are gathered and added up again, as in message passing, and if that costs enough."""
    if share < _MIN_SHARE_OF_WORK or not {"gather", "scatter"} <= {row["kind"] for row in rows}:
        return ""
    of_kind = dict.fromkeys(("gather", "scatter", "segment"), 0.0)
    for row in rows:
        of_kind[row["kind"]] += row["step_ns"]
    costliest = max(of_kind, key=lambda kind: of_kind[kind])
    or_compile = "" if is_compiled else ", and compiling fuses the gathering into what follows"
    gathered = _GATHERED.format(or_compile=or_compile)
    return {"scatter": f" {_UNSORTED}", "gather": f" {gathered}", "segment": ""}[costliest]
