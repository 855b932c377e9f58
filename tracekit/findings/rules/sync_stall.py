"""Where does the host wait for the GPU, so that the GPU then waits for the host? Often to read a number that it then
makes a tensor of: count, read back, allocate, launch.
"""

import re
from collections.abc import Iterator
from functools import reduce

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Ints, Union, distinct
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, times
from tracekit.findings import Finding, FindingPage, rule, time_of_rules
from tracekit.findings.counted import Steps
from tracekit.findings.culprits import (
    Culprit,
    frames_around,
    grouped,
    operators_around,
    outermost_operators,
    plain,
    where_of_event,
)
from tracekit.findings.finding import in_order
from tracekit.findings.kernels import time_of
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.own_waits import own_waits
from tracekit.trace.rereading import arguments
from tracekit.trace.roles import COPY, OPERATOR, bare
from tracekit.trace.rows import outermost

_COUNTING = re.compile(r"aten::(max|amax|sum|count_nonzero|bincount|cumsum)")
_ALLOCATES = re.compile(r"aten::(new_)?(zeros|empty|full|ones|arange)")
_TYPES_OF_SIZES = ("long", "long int", "int", "bool")  # types: a size is no fraction, as a loss is
_OPERATORS_ON_EITHER_SIDE = 2  # operators on either side
_LOOKED_NS = 5_000_000
_TO_HOST = re.compile(r"Memcpy DtoH.*|CopyDeviceToHost.*", re.DOTALL)
_ONLY_COPIES = re.compile(r"aten::(item|_local_scalar_dense|_?to(_copy)?|copy_|cpu|_copy_from)")
_NONZERO = re.compile(r"aten::nonzero\w*")  # operators that launch kernels only to know the size of their result
_MAX_PLACES = 5  # places that get a finding each
_LINK = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization"


class _Cause(Struct, frozen=True):
    """Why something waits, recognised by an operator or a Python function around the call."""

    known_by: str  # matches the whole name of an operator, or of a function
    clause: str
    advice: str
    sizes: bool = False  # what is read back becomes the size of a tensor


_REASONS = (
    _Cause(
        "maybe_num_nodes",
        "counts the nodes",
        "Pass num_nodes, so that nothing is read back to count nodes.",
        sizes=True,
    ),
    _Cause(
        r"torch_scatter::.*|scatter(_\w+)?",
        "reads back how many rows its result has",
        "Pass dim_size, so that nothing is read back to find the size.",
        sizes=True,
    ),
    _Cause(
        r"aten::_?coalesce|coalesce",
        "counts what is left after duplicates are merged",
        "Merge duplicates once, before the loop.",
        sizes=True,
    ),
    _Cause(
        r"torchmetrics.*|compute_metrics",
        "reads a metric back",
        "Accumulate the metric on the GPU, and read it once an epoch.",
    ),
    _Cause(
        r"aten::repeat_interleave",
        "reads back how long its result is",
        "Pass output_size to repeat_interleave, where the length is known.",
        sizes=True,
    ),
    _Cause(
        r"aten::_?unique\w*|aten::unique_(dim|consecutive)",
        "counts the distinct values",
        "Find the distinct values once, before the loop, or in the data loader.",
        sizes=True,
    ),
    _Cause(
        r"aten::masked_select|aten::index(_put_?)?",
        "counts the rows of a boolean mask",
        "Keep the shape: torch.where, a weight of zero, ignore_index in the loss, or indices made once from the mask.",
        sizes=True,
    ),
    _Cause(
        r"aten::nonzero\w*|aten::argwhere",
        "counts what is not zero",
        "Keep the shape (torch.where with three arguments), or make the indices once, before the loop.",
        sizes=True,
    ),
    _Cause(
        r"aten::is_nonzero|aten::equal|aten::allclose",
        "makes Python branch on a value that is on the GPU",
        "Decide on the GPU (torch.where), or only every N steps.",
    ),
    _Cause(
        r"aten::item|aten::_local_scalar_dense",
        "reads a value back",
        "Keep the value on the GPU (detach it, add it up there) and read it only every N steps.",
    ),
    _Cause(
        r"aten::(_?to(_copy)?|copy_|cpu|_copy_from)",
        "copies and waits for it",
        "Copy less often, or with non_blocking=True, and wait for the copy only where its result is needed.",
    ),
)
_READING, _COPYING = _REASONS[-2:]
# The kind of copy that is waited for says more; by the name of the copy on the GPU.
_COPIES = (
    _Cause(
        r"Memcpy DtoH.*|CopyDeviceToHost.*",
        "copies to the host and waits for it",
        "Copy less often, or with non_blocking=True into pinned memory, and wait for the copy later.",
    ),
    _Cause(
        r"Memcpy HtoD \(Pinned.*",
        "copies to the GPU and waits for it",
        "Copy with non_blocking=True, for the source is in pinned memory already: what the GPU does next waits for the "
        "copy by itself.",
    ),
    _Cause(
        r"Memcpy HtoD.*|CopyHostToDevice.*",
        "copies to the GPU and waits for it",
        "Pin the source's memory (pin_memory=True) and copy with non_blocking=True: what the GPU does next waits for "
        "the copy by itself.",
    ),
    _Cause(
        r"Memcpy DtoD.*|CopyDeviceToDevice.*",
        "copies within the GPU's memory and waits for it",
        "The host does not need the result: copy with copy_, or cudaMemcpyAsync, without synchronising afterwards.",
    ),
    _Cause(
        r"Memcpy PtoP.*|CopyPeerToPeer.*",
        "copies to another GPU and waits for it",
        "Copy with non_blocking=True: what that GPU does next waits for the copy by itself.",
    ),
    _Cause(
        r"Memcpy HtoH.*",
        "copies within the host's memory and waits for it",
        "Copy on the host, without the GPU's queue, or where nothing waits for it.",
    ),
)
_SIZE = _Cause(
    "aten::item|aten::_local_scalar_dense",
    "reads back the size of the next tensor",
    "Give the size instead of counting it (num_nodes, dim_size, batch_size, output_size), or pad to a fixed one.",
    sizes=True,
)
_ANY = _Cause("", "waits for the GPU", "Remove the wait, or wait only every N steps.")


