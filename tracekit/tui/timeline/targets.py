"""What a timeline can be asked to show: a step, a stretch of time, an event or a gap."""

from msgspec import Struct
from msgspec.structs import replace

from tracekit.tui.timeline.state import State


class Step(Struct, frozen=True):
    """A step, by its position among those of its variant, from 0."""

    step: int


class Stretch(Struct, frozen=True):
    """A stretch of time of a variant, ns on its trace's clock."""

    variant: str
    start_ns: int
    end_ns: int


class Event(Struct, frozen=True):
    """An event: its row in the events table of a variant's trace."""

    variant: str
    row: int


class Moment(Struct, frozen=True):
    """The gap of the GPU, or else the piece of the step, that contains a moment of a variant, ns on its clock."""

    variant: str
    at_ns: int


Target = Step | Stretch | Event | Moment


def shown(state: State, target: Target) -> State:
    """The state with the target on the screen; unchanged, with a note, if its variant is not on this timeline."""
    if isinstance(target, Step):
        return state.seen(state.view.at_step(target.step).fitted())
    names = [index.profile.name for index in state.view.variants]
    if target.variant not in names:
        return replace(state, note=f"{target.variant} is not on this timeline")
    variant = names.index(target.variant)
    if isinstance(target, Event):
        return state.to_event(variant, target.row)
    if isinstance(target, Moment):
        return state.to_gap(variant, target.at_ns)
    return state.to_stretch(variant, target.start_ns, target.end_ns)
