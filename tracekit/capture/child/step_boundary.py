"""What may end a step of a script; if there are several, the highest one counts."""

from collections.abc import Collection
from enum import IntEnum


class Boundary(IntEnum):
    """From the least to the most specific."""

    CALL = 0  # the outermost module is called
    TRAINING_CALL = 1  # … while gradients are recorded, for parameters that take them
    OPTIMIZER = 2  # the optimizer has stepped
    MARK = 3  # a line is reached, or tracekit.step()

    @property
    def is_call(self) -> bool:
        """Whether it is a call of the outermost module."""
        return self <= Boundary.TRAINING_CALL


def allowed(step_at: str) -> Collection[Boundary]:
    """The boundaries that `--step-at`, or an earlier pass, allows."""
    if not step_at:
        return tuple(Boundary)
    if step_at == "call":
        return (Boundary.CALL, Boundary.TRAINING_CALL)
    return tuple(each for each in Boundary if each.name.lower() == step_at) or (Boundary.MARK,)


def of_a_call(among: Collection[Boundary], trains: bool, has_optimizer: bool) -> Boundary | None:
    """The boundary that the call of a module is: one that begins a step, or None."""
    if len(among) == 1:
        (only,) = among
        return only if trains or only in (Boundary.CALL, Boundary.MARK) else None
    said = Boundary.CALL
    if trains:
        said = Boundary.OPTIMIZER if has_optimizer else Boundary.TRAINING_CALL
    return said if said in among else None
