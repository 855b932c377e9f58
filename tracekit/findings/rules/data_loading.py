"""Does the loop wait for its next batch, and what takes the loader so long?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.culprits import Culprit, by_name, plain, where
from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.trace.roles import DATALOAD
from tracekit.units import duration

_LEAST = 0.02
_NAMED = 0.1  # of the wait: what takes less is no culprit
_COLLATE = ("aten::stack", "aten::cat", "aten::_cat")
_LINK = "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading"


@rule("data_loading")
def data_loading(profile: Profile) -> Iterator[Finding]:
    """`dataloader_bound`, with what the loading thread did meanwhile."""
    mean = profile.means["wall"] or profile.means["host"]
    if mean is None or mean.parts["dataload"] < _LEAST * mean.step_ns:
        return
    pieces = profile.cost.pieces
    chosen = pieces.of("dataload")
    culprits = [each for each in by_name(profile, chosen) if len(each.rows)]
    named = [each for each in culprits if each.step_ns >= _NAMED * mean.parts["dataload"]][:3]
    spans = _spans(profile)
    in_process = any("SingleProcess" in profile.trace.names[code] for code in profile.trace.name_codes[spans].tolist())
    yield Finding(
        "dataloader_bound",
        f"The loop waits {duration(mean.parts['dataload'])} a step for its next batch{_told(named, in_process)}",
        advice=_advice(culprits, in_process),
        where=where(profile, int(named[0].rows[0]), plain(named[0].name))
        if named
        else Where(operator=_loader(profile, spans)),
        evidence=evidence(profile, named[0].rows if named else spans),
        link=_LINK,
        claim=pieces.union(chosen),
    )


def _spans(profile: Profile) -> Ints:
    """The times at which the loop asked for a batch, in counted steps."""
    trace = profile.trace
    found = [part.rows(part.roles.annotation & part.roles.named(DATALOAD)) for part in trace.parts()]
    rows = np.concatenate(found or [np.zeros(0, np.int64)])
    step = trace.steps.of(trace.ts_ns[rows])
    chosen: Ints = rows[np.append(profile.counted, False)[step]]
    return chosen


def _loader(profile: Profile, spans: Ints) -> str | None:
    return profile.trace.names[profile.trace.name_codes[spans[0]]] if len(spans) else None


def _told(named: list[Culprit], in_process: bool) -> str:
    place = ", in the training process itself" if in_process else ""
    if not named:
        return place
    parts = ", ".join(f"{duration(each.step_ns)} in {plain(each.name)}" for each in named)
    return f"{place}: {parts}"


def _advice(culprits: list[Culprit], in_process: bool) -> str:
    said = []
    total = sum(each.step_ns for each in culprits)
    if in_process:
        said.append(
            "Load in other processes (DataLoader(num_workers=…, persistent_workers=True, prefetch_factor=…)), so that "
            "the next batch is made while this one trains."
        )
    else:
        said.append(
            "The workers do not keep up: use more of them (num_workers), let them work ahead (prefetch_factor), and "
            "keep them alive between epochs (persistent_workers=True)."
        )
    collating = sum(each.step_ns for each in culprits if each.name in _COLLATE)
    if total and collating >= _NAMED * total:
        said.append("Putting the batch together is part of it: collate fewer, larger tensors, or store them batched.")
    else:
        said.append("What does not change from epoch to epoch can be done once, before training.")
    return " ".join(said)