def operator_sized_by_readback(profile: Profile, call: int) -> str | None:
    """The operator that allocates a tensor whose size this waiting call reads back; None if it reads anything else.

    What is read was counted in whole numbers by one of the operators right before, which takes a recording with shapes
    to know.
    """
    trace = profile.trace
    (read,) = outermost_operators(profile, np.array([call], np.int64)).tolist()
    if read < 0:
        return None
    # The outermost operators of its thread around that time, in order.
    start = int(trace.ts_ns[read])
    end = start + int(trace.dur_ns[read])
    low, high = np.searchsorted(trace.ts_ns, [start - _LOOKED_NS, end + _LOOKED_NS]).tolist()
    rows = np.arange(low, high, dtype=np.int64)
    roles = trace.events_at(rows).roles
    is_operator = (roles.kind == OPERATOR) & ~roles.annotation & (trace.dur_ns[rows] > 0)
    operators = outermost(trace, rows[is_operator & (trace.track[rows] == trace.track[read])])
    names = [trace.names[code] for code in trace.name_codes[operators].tolist()]
    position = operators.tolist().index(read)
    counts = [
        int(operators[k])
        for k in range(max(position - _OPERATORS_ON_EITHER_SIDE, 0), position)
        if _COUNTING.fullmatch(names[k])
    ]
    allocator = next(filter(_ALLOCATES.fullmatch, names[position + 1 : position + 1 + _OPERATORS_ON_EITHER_SIDE]), None)
    if allocator is None or not counts:
        return None
    call_arguments = arguments(trace, np.array(counts, np.int64))
    types = [call_args.types[0] for call_args in call_arguments.values() if call_args.types]
    return allocator if any(kind in _TYPES_OF_SIZES for kind in types) else None


