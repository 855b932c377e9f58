"""Which Python frames are the user's, and which a library's? Known from the capture, else judged by their names."""

from collections.abc import Collection, Iterable

from msgspec import Struct

from tracekit.lines.owners import SourceLine
from tracekit.vocabulary.code_owner import USER, library, owner_by_path, plain_function, profiled
from tracekit.vocabulary.lines_file import MODULE_CALL, LinesFile

_NOT_SHOWN = f"{MODULE_CALL}OptimizedModule"  # what torch.compile puts around a module
_OUTER_STAGES = ("propagate", "edge_updater")
_INNER_STAGES = ("message", "message_and_aggregate", "aggregate", "update", "edge_update")


class Frame(Struct, frozen=True):
    """What a frame's name stands for: a function of the user's, a library, or neither."""

    line: SourceLine | None = None
    library: str = ""


_NEITHER = Frame()


class Frames:
    """Classifies frames by name, each name once."""

    def __init__(self, lines: LinesFile | None, mine: Collection[str] = (), names: Iterable[str] = ()) -> None:
        """`names` are all names that occur: those of functions show where resumed ones begin."""
        self._functions = {function.name: function for function in lines.functions} if lines is not None else None
        self._mine = tuple(mine)
        self._defined = _defined(names) if lines is None else {}
        self.unproven: set[str] = set()  # packages that may be the user's: nothing in the trace says

    def of(self, name: str) -> Frame:
        """The frame that a `python_function` event of that name stands for."""
        if self._functions is not None:
            function = self._functions.get(name)
            if function is None:
                return _NEITHER
            if function.owner != USER:
                return Frame(library=library(function.owner))
            return Frame(SourceLine(function.file, function.line, plain_function(function.function)))
        if (frame := profiled(name)) is None:
            return _NEITHER
        guess = owner_by_path(frame.file, self._mine)
        if guess.owner != USER:
            if not guess.is_certain:
                self.unproven.add(guess.owner or frame.file)
            return Frame(library=library(guess.owner))
        plain = plain_function(frame.function)
        line = self._defined.get((frame.file, plain), frame.line) if plain != frame.function else frame.line
        return Frame(SourceLine(frame.file, line, plain, True))


def _defined(names: Iterable[str]) -> dict[tuple[str, str], int]:
    """The line of the `def` of each function, by file and name; of several the first."""
    frames = sorted((frame.file, frame.function, frame.line) for name in names if (frame := profiled(name)))
    return {(file, function): line for file, function, line in reversed(frames)}


def module_of(name: str) -> str | None:
    """`GCNConv_0` of `nn.Module: GCNConv_0`; None for other frames, and for what torch.compile puts around a module."""
    return name.removeprefix(MODULE_CALL) if name.startswith(MODULE_CALL) and not name.startswith(_NOT_SHOWN) else None


def stage_of(name: str) -> str | None:
    """`aggregate` for a frame of that name inside a layer of PyG: the stage of message passing."""
    function = name.rpartition("): ")[2] if name.endswith(_OUTER_STAGES + _INNER_STAGES) else ""
    return function if function in _OUTER_STAGES + _INNER_STAGES else None


def extended(chain: tuple[str, ...], name: str) -> tuple[str, ...]:
    """A chain of modules, extended by an inner module or a stage of message passing; a stage counts once, and only in
    a module."""
    if name in _OUTER_STAGES and (not chain or chain[-1] == name):
        return chain
    if name in _INNER_STAGES and (not chain or chain[-1] not in _OUTER_STAGES):
        return chain
    return (*chain, name)
