"""How does an answer fit into so many bytes? Lists are cut at their ends, the least valuable first, and texts in the
middle only where that is not enough; at last, long arguments of the call are not repeated. What was left out is
counted, with the arguments that get it.
"""

from bisect import bisect_right
from typing import Any

import msgspec

from tracekit.agent.answers import ENDING, LIMITS, Answer, Question
from tracekit.base.names import sanitize

LEAST, DEFAULT = 2000, 6000  # bytes of an answer
_WIDTHS = (600, 300, 150, 80, 40)  # letters of a text: a narrower one is tried where an answer is still too long
_UNTRUSTED = "untrusted"
_PART = 20  # of an answer: a longer argument is not repeated where nothing else helps


def text_of(document: Any) -> str:
    """An answer as it is sent, or a part of one."""
    return msgspec.json.encode(document).decode()


def size(document: Any) -> int:
    """The bytes that an answer, or a part of one, takes."""
    return len(msgspec.json.encode(document))


def fitted(answer: Answer, question: Question, arguments: dict[str, Any], budget: int) -> dict[str, Any]:
    """The answer as plain data in at most `budget` bytes, with the keys that end every answer last.

    `question.only` and `question.offset` choose a list and where it begins; `arguments` are those of the call.
    """
    lists = (*answer.lists, *LIMITS)
    whole = msgspec.to_builtins(answer)
    main = question.only or lists[0]
    for name in lists:
        if question.only is not None and name != main:
            whole.pop(name, None)
    if main in whole:
        whole[main] = whole[main][question.offset :]
    order = (*(name for name in reversed(lists) if name != main), main)
    again = {key: value for key, value in arguments.items() if key not in ("only", "offset")}
    document = whole
    for longest, width in (*((None, width) for width in _WIDTHS), (budget // _PART, _WIDTHS[-1])):
        document = _marked(whole, width)
        document["next"] = [{**call, "arguments": _repeated(call["arguments"], longest)} for call in document["next"]]
        for name in order:
            start, least = (question.offset, 1) if name == main else (0, 0)
            those = {**_repeated(again, longest), "only": name, "offset": start}
            document = _cut(document, name, least, budget, those)
        if size(document) <= budget:
            break
    return {key: document[key] for key in (*(key for key in document if key not in ENDING), *ENDING) if key in document}


def _repeated(arguments: dict[str, Any], longest: int | None) -> dict[str, Any]:
    """The arguments that take at most so many bytes each, or all."""
    return {key: value for key, value in arguments.items() if longest is None or size(value) <= longest}


def _cut(document: dict[str, Any], name: str, least: int, budget: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """The document with as many entries of a list as fit, but at least so many; `arguments` are those that get the list
    from where it begins."""
    entries = document.get(name, [])
    if size(document) <= budget or len(entries) <= least:
        return document

    def shortened(kept: int) -> dict[str, Any]:
        left_out = {
            "what": name,
            "count": len(entries) - kept,
            "arguments": {**arguments, "offset": arguments["offset"] + kept},
        }
        return {
            **{key: value for key, value in document.items() if key != name or kept},
            **({name: entries[:kept]} if kept else {}),
            "left_out": [*document.get("left_out", []), left_out],
        }

    fitting = bisect_right(range(len(entries)), budget, key=lambda kept: size(shortened(kept)))
    return shortened(max(least, fitting - 1))


def _marked(value: Any, width: int) -> Any:
    """The same with recorded texts made harmless, and cut to a width."""
    if isinstance(value, dict):
        return {
            key: {sanitize(name, width): _recorded(entry, width) for name, entry in part.items()}
            if key == _UNTRUSTED
            else _marked(part, width)
            for key, part in value.items()
        }
    return [_marked(entry, width) for entry in value] if isinstance(value, list | tuple) else value


def _recorded(value: Any, width: int) -> Any:
    """A recorded text, or what a query made of some; a list or struct that is longer than a text may be becomes one."""
    if isinstance(value, str):
        return sanitize(value, width)
    if not isinstance(value, dict | list | tuple):
        return value
    text = text_of(value)
    if len(text) > width:
        return sanitize(text, width)
    if isinstance(value, dict):
        return {sanitize(str(key), width): _recorded(entry, width) for key, entry in value.items()}
    return [_recorded(entry, width) for entry in value]
