"""Text from a trace made harmless: control characters and invisible ones are spelled out instead of taking effect."""

import re
import unicodedata

# Control and format characters (which reorder or hide their neighbours), surrogates, private use, line ends.
_CONTROLS = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# Letters, marks and unassigned code points that are invisible: fillers, joiners, variation selectors, tags.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def sanitize(text: str, width: int | None = None) -> str:
    """`text` with control and invisible characters spelled out (`\\x1b`), cut in the middle to `width` characters."""
    shown = text
    if not text.isprintable() or _INVISIBLE.search(text):  # rare
        shown = "".join(_spelled(ord(each)) if _is_harmful(each) else each for each in text)
    if width is None or len(shown) <= width:
        return shown
    head = (width - 1) // 2
    return f"{shown[:head]}…{shown[len(shown) - (width - 1 - head) :]}"


def _is_harmful(character: str) -> bool:
    return unicodedata.category(character) in _CONTROLS or _INVISIBLE.match(character) is not None


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
