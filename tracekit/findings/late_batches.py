"""Why batches came late, in words, and what to do about it: by what the workers of the loader recorded."""

from collections.abc import Callable

from tracekit.base.units import count, duration, many, percent, ratio
from tracekit.findings.finding import Where
from tracekit.loading.causes import Explanation, Reason, explain
from tracekit.loading.record import Place
from tracekit.loading.stalls import HANDING_OVER, Interval
from tracekit.profile import Profile
from tracekit.profile.cached import once

_WORTH_NAMING = 0.1  # of a batch's time: a line with less is not named
_IDLE = 0.5  # of the other workers' time: then it is said that they wait for the slow batch
_ONCE = "What does not change from epoch to epoch can be done once, before the loop."
_AHEAD = "let the workers work further ahead (prefetch_factor)"
_OUT_OF_ORDER = "where the order of batches does not matter, take them as they come (in_order=False, from torch 2.6 on)"
_IN_LOOP = "Use num_workers=0: it takes {making} to make a batch, and {handing} to receive one from a worker."
_NOT_PINNED = " Compare with batches that are not pinned (pin_memory=False)."
# The reasons whose line is what to change: it is where the finding points.
_MADE_BY_WORKERS = ("slow_worker", "few_workers", "larger_batches", "slow_batches", "full_queue")


@once
def explained(profile: Profile) -> Explanation | None:
    """Why the loop waited for batches in the counted steps; None where workers recorded nothing of it."""
    loading, pieces = profile.loading, profile.attribution.pieces
    is_waiting = pieces.of("dataload") & profile.counted[pieces.step]
    if loading is None or not is_waiting.any():
        return None
    union, base_ns = pieces.union(is_waiting), profile.trace.base_ns
    waits = [*zip((union.starts + base_ns).tolist(), (union.ends + base_ns).tolist(), strict=True)]
    return explain(loading, waits, judged(profile))


def judged(profile: Profile) -> Interval:
    """The time from the first counted step to the last, unix ns."""
    view, base_ns = profile.attribution.answered_view, profile.trace.base_ns
    starts_ns = view.starts_ns[profile.counted]
    return int(starts_ns.min()) + base_ns, int((starts_ns + view.step_ns[profile.counted]).max()) + base_ns


def why(explanation: Explanation) -> str:
    """What follows `It waits 31.2 ms a step`, up to the end of the sentence or after it."""
    return _WHY[explanation.reason](explanation)


def advice(explanation: Explanation, pins: bool = False) -> str:
    """What to do: never more workers where they could not help. First the line of theirs that is slow, if one is;
    `pins` tells whether the loader's batches are pinned."""
    place = line_to_change(explanation)
    cheaper = ""
    if place is not None:
        of_batch = f"{duration(explanation.place_ns)} of {duration(explanation.blamed_ns)} for a batch"
        cheaper = f"Make {named(place)} cheaper: it takes {of_batch}. "
    pinned = _NOT_PINNED if explanation.reason == "delayed" and pins else ""
    return f"{cheaper}{_ADVICE[explanation.reason](explanation)}{pinned}"


def line_to_change(explanation: Explanation) -> Place | None:
    """The line at which workers spend most of the time that the loop waits for; None if it is another's fault."""
    is_worth_naming = explanation.place_ns >= _WORTH_NAMING * explanation.blamed_ns
    return explanation.place if explanation.reason in _MADE_BY_WORKERS and is_worth_naming else None


def named(place: Place) -> str:
    """`radius_graph at data.py:88`: what is called there or, if that is not known, the function that the line is in."""
    return f"{place.callee or place.function}{Where(place.file, place.line).at}"


def _of_it(explanation: Explanation) -> str:
    """`, 27.1 ms of them in radius_graph at data.py:88`; empty where no line is known to take a part worth naming."""
    place = line_to_change(explanation)
    return f", {duration(explanation.place_ns)} of them in {named(place)}" if place is not None else ""


def _slow_worker(explanation: Explanation) -> str:
    others = "other worker" if explanation.workers == 2 else f"other {count(explanation.workers - 1)} workers"
    return (
        f", {percent(explanation.worker_share)} of it for batches of worker {explanation.worker}. It takes "
        f"{duration(explanation.blamed_ns or explanation.making_ns)} for one{_of_it(explanation)}: "
        f"{ratio(explanation.slower)} as long as the {others}"
    )


def _few_workers(explanation: Explanation) -> str:
    number = count(explanation.workers)
    its, each = ("its worker is", "It") if explanation.workers == 1 else (f"its {number} workers are", "Each")
    return (
        f": {its} busy {percent(explanation.busy)} of each epoch. {each} takes {duration(explanation.making_ns)} for a "
        f"batch{_of_it(explanation)}; the loop takes {duration(explanation.working_ns)} for one, without waiting"
    )


def _handing_over(explanation: Explanation) -> str:
    parts = ", ".join(
        f"{duration(ns / explanation.stalls)} {part}" for part in HANDING_OVER if (ns := explanation.parts.get(part, 0))
    )
    return (
        f", {percent(explanation.share(*HANDING_OVER))} of it for batches that are made, but not handed over: {parts}, "
        "of each late batch"
    )


