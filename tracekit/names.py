"""Long names in little room, still told apart."""

from tracekit.sanitize import sanitize

_LEFT = 4


def short(names: list[str], width: int) -> list[str]:
    """The names in at most `width` cells each; where one is too long, what all have in common goes first."""
    shown = [sanitize(name) for name in names]
    excess = max(map(len, shown), default=0) - width
    if len(shown) > 1 and excess > 0:
        head = _spared(_common(shown), excess)
        tail = _spared(_common([name[head:][::-1] for name in shown]), excess - head + 1)
        shown = [f"{'…' * bool(head)}{name[head : len(name) - tail]}{'…' * bool(tail)}" for name in shown]
    return [sanitize(name, width) for name in shown]


def _common(names: list[str]) -> int:
    """How many letters all begin with, some of each left over."""
    differ = (place for place, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1)
    return min(next(differ, len(names[0])), max(min(map(len, names)) - _LEFT, 0))


def _spared(common: int, excess: int) -> int:
    """How many of the common letters to drop; one is not worth the sign that stands for it."""
    dropped = min(common, excess + 1) if excess > 0 else 0
    return dropped if dropped > 1 else 0
