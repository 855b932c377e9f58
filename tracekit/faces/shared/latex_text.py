r"""Text for TeX: escaped, with possible line breaks, and its width."""

import re
import unicodedata
from functools import lru_cache

from tracekit.sanitize import sanitize

_TEXT = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "asciigrave")
_MATHS = {
    "−": "-",
    "×": r"\times",
    "±": r"\pm",
    "·": r"\cdot",
    "Δ": r"\Delta",
    "→": r"\to",
    "≥": r"\ge",
    "≠": r"\ne",
    "≤": r"\le",
    "∼": r"\sim",
}
_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"}
_SIGNS |= {sign: rf"\text{name}{{}}" for sign, name in zip("\\~^<>|`", _TEXT, strict=True)}
_SIGNS |= {sign: f"${maths}$" for sign, maths in _MATHS.items()}
_SIGNS |= {sign: f"{{{sign}}}" for sign in "[*"}  # at the beginning of a row, TeX would take them for its options
_SIGNS |= {"…": r"\ldots{}", "–": "--", "µ": r"\textmu{}", "\u2009": r"\,", "’": "'", '"': "''"}
_LATIN = range(0xC0, 0x180)
_OGONEK = "0328"  # the one accent that TeX's first encoding lacks
_BREAK = r"\allowbreak{}"
_WORD = 80.0  # points; a longer word may break
_PARTING = r"_/.,:;=&|@+)\]}>\-"  # signs after which a word may break
# It may also break after this many letters, and after each letter that is written as its number.
_PIECE = re.compile(rf"[{_PARTING}]+|[^\x00-\u017f]|[^{_PARTING}\u0180-\U0010ffff]{{1,8}}")
# Widths in Computer Modern of ten points, rounded up, in hundredths of a point.
_WIDTHS = {
    letter: width
    for letters, width in (
        ("ijl.,:;!'|I’", 361),
        ("frst()[]-/ ", 400),
        ("acegknopqvxyzuhbd0123456789$_~^`{}\\*", 556),
        ("wABCDEFHKLNOPQRTUVXYZJS", 785),
        ("mM%#&@=+<>×±Δ−GQ", 917),
        ("W…", 1172),
    )
    for letter in letters
}
_DEFAULT_WIDTH = 785
_NUMBER = 6 * 525  # `U+65E5` in letters of equal width
_SMALL = 0.925 / 100  # of the print of tables, relative to ten points


def escape(text: str) -> str:
    """Text that TeX sets as it is, whatever it contains; letters beyond Latin are replaced by their numbers."""
    parts = ("".join(map(_sign, part)) for part in sanitize(text).split("--"))
    return "-{}-".join(parts)  # two hyphens would become a dash


def prose(text: str, room: float = _WORD) -> str:
    """The same for text that is broken into lines: an overlong word may break, too."""
    return "".join(_breaking(piece, room) for piece in re.findall(r"\s+|\S+", sanitize(text)))


def lines_of(text: str, room: float) -> list[str]:
    """The text in lines that are no wider than the room, as far as it can be broken."""
    words = re.findall(r"\S+\s?", sanitize(text))
    lines = [""]
    for piece in (
        fragment for word in words for fragment in ([word] if points(word) <= room else _PIECE.findall(word))
    ):
        if lines[-1] and points(lines[-1] + piece.rstrip()) > room:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


@lru_cache(10_000)
def points(text: str) -> float:
    """The greatest possible width of the text in a table, points."""
    return (
        sum(
            _WIDTHS.get(character) or (_DEFAULT_WIDTH if _is_set(character) else _NUMBER)
            for character in sanitize(text)
        )
        * _SMALL
    )


def _breaking(piece: str, room: float) -> str:
    return escape(piece) if points(piece) <= room else _BREAK.join(map(escape, _PIECE.findall(piece)))


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    return character if _is_set(character) else rf"\texttt{{U+{ord(character):04X}}}"


def _is_set(character: str) -> bool:
    """Whether every TeX engine can set the letter: beyond ASCII, only letters composed of a letter and an accent."""
    if character.isascii() or character in _SIGNS:
        return True
    parts = unicodedata.decomposition(character)
    return ord(character) in _LATIN and bool(parts) and not parts.startswith("<") and _OGONEK not in parts