def _delayed(explanation: Explanation) -> str:
    cores = f" share {many(explanation.cores, 'core')}" if explanation.cores else " need cores"
    return (
        f", {percent(explanation.share('delayed'))} of it for batches that workers have sent, and that reach it late: "
        f"the loop and {many(explanation.workers, 'worker')}{cores}"
    )


def _drawing(explanation: Explanation) -> str:
    lasting = duration(explanation.parts["drawing"] / explanation.stalls)
    return (
        f", {percent(explanation.share('drawing'))} of it to draw the indices of later batches, {lasting} each time: "
        "the sampler runs in the loop, whatever the workers do"
    )


def _larger(explanation: Explanation) -> str:
    return (
        f", for batches that are {ratio(explanation.larger)} as large as most, and take {ratio(explanation.slower)} as "
        f"long to make: {duration(explanation.blamed_ns)}{_of_it(explanation)}"
    )


def _slow_batches(explanation: Explanation) -> str:
    idle = (
        f". Meanwhile, the other workers have nothing to do for {percent(explanation.others_idle)} of the time: they "
        "have made as many batches as they may, and batches are given out in order"
        if explanation.others_idle >= _IDLE and explanation.workers > 1
        else ""
    )
    return (
        f", for batches that take {ratio(explanation.slower)} as long to make as most, and are no larger: "
        f"{duration(explanation.blamed_ns)}{_of_it(explanation)}{idle}"
    )


def _full_queue(explanation: Explanation) -> str:
    return (
        f", although its {many(explanation.workers, 'worker')} made batches for only {percent(explanation.busy)} of "
        "each epoch: while the loop is slow, they make as many as they may; then it is fast, and they are late"
    )


def _starting(explanation: Explanation) -> str:
    return ", most of it for the first batch of each worker in an epoch"


def _few_workers_advice(explanation: Explanation) -> str:
    needed = explanation.needed
    if explanation.is_faster_without:
        return _in_loop(explanation)
    if needed is None or needed <= explanation.workers:
        return f"The workers nearly keep up: {_AHEAD}. {_ONCE}"
    if explanation.cores and needed > explanation.cores:
        return (
            f"Make a batch cheaper first: {many(needed, 'worker')} would keep up, but the process may use only "
            f"{many(explanation.cores, 'core')}. {_ONCE}"
        )
    return f"Use {many(needed, 'worker')} (num_workers={needed}): so many keep up, if each has a core. {_ONCE}"


def _handing_over_advice(explanation: Explanation) -> str:
    if explanation.is_faster_without:
        return f"{_in_loop(explanation)} More workers do not shorten that."
    return (
        "Return tensors, few and large, from collate_fn: they pass through shared memory, while arrays and other "
        "objects are pickled and written to a pipe. More workers do not make it faster to receive a batch."
    )


def _in_loop(explanation: Explanation) -> str:
    return _IN_LOOP.format(making=duration(explanation.making_ns), handing=duration(explanation.handing_ns))


_WHY: dict[Reason, Callable[[Explanation], str]] = {
    "slow_worker": _slow_worker,
    "few_workers": _few_workers,
    "handing_over": _handing_over,
    "delayed": _delayed,
    "drawing": _drawing,
    "larger_batches": _larger,
    "slow_batches": _slow_batches,
    "full_queue": _full_queue,
    "starting": _starting,
}
_ADVICE: dict[Reason, Callable[[Explanation], str]] = {
    "slow_worker": lambda explanation: (
        f"Find out what worker {explanation.worker} does that the others do not: its share of the data, its files. "
        f"More workers do not help, since batches are given out in order; {_OUT_OF_ORDER}."
    ),
    "few_workers": _few_workers_advice,
    "handing_over": _handing_over_advice,
    "delayed": lambda explanation: (
        "Use fewer workers, and fewer threads in the loop, so that it has a core when its batch is there."
    ),
    "drawing": lambda explanation: (
        "Make the sampler cheaper (sampler, batch_sampler): draw the indices of an epoch at once, and keep them as a "
        "list. More workers do not help."
    ),
    "larger_batches": lambda explanation: (
        "Make batches alike: limit the nodes or edges of a batch of graphs (PyG's DynamicBatchSampler), or put samples "
        f"of like length together. To bridge single large ones, {_AHEAD}."
    ),
    "slow_batches": lambda explanation: f"Make these batches cheaper; to bridge them, {_AHEAD}; {_OUT_OF_ORDER}.",
    "full_queue": lambda explanation: (
        f"On average, the workers keep up: {_AHEAD}, so that they bridge the loop's uneven pace."
    ),
    "starting": lambda explanation: (
        "The workers stay alive between epochs, but each epoch begins without a batch that is ready: make epochs "
        "longer (a sampler that passes over the data several times)."
        if explanation.persist
        else "Keep the workers alive between epochs (persistent_workers=True), and leave the first step out of what "
        "you measure."
    ),
}
