"""On which line of a compiled function does its graph break?

Dynamo's stack of a break ends with the caller of the compiled function and continues in the functions that were
inlined: if Dynamo was inlining a module, the function itself is missing. But what runs after the break is compiled
again below that function, and the stack of that compilation has its line.
"""

import re
from dataclasses import replace
from typing import Any, NamedTuple

from tracekit.compile_log.entries import LogEntry
from tracekit.python_frames import plain_function

TRACEBACK = "User code traceback:\n"
_RAISED = "\nTraceback (most recent call last)"
_ENTRY = re.compile(r'^(?= *File ")', re.MULTILINE)
_FRAME = re.compile(r' *File "(.+)", line (\d+), in (.+)')


class _Frame(NamedTuple):
    file: str
    line: int
    function: str
    source: str = ""

    @property
    def location(self) -> tuple[str, int, str]:
        return self.file, self.line, plain_function(self.function)

    @property
    def code(self) -> tuple[str, str]:
        return self.file, plain_function(self.function)


class BreakStacks:
    """Completes the stacks of graph breaks, once a later compilation shows the line."""

    def __init__(self, breaks: list[LogEntry]) -> None:
        self._breaks = breaks
        self._files: dict[int, str] = {}
        self._stacks: dict[str, list[_Frame]] = {}  # for each compilation, with the function itself innermost
        self._open: list[int] = []  # breaks whose line is not known yet

    def take(self, metadata: dict[str, Any], compile_id: str) -> None:
        """Look at one record of the compiler's log: a name in its table of files, or the start of a compilation."""
        if "str" in metadata:
            file, number = metadata["str"]
            self._files[number] = file
        elif "dynamo_start" in metadata:
            frames = [
                _Frame(self._files.get(record["filename"], ""), record["line"], record["name"], record.get("loc") or "")
                for record in metadata["dynamo_start"].get("stack") or ()
            ]
            self._complete(frames[:-1])
            self._stacks[compile_id] = frames

    def broke(self) -> None:
        """Note that the latest break was just recorded."""
        self._open.append(len(self._breaks) - 1)

    def _complete(self, callers: list[_Frame]) -> None:
        """Look for functions with breaks among the callers of a function that is about to be compiled."""
        for index in [*self._open]:
            stack = self._stacks.get(self._breaks[index].id)
            line = next((caller for caller in reversed(callers) if stack and caller.code == stack[-1].code), None)
            if stack and line is not None and line.file:
                entry = self._breaks[index]
                self._breaks[index] = replace(entry, text=_with_frame(entry.text, stack[:-1], line))
                self._open.remove(index)


def _with_frame(text: str, callers: list[_Frame], frame: _Frame) -> str:
    """A break's text with that frame inserted below the function's callers, unless it is already there."""
    head, mark, rest = text.partition(TRACEBACK)
    stack, raised, error = rest.partition(_RAISED)
    entries = _ENTRY.split(stack)
    frames = [_parsed(entry) for entry in entries]
    outer = {caller.location for caller in callers}
    position = 1 + max(
        (index for index, parsed in enumerate(frames) if parsed and parsed.location in outer), default=-1
    )
    if any(parsed and parsed.code == frame.code for parsed in frames[position:]):
        return text
    frame_text = f'  File "{frame.file}", line {frame.line}, in {plain_function(frame.function)}\n    {frame.source}\n'
    return head + mark + "".join([*entries[:position], frame_text, *entries[position:]]) + raised + error


def _parsed(entry: str) -> _Frame | None:
    shape = _FRAME.match(entry)
    return _Frame(shape[1], int(shape[2]), shape[3]) if shape else None
