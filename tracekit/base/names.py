"""Names from a trace made fit to be shown: shortened so that they can still be told apart, and harmless, with control
characters and invisible ones spelled out instead of taking effect.
"""

import re
import unicodedata
from collections.abc import Sequence

HEAD = 22  # letters of a variant above a column
_LEFT = 4
_WORDS = re.compile(r"([_\-.:/ ]+)")
# Control and format characters (which reorder or hide their neighbours), surrogates, private use, line ends.
_CONTROLS = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# Letters, marks and unassigned code points that are invisible: fillers, joiners, variation selectors, tags.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def short(names: list[str], width: int) -> list[str]:
    """The names in at most `width` cells each; if one is too long, what all have in common is dropped first.

    Whole words are dropped without an ellipsis: `gcn_eager_v100` beside `gcn_compiled_v100` is `eager`.
    """
    short_names = [sanitize(name) for name in names]
    if len(short_names) > 1 and max(map(len, short_names)) > width:
        short_names = _without_common_words(short_names)
    excess = max(map(len, short_names), default=0) - width
    if len(short_names) > 1 and excess > 0:
        head = _spared(_common(short_names), excess)
        tail = _spared(_common([name[head:][::-1] for name in short_names]), excess - head + 1)
        short_names = [f"{'…' * bool(head)}{name[head : len(name) - tail]}{'…' * bool(tail)}" for name in short_names]
    return cut_apart(short_names, width)


def cut_apart(names: list[str], width: int) -> list[str]:
    """The names in at most `width` cells each, in the order given; if cutting would make some equal, what distinguishes
    them stays.

    Unlike `short`, it treats each set of colliding names separately; the others are cut in the middle.
    """
    cut_names = {name: sanitize(name, width) for name in names}
    for _ in range(2):  # first where names begin to differ and, for those that are still equal, where they last differ
        alike: dict[str, list[str]] = {}
        for name, cut in cut_names.items():
            alike.setdefault(cut, []).append(name)
        for group in alike.values():
            if len(group) > 1:
                texts = [sanitize(name) for name in group]
                start = max(_first_difference(texts) - 1, 0)
                cut_names |= {name: _with_gap(text, start, width) for name, text in zip(group, texts, strict=True)}
    return [cut_names[name] for name in names]


def cut_off(text: str, width: int) -> str:
    """A sentence in at most `width` cells: its beginning."""
    clean_text = sanitize(text)
    return clean_text if len(clean_text) <= width else f"{clean_text[: width - 1].rstrip()}…"


def _with_gap(text: str, start: int, width: int) -> str:
    """The beginning of a text, and from `start` on as much as half the width holds."""
    tail = text[start:][: max(width // 2, 1)]
    head = width - 1 - len(tail)
    if len(text) <= width or start <= head:
        return text if len(text) <= width else f"{text[: width - 1]}…"
    return f"{text[: max(head, 0)]}…{tail}"[:width]


def aligned(names: list[str], width: int) -> list[str]:
    """The names in at most `width` cells, padded to the longest, so that what follows them is aligned."""
    short_names = short(names, width)
    longest = max(map(len, short_names), default=0)
    return [name.ljust(longest) for name in short_names]


def _without_common_words(names: list[str]) -> list[str]:
    """Each name without the words that all begin and end with; at least one word remains."""
    words = [_WORDS.split(name) for name in names]
    head = _shared(words)
    words = [word[head:] for word in words]
    tail = _shared([word[::-1] for word in words])
    shortened = ["".join(word[: len(word) - tail]) for word in words]
    return shortened if all(shortened) and len(set(shortened)) == len(set(names)) else names


def _shared(words: list[list[str]]) -> int:
    """How many words and separators all begin with: an even number that leaves at least one word of each."""
    return min(_first_difference(words), min(map(len, words)) - 1) // 2 * 2


def _common(names: list[str]) -> int:
    """How many letters all begin with, leaving a few of each."""
    return min(_first_difference(names), max(min(map(len, names)) - _LEFT, 0))


def _first_difference(texts: Sequence[Sequence[str]]) -> int:
    """Where texts, or lists of words, begin to differ; the length of the shortest if they do not before it ends."""
    differ = (index for index, parts in enumerate(zip(*texts, strict=False)) if len(set(parts)) > 1)
    return next(differ, min(map(len, texts)))


def _spared(common: int, excess: int) -> int:
    """How many of the common letters to drop; a single one is not worth the ellipsis that replaces it."""
    dropped = min(common, excess + 1) if excess > 0 else 0
    return dropped if dropped > 1 else 0


def sanitize(text: str, width: int | None = None) -> str:
    """`text` with control and invisible characters spelled out (`\\x1b`), cut in the middle to `width` characters."""
    clean = text
    if not text.isprintable() or _INVISIBLE.search(text):  # rare
        clean = "".join(map(_spelled, text))
    if width is None or len(clean) <= width:
        return clean
    head = (width - 1) // 2
    return f"{clean[:head]}…{clean[len(clean) - (width - 1 - head) :]}"


def _spelled(character: str) -> str:
    """The character or, if it is a control or cannot be seen, its code."""
    if unicodedata.category(character) not in _CONTROLS and not _INVISIBLE.match(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
