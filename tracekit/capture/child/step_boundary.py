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
    """The boundaries that `--step-at`, or an earlier pass, allows: "call" leaves open whether the calls train."""
    if not step_at:
        return tuple(Boundary)
    if step_at == "call":
        return (Boundary.CALL, Boundary.TRAINING_CALL)
    return tuple(boundary for boundary in Boundary if boundary.name.lower() == step_at) or (Boundary.MARK,)


def of_a_call(among: Collection[Boundary], trains: bool, has_optimizer: bool) -> Boundary | None:
    """The boundary whose first step begins with this call of a module; None if the call begins no step.

    Optimizers and marks end steps, so only such a call shows where the first step of theirs begins:

        allowed               a call that trains                 any other call
        only TRAINING_CALL    TRAINING_CALL                      None
        only OPTIMIZER        OPTIMIZER                          None
        only MARK             MARK                               MARK
        several               OPTIMIZER if there is one and      CALL
                              it is allowed, or TRAINING_CALL
    """
    if len(among) == 1:
        (boundary,) = among
        return boundary if trains or boundary is Boundary.MARK else None
    if not trains:
        return Boundary.CALL
    return Boundary.OPTIMIZER if has_optimizer and Boundary.OPTIMIZER in among else Boundary.TRAINING_CALL