_PAGE = FindingPage(
    "sync_stall",
    "The host waits for the GPU, and then the GPU for the host",
    says="""At one place, the host waits until the GPU is done, so that the GPU has nothing to do afterwards. Each of
        the five costliest places has a finding with the reason, if the trace shows it: a value is read back
        (`.item()`), the size of a result is counted on the GPU first (boolean masks, `nonzero`, `unique`,
        `repeat_interleave`, `scatter` without `dim_size`), or a copy is awaited. Several places that wait for sizes
        are one finding.""",
    slow="""A GPU is busy only while the host is ahead of it. A wait empties its queue: the GPU idles until the host
        has returned, worked out what comes next, and launched it.""",
    cost="""It claims the idle time of the bucket `sync_stall` that these calls are blamed for: the end of the wait,
        and the refilling of the queue for at most as long as the call had waited. Copies to the host that only these
        calls need, and kernels that only count what is copied, are claimed as well.""",
    limits="""What counts is the idle time of the GPU, not how long a call lasts: a wait beside a busy GPU costs
        little, and may not be listed. The wait with which the profiler ends its recording is left out. Where the host
        is slow, too, removing the wait moves part of the idle time to `launch_bound` or `dispatch_bound`; the cost
        leaves that out.""",
    cures=(
        Cure(
            "Keep the value on the GPU (`loss.detach()`, added up there), and read it every N steps.", "changes nothing"
        ),
        Cure("Give the size: `num_nodes`, `dim_size`, `batch_size`, `output_size`.", "changes nothing"),
        Cure(
            """Keep the shape instead of selecting: `torch.where`, weights of zero, `ignore_index`; or make the indices
            once, before the loop.""",
            "rounding",
        ),
        Cure(
            """Copy to the GPU from pinned memory with `non_blocking=True`, and write to that memory only when the copy
            is done. A copy to the host must still be waited for before it is read.""",
            "memory",
        ),
    ),
    links=(_LINK,),
)


@rule("sync_stall", timed=True, device="gpu", pages=(_PAGE,))
def sync_stall(profile: Profile) -> Iterator[Finding]:
    """One finding for each place that waits, the costliest first: the time in which the GPU idles because of it."""
    pieces, trace = profile.attribution.pieces, profile.trace
    calls = distinct(pieces.event[pieces.of("sync_stall")]).astype(np.int64)
    calls = calls[calls >= 0]
    calls = np.setdiff1d(calls, own_waits(trace, calls))
    is_waiting = pieces.of("sync_stall") & np.isin(pieces.event, calls)
    is_waiting &= ~time_of_rules(profile, "pageable_copies").covers(pieces.start)
    sized: list[tuple[Finding, Culprit]] = []

    def places(calls: Ints) -> Ints:
        """A number for the place where each call is made: your line, and the operator or, without one, the call."""
        maker = trace.operators.of(calls)
        name_codes = trace.name_codes[np.where(maker >= 0, maker, calls)].astype(np.int64)
        owner = profile.ownership.of_events(calls)
        _, number = np.unique(np.stack((owner, name_codes)), axis=1, return_inverse=True)
        return number.reshape(-1).astype(np.int64)

    for culprit in grouped(profile, is_waiting, places)[:_MAX_PLACES]:
        finding, reason = _finding(profile, culprit)
        if reason.sizes:
            sized.append((finding, culprit))
        else:
            yield finding
    if len(sized) < 2:
        yield from (finding for finding, _ in sized)
        return
    # One finding for all places that wait for the size of a tensor.
    (first, _), *_ = sized
    (culprit,) = grouped(profile, np.logical_or.reduce([culprit.piece_mask for _, culprit in sized]), np.zeros_like)
    claim = reduce(Union.plus, (finding.claim for finding, _ in sized if finding.claim is not None))
    idle = duration(Steps.of(profile).mean(claim))
    yield replace(
        first,
        headline=f"{count(len(sized))} places wait for sizes, most of all {first.headline}",
        why=f"Without these waits, a step saves at most {{saving}}: the GPU idles for {idle} a step because of them. "
        "They count on the GPU, read the count back, and only then allocate and launch.",
        do=" ".join(dict.fromkeys(finding.do for finding, _ in sized)),
        claim=claim,
        evidence=in_order(profile, culprit.rows),
    )


