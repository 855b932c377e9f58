"""Text from a trace, made harmless: what a terminal or a reader would obey is shown, not obeyed."""

import re

# C0 and C1 controls, and the Unicode marks that reorder or hide what stands beside them.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def plain(text: str, width: int | None = None) -> str:
    """`text` with every control or direction mark spelled out (`\\x1b`), cut in the middle to `width` characters."""
    shown = _OBEYED.sub(lambda match: _spelled(ord(match[0])), text)
    if width is None or len(shown) <= width:
        return shown
    head = (width - 1) // 2
    return f"{shown[:head]}…{shown[len(shown) - (width - 1 - head) :]}"


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
