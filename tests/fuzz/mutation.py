"""How a tree of JSON values is changed so that it stays JSON, and says what no writer would: values out of range, of
another type or hostile, and records that are missing, doubled, out of order, renamed or nested.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(-0.0, 0.1, 0.0005, -3.5, 5e-324, 1e15 + 0.25, 1.7e308, float("inf"), float("-inf"), float("nan")),
)
TEXTS = (
    *("", " ", "0", "-1", "1e999", "NaN", "null", "٣", "9" * 30, "x" * 3000, "a\0b", "line\nline\r\n\ttab"),
    *("\x1b[2J\x1b]0;title\x07", "\u202egnp.exe", "\ud800", "\ufeff", "\U000e0041", "\x9b31m", "日本語" * 30),
    *('=HYPERLINK("http://x","y")', "@SUM(1)", "+1|cmd", "\\input{x}%$#_&^~{}", "</script><img src=x onerror=y>"),
    *(
        "`[x](javascript:y)`|",
        "%s%n{0}{x!r}",
        "../../../../etc/hostname",
        "[/red][link=file:///x]y",
        "$\\frac{$",
        "/dev/zero",
        "~",
        "a/" * 200,
        "C:\\x\\y.py",
    ),
)
_DEEP, _DOUBLE = "\ue000deep", "\ue000double"  # `dumped` makes nested lists and doubled keys of them
_DEPTHS = (10, 63, 64, 65, 200, 990, 5_000, 200_000)
_MOST_COPIES = 40
_MOST_CHANGES = 6
_MOST_PLACES = 20_000
_Place = tuple[Any, Any]  # a list or an object, and the index or the key in it


def changed(tree: Any, random: Random, words: Sequence[str] = ()) -> Any:
    """The tree, which is used up, with a few changes. `words` mean something where it is read."""
    root = [tree]
    for _ in range(random.choice((1, 1, 1, 2, 3, _MOST_CHANGES))):
        places = _places(root)
        holder, key = random.choice(places)
        match random.randrange(9):
            case 0 | 1:
                holder[key] = _strange(random, words)
            case 2 | 3:
                holder[key] = _near(holder[key], random, words)
            case 4:
                other, other_key = random.choice(places)
                holder[key] = deepcopy(other[other_key])
            case 5 if holder is not root:
                del holder[key]
            case 6 if isinstance(holder, list) and holder is not root:
                copies = random.choice((1, 2, _MOST_COPIES))
                holder[key:key] = [deepcopy(holder[key]) for _ in range(copies)]
            case 7 if isinstance(holder, dict):
                name = str(random.choice((*words, *TEXTS, _any_key(places, random))))
                holder[random.choice((name, key + _DOUBLE))] = random.choice((holder.get(key), _strange(random, words)))
            case _:
                _reorder(holder[key] if isinstance(holder[key], list) else holder, random)
    return root[0]


def dumped(tree: Any, random: Random) -> bytes:
    """The tree as JSON of one spelling or another, not all of which a strict reader takes."""
    ascii_only = random.random() < 0.7
    text = json.dumps(
        tree,
        ensure_ascii=ascii_only,
        separators=random.choice(((",", ":"), (", ", ": "))),
        indent=random.choice((None, None, 1)),
    )
    for mark, meant in ((_DEEP, None), (_DOUBLE, "")):
        written = json.dumps(mark, ensure_ascii=ascii_only)
        if meant is None:
            depth = random.choice(_DEPTHS)
            text = text.replace(written, "[" * depth + "]" * depth)
        else:
            text = text.replace(written.strip('"'), meant)
    return text.encode("utf-8", "surrogatepass")


def _places(root: list[Any]) -> list[_Place]:
    places: list[_Place] = []
    unseen = [root]
    while unseen and len(places) < _MOST_PLACES:
        holder = unseen.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            places.append((holder, key))
            if isinstance(holder[key], dict | list):
                unseen.append(holder[key])
    return places


def _any_key(places: Sequence[_Place], random: Random) -> str:
    key = random.choice(places)[1]
    return key if isinstance(key, str) else "key"


def _strange(random: Random, words: Sequence[str]) -> Any:
    kinds = (NUMBERS, TEXTS, tuple(words) or TEXTS, (None, True, False, [], {}, [[]], {"": {}}, _DEEP))
    return deepcopy(random.choice(random.choice(kinds)))


def _near(value: Any, random: Random, words: Sequence[str]) -> Any:
    """A value that differs little, and so gets further."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return random.choice((value + 1, value - 1, -value, value * 2, value * 1000, value / 2, str(value)))
    if isinstance(value, str):
        at = random.randint(0, len(value))
        return random.choice((value[:at], value[at:], value[:at] + random.choice((*TEXTS, *words)) + value[at:]))
    return random.choice(([value], {"name": value}, json.dumps(value)))


def _reorder(holder: Any, random: Random) -> None:
    if isinstance(holder, list):
        random.shuffle(holder)
    elif isinstance(holder, dict):
        entries = [*holder.items()]
        random.shuffle(entries)
        holder.clear()
        holder.update(entries)
