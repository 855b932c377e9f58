"""How does the optimizer update the parameters, and what would make it update all of them at once?"""

import re

import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.trace.roles import OPTIMIZER_STEP

_STEP = re.compile(r"Optimizer\.step#(\w+)\.step")
# Optimizers of torch.optim that have `foreach`, and those of them that have `fused` on a GPU.
_FOREACH = frozenset(
    ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
)
_FUSED = frozenset(("Adam", "AdamW", "SGD"))
# Operators and kernels that take a list of parameters; Triton's are those of a compiled step.
_LISTS = re.compile(r"aten::_(?:foreach|fused)_.*", re.DOTALL)
_OF_MANY = re.compile(r".*(?:multi_tensor|[Ff]used|triton_).*", re.DOTALL)


def at_once(profile: Profile, activities: Ints, launches: Ints) -> Bools:
    """Which of these GPU activities, each with the call that launched it, work on many parameters at once.

    The innermost operator decides: where `aten::_foreach_add_` has to call `aten::add_`, it goes one by one.
    """
    trace = profile.trace
    operators = trace.operators.of(launches)
    lists = (operators >= 0) & trace.labels.fits(_LISTS)[trace.name_codes[np.maximum(operators, 0)]]
    together: Bools = lists | trace.labels.fits(_OF_MANY)[trace.name_codes[activities]]
    return together


def steps(profile: Profile) -> bool:
    """Whether an optimizer steps in the recording."""
    return bool(profile.trace.labels.fits(OPTIMIZER_STEP).any())


def setting(profile: Profile) -> str:
    """The arguments with which the optimizers of this run update many parameters at once, such as `foreach=True`.

    Empty where no optimizer steps, where one of them has no such argument, and where all of them do so already.
    """
    trace = profile.trace
    stepping = trace.labels.fits(_STEP)
    names = {match[1] for name in trace.names if (match := _STEP.fullmatch(name))}
    if not names or not names <= _FOREACH:
        return ""
    activities, launches = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
    inside = enclosing(trace, launches, lambda part: part.roles.host & stepping[part.name_codes]) >= 0
    if inside.any() and at_once(profile, activities[inside], launches[inside]).all():
        return ""
    return "foreach=True or fused=True" if names <= _FUSED else "foreach=True"
