"""The kernels of the counted steps: which they are, what launched them, and how their time is claimed; and when work
that was queued does not start, although the GPU idles. Between queued kernels there is always a gap of a few µs, the
GPU's own pace: a wait is longer than any submission.
"""

from collections.abc import Callable, Collection

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, Union, occurring
from tracekit.engine.wall import SUBMISSION_NS
from tracekit.findings.finding import Finding, Where, evidence
from tracekit.profile import Profile
from tracekit.trace.rows import PART, Events
from tracekit.vocabulary.kernel_class import kernel_class
from tracekit.vocabulary.kernel_names import kernel_in_prose

Ask = Callable[[Events], Bools]


def kernels(profile: Profile, ask: Ask) -> Ints:
    """The rows of the GPU activities that `ask` selects and that run during a counted step, in order of their starts.

    If the wall view cannot be answered, there are none, because what a step does on the GPU is then unknown.
    """
    rows = profile.counted_activities
    some = [rows[start : start + PART] for start in range(0, len(rows), PART)]
    return np.concatenate([NO_INTS, *(part[ask(profile.trace.events_at(part))] for part in some)])


def with_name(profile: Profile, fits: Callable[[str], object]) -> Ask:
    """The events whose name fits; each name is tested once."""
    name_fits = np.fromiter(map(bool, map(fits, profile.trace.names)), bool, len(profile.trace.names))
    return lambda events: name_fits[events.name_codes]


def same_name_and_operator(profile: Profile, rows: Ints) -> Ints:
    """The kernels of all counted steps that have the name and the operator of one of these."""
    names = np.zeros(len(profile.trace.names), bool)
    names[profile.trace.name_codes[rows]] = True
    candidates = kernels(profile, lambda events: names[events.name_codes])
    return candidates[np.isin(_kinds(profile, candidates), _kinds(profile, rows))]


def time_of(profile: Profile, rows: Ints | Rows) -> Union:
    """The time in which any of these events runs."""
    events = profile.trace.events_at(rows)
    return Union.of(events.ts_ns, events.end_ns)


def blaming(profile: Profile, rows: Ints, finding: Finding) -> Finding:
    """The finding, blaming these kernels: its headline ends with their name, or with that of the costliest.

    It claims the time in which they run, unless it claims other time already.
    """
    location, its_kernels = costliest(profile, rows)
    naming = ":" if len(its_kernels) == len(rows) else ", most of all"
    return replace(
        finding,
        headline=f"{finding.headline}{naming} {kernel_in_prose(location.kernel or '')}",
        where=location,
        evidence=evidence(profile, its_kernels),
        claim=finding.claim if finding.claim is not None else time_of(profile, rows),
        work=rows,
    )


def costliest(profile: Profile, rows: Ints) -> tuple[Where, Ints]:
    """The kernel name that takes most of their time, the operator that launches most of those, and their rows."""
    trace = profile.trace
    heaviest = rows[_of_heaviest_key(trace.name_codes[rows], trace.dur_ns[rows])]
    operators = operator_names(profile, heaviest)
    of_most = operators[_of_heaviest_key(operators, trace.dur_ns[heaviest])][0]
    name = trace.name(heaviest[0])
    return Where(kernel=name, operator=trace.names[of_most] if of_most >= 0 else None), heaviest


def of_classes(profile: Profile, rows: Ints, work_kinds: Collection[str]) -> Bools:
    """Which of the kernels do one of these kinds of work."""
    names, makers = profile.trace.names, [None, *profile.trace.names]
    kinds, inverse = occurring(_kinds(profile, rows))
    pairs = (divmod(kind, len(makers)) for kind in kinds.tolist())
    labels = (kernel_class(names[name], makers[maker]) for name, maker in pairs)
    fits: Bools = np.fromiter((label in work_kinds for label in labels), bool, len(kinds))[inverse]
    return fits


def share_of_work(profile: Profile, rows: Ints) -> float:
    """Their share of the GPU's work in the counted steps."""
    counted_rows = kernels(profile, lambda events: ~events.roles.communication)
    return float(profile.trace.dur_ns[rows].sum() / max(profile.trace.dur_ns[counted_rows].sum(), 1))


def operator_names(profile: Profile, rows: Ints) -> Ints:
    """For each kernel, the number of the name of the operator that launched it; −1 for none."""
    makers = profile.trace.operators.of(profile.trace.links.launch(rows))
    return np.where(makers >= 0, profile.trace.name_codes[np.maximum(makers, 0)], -1).astype(np.int64)


def _kinds(profile: Profile, rows: Ints) -> Ints:
    """One number for the name of each kernel and of its operator, which may be none."""
    codes = profile.trace.name_codes[rows].astype(np.int64)
    return codes * (len(profile.trace.names) + 1) + operator_names(profile, rows) + 1


def _of_heaviest_key(keys: Ints | Rows, weights: Ints) -> Bools:
    """The entries of the key with the largest total weight."""
    inverse = occurring(keys)[1]
    heaviest: Bools = inverse == np.bincount(inverse, weights).argmax()
    return heaviest


class QueueWaits(Struct, frozen=True):
    """The waits of the counted steps; one entry each, in order of time."""

    piece_mask: Bools  # the pieces that are such a wait
    start: Ints  # ns
    end: Ints
    before: Ints  # row of the GPU activity that ended last before it; −1 for none
    after: Ints  # row of the activity that starts at its end; −1 where the step ends first
    step_ns: float  # how long they last per counted step


def queue_waits(profile: Profile) -> QueueWaits:
    """The gaps that last too long for the GPU's own pace, without those in which work may not have been recorded."""
    pieces = profile.attribution.pieces
    is_wait = pieces.of("gpu_gap") & (pieces.dur >= SUBMISSION_NS) & profile.counted[pieces.step]
    is_wait &= ~profile.unseen.covers(pieces.start)
    start, end = pieces.start[is_wait], pieces.end[is_wait]
    before = after = NO_INTS
    if len(start):
        trace = profile.trace
        rows = trace.where(lambda part: part.roles.gpu & part.lasting)
        events = trace.events_at(rows)
        order = np.argsort(events.end_ns, kind="stable")
        ended = np.searchsorted(events.end_ns[order], start, side="right") - 1
        before = np.where(ended >= 0, rows[order[np.maximum(ended, 0)]], -1).astype(np.int64)
        begun = np.minimum(np.searchsorted(events.ts_ns, end), len(rows) - 1)
        after = np.where(events.ts_ns[begun] == end, rows[begun], -1).astype(np.int64)
    return QueueWaits(is_wait, start, end, before, after, float((end - start).sum()) / profile.counted_steps)
