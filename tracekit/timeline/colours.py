"""Colours between two others, and which text colour is readable on one. Hex triplets throughout."""

from functools import lru_cache


@lru_cache(1 << 12)
def blend(one: str, other: str, share: float) -> str:
    """The colour at a given share of the way from one colour to another."""
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


@lru_cache(1 << 12)
def readable_on(colour: str) -> str:
    """Black or white, whichever is easier to read on it."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else "#ffffff"
