"""Are the same few operators called again and again, each for a tiny kernel, where one operator would do?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import plain
from tracekit.findings.one_by_one import TINY_NS, kernels_of, one_by_one
from tracekit.findings.rules.habits import ONE_BY_ONE
from tracekit.findings.where import where_of_event
from tracekit.intervals import Bools, Ints, Union, runs
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing, outermost
from tracekit.trace.roles import OPERATOR
from tracekit.units import count, duration

_TIMES = 20  # in a row: what is called less often may well be the layers of a model
_MOST = 4  # operators in the body of a loop that is recognised
_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html"


@rule("operator_loops")
def operator_loops(profile: Profile) -> Iterator[Finding]:
    """`operator_loop`: the time in such a loop in which the GPU idles, and that of the kernels that a single one would
    replace; one finding for each operator with which a loop begins."""
    trace = profile.trace
    if profile.means["wall"] is None or trace.device != "gpu":
        return
    operators = _launching(profile)
    first, last = _loops(trace.name_codes[operators].astype(np.int64) << 32 | trace.steps.of(trace.ts_ns[operators]))
    starts, ends = trace.ts_ns[operators[first]], trace.events_at(operators[last]).end_ns
    names = trace.name_codes[operators[first]]
    for code in np.unique(names).tolist():
        chosen = names == code
        spans = Union.of(starts[chosen], ends[chosen])
        kernels = kernels_of(profile, spans)[0]
        if not len(kernels) or np.median(trace.dur_ns[kernels]) > TINY_NS:
            continue
        rows = operators[spans.covers(trace.ts_ns[operators])]
        claim, undone = one_by_one(profile, spans)
        culprit = where_of_event(profile, int(rows[0]), plain(trace.names[code]))
        yield Finding(
            "operator_loop",
            f"Small operators in a row: {plain(trace.names[code])}{culprit.at}",
            why=f"{count(round(len(rows) / profile.counted_steps))} operators a step repeat each other; half of their "
            f"kernels take at most {duration(float(np.median(trace.dur_ns[kernels])))}.",
            do="Call one operator on a whole tensor instead of many in a loop (torch.stack, broadcasting, index_add_, "
            "torch.func.vmap), or a torch._foreach_ function on a list of tensors.",
            where=culprit,
            evidence=evidence(profile, rows),
            link=_LINK,
            claim=claim,
            undone=undone,
            host=spans,
        )


def _launching(profile: Profile) -> Ints:
    """The outermost operators of the main thread that launch work in counted steps, but not for a habit."""
    trace = profile.trace
    calls = np.unique(trace.links.launches).astype(np.int64)
    calls = calls[(trace.track[calls] == trace.threads.main) & profile.in_counted(trace.steps.of(trace.ts_ns[calls]))]
    calls = calls[enclosing(trace, calls, lambda part: part.roles.host & part.roles.named(ONE_BY_ONE)) < 0]
    operators = trace.where(
        lambda part: (
            (part.roles.kind == OPERATOR) & ~part.roles.annotation & part.lasting & (part.track == trace.threads.main)
        )
    )
    top = outermost(trace, operators)
    if not len(top):
        return top
    index = np.searchsorted(trace.ts_ns[top], trace.ts_ns[calls], side="right") - 1
    inside = (index >= 0) & (trace.ts_ns[calls] < trace.events_at(top).end_ns[np.maximum(index, 0)])
    launching: Ints = top[np.unique(index[inside])]
    return launching


def _loops(keys: Ints) -> tuple[Ints, Ints]:
    """The first and the last entry of each stretch in which a few keys repeat."""
    firsts, lasts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    found: Bools = np.zeros(len(keys), bool)
    for body in range(1, _MOST + 1):
        again = (keys[body:] == keys[:-body]) & ~found[body:] & ~found[:-body]
        bounds = runs(again.astype(np.int8))
        begins, ends = bounds[:-1], bounds[1:] + body - 1
        chosen = again[begins] & (ends - begins + 1 >= _TIMES * body) if len(again) else np.zeros(0, bool)
        firsts.append(begins[chosen])
        lasts.append(ends[chosen])
        for begin, end in zip(begins[chosen].tolist(), ends[chosen].tolist(), strict=True):
            found[begin : end + 1] = True
    return np.concatenate(firsts), np.concatenate(lasts)
