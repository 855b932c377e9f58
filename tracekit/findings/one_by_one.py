"""What is done one by one, where one operator would do: what would the host and the GPU be spared, and what would make
an optimizer update all parameters at once?
"""

import re

import numpy as np

from tracekit.base.intervals import Bools, Ints, Union
from tracekit.engine.buckets import SLOW_HOST
from tracekit.profile import Profile
from tracekit.profile.cached import once
from tracekit.trace.roles import OPTIMIZER_STEP
from tracekit.trace.rows import enclosing

BETWEEN_NS = 10_000  # a longer gap is not the usual price of a kernel
TINY_NS = 5_000  # a shorter kernel is over before the next is set up: a single one for all takes hardly longer
_OPTIMIZER = re.compile(r"Optimizer\.step#(\w+)\.step")
# Optimizers of torch.optim that have `foreach`, and those of them that have `fused` on a GPU.
_FOREACH = frozenset(
    ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
)
_FUSED = frozenset(("Adam", "AdamW", "SGD"))
# Operators and kernels that take a list of parameters; Triton's are those of a compiled step.
_LISTS = re.compile(r"aten::_(?:foreach|fused)_.*", re.DOTALL)
_OF_MANY = re.compile(r".*(?:multi_tensor|[Ff]used|triton_).*", re.DOTALL)


def kernels_of(profile: Profile, spans: Union) -> tuple[Ints, Ints]:
    """The GPU activities that the driving threads submit in these spans, in order of their starts, and in which span
    each."""
    trace = profile.trace
    activities, launches = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
    called = trace.ts_ns[launches]
    span = np.searchsorted(spans.starts, called, side="right") - 1
    in_span = (span >= 0) & np.isin(trace.track[launches], trace.threads.driving)
    in_span[in_span] = called[in_span] < spans.ends[span[in_span]]
    activities, span = activities[in_span], span[in_span]
    order = np.argsort(trace.ts_ns[activities], kind="stable")
    return activities[order], span[order]


def one_by_one(profile: Profile, spans: Union) -> tuple[Union, Ints]:
    """The time in these spans in which the host keeps the GPU waiting; that of the tiny kernels that are submitted in
    them; and the usual gaps between those. And these kernels, which a single one would replace."""
    trace, pieces = profile.trace, profile.attribution.pieces
    activities, span = kernels_of(profile, spans)
    events = trace.events_at(activities)
    tiny = events.end_ns - events.ts_ns <= TINY_NS
    follows = (span[1:] == span[:-1]) & (events.ts_ns[1:] - events.end_ns[:-1] < BETWEEN_NS)
    running = Union.of(
        np.concatenate((events.ts_ns[tiny], events.end_ns[:-1][follows])),
        np.concatenate((events.end_ns[tiny], events.ts_ns[1:][follows])),
    )
    return running.plus(spans.common(pieces.union(pieces.of(*SLOW_HOST)))), activities[tiny]


def at_once(profile: Profile, activities: Ints, launches: Ints) -> Bools:
    """Which of these GPU activities, each with the call that launched it, work on many parameters at once.

    The innermost operator decides: where `aten::_foreach_add_` has to call `aten::add_`, it goes one by one.
    """
    trace = profile.trace
    operators = trace.operators.of(launches)
    lists = (operators >= 0) & trace.labels.fits(_LISTS)[trace.name_codes[np.maximum(operators, 0)]]
    together: Bools = lists | trace.labels.fits(_OF_MANY)[trace.name_codes[activities]]
    return together


def optimizer_steps(profile: Profile) -> bool:
    """Whether an optimizer steps in the recording."""
    return bool(profile.trace.labels.fits(OPTIMIZER_STEP).any())


@once
def optimizer_setting(profile: Profile) -> str:
    """The arguments with which the optimizers of this run update many parameters at once, such as `foreach=True`.

    Empty where no optimizer steps, where one of them has no such argument, and where all of them do so already.
    """
    trace = profile.trace
    names = {match[1] for name in trace.names if (match := _OPTIMIZER.fullmatch(name))}
    if not names or not names <= _FOREACH:
        return ""
    activities, launches = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
    in_optimizer = enclosing(trace, launches, lambda part: part.roles.host & part.roles.named(_OPTIMIZER)) >= 0
    if in_optimizer.any() and at_once(profile, activities[in_optimizer], launches[in_optimizer]).all():
        return ""
    return "foreach=True or fused=True" if names <= _FUSED else "foreach=True"