def _finding(profile: Profile, culprit: Culprit) -> tuple[Finding, _Cause]:
    trace, row = profile.trace, int(culprit.rows[0])
    operators = operators_around(profile, row)
    functions = [frame.rpartition(": ")[2] for frame in frames_around(profile, row)]
    reasons = (
        reason for reason in _REASONS if any(re.fullmatch(reason.known_by, name) for name in (*operators, *functions))
    )
    reason = _of_copy(next(reasons, _ANY), trace, culprit.rows)
    if reason is _READING and operator_sized_by_readback(profile, row):
        reason = _SIZE
    call = bare(trace.name(row))
    maker = next((name for name in operators if reason.known_by and re.fullmatch(reason.known_by, name)), None)
    maker = maker or (operators[-1] if operators else None)
    number = float(profile.begins_in_counted(culprit.rows).sum()) / profile.counted_steps
    waited = trace.dur_ns[culprit.rows].sum() / profile.counted_steps
    call_clause = f" in {call}" if maker else ""
    location = where_of_event(profile, row, maker)
    if location.file is None and maker is None:
        location = replace(location, function=call)
    pieces = profile.attribution.pieces
    idle, copies, counts = pieces.union(culprit.piece_mask), *_only_for_the_host(profile, culprit.rows)
    undone = np.union1d(copies, counts)
    # The host submits this work in the whole operator, if that does nothing else.
    launches = trace.links.launch(undone)
    makers = trace.operators.of(launches)
    only_copies = (makers >= 0) & trace.labels.fits(_ONLY_COPIES)[trace.name_codes[np.maximum(makers, 0)]]
    submitting = distinct(np.where(only_copies, makers, launches))
    copied = time_of(profile, copies).common(pieces.union(pieces.of("gpu_copy")))
    copying = Steps.of(profile).mean(copied)
    also = f", after it has only copied for {duration(copying)}" if copying > culprit.step_ns else ""
    finding = Finding(
        "sync_stall",
        f"{plain(maker or call)}{location.at} {reason.clause}",
        why=f"Without this wait, a step saves at most {{saving}}: the GPU idles for {duration(culprit.step_ns)} a step "
        f"because of it{also}. The host waits {times(round(number, 1))} a step{call_clause}, "
        f"{f'for {duration(waited)}' if number == 1 else f'{duration(waited)} together'}.",
        do=reason.advice,
        where=location,
        evidence=in_order(profile, culprit.rows),
        link=_LINK,
        claim=idle.plus(copied).plus(time_of(profile, counts)),
        undone=undone,
        host=time_of(profile, submitting) if len(undone) else None,
    )
    return finding, reason


def _only_for_the_host(profile: Profile, calls: Ints) -> tuple[Ints, Ints]:
    """What the GPU does only for these calls: the copies to the host that they wait for, which they submit themselves
    or their operator does, and the kernels that count what is copied, before it."""
    trace = profile.trace
    activities, launches = trace.links.activities, trace.links.launches
    to_host = trace.labels.fits(_TO_HOST)[trace.name_codes[activities]]
    makers, maker = trace.operators.of(calls), trace.operators.of(launches)
    beside = np.isin(maker, makers[makers >= 0])
    counting = trace.labels.fits(_NONZERO)[trace.name_codes[np.maximum(maker, 0)]] & beside & ~to_host
    order = np.lexsort((calls, makers))
    following = order[np.searchsorted(makers[order], maker[counting], side="right") - 1]  # the maker's last call
    counts = activities[counting][trace.ts_ns[launches[counting]] < trace.ts_ns[calls[following]]]
    copies = activities[to_host & (np.isin(launches, calls) | beside)]
    return copies.astype(np.int64), counts.astype(np.int64)


def _of_copy(reason: _Cause, trace: Trace, calls: Ints) -> _Cause:
    """The reason of the kind of copy that all of these calls wait for; the same reason if they wait for none, or for
    several kinds.

    A call waits for what it submits itself, or for what was submitted in the same operator before.
    """
    if reason not in (_COPYING, _ANY):
        return reason
    copies = trace.kinds[trace.links.activities] == COPY
    launches = trace.links.launches[copies]
    is_awaited = np.isin(launches, calls)
    if reason is _COPYING and not is_awaited.any():
        makers = trace.operators.of(calls)
        is_awaited = np.isin(trace.operators.of(launches), makers[makers >= 0])
    names = {
        trace.names[code] for code in distinct(trace.name_codes[trace.links.activities[copies][is_awaited]]).tolist()
    }
    kinds = {next((kind for kind in _COPIES if re.fullmatch(kind.known_by, name)), reason) for name in names}
    if len(kinds) != 1:
        return reason
    (kind,) = kinds
    return replace(kind, known_by=reason.known_by)
