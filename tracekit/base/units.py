"""Quantities as text, the same in every face, and whole numbers that add up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_MIN_OF_A_UNIT = 0.005  # of a unit: less would round to 0.00
_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def duration(ns: float | None, signed: bool = False, like: float | None = None) -> str:
    """Three significant digits with a unit: `950 ns`, `1.24 ms`, `21.8 s`; `−0.77 ms` when `signed`; `–` for None.

    The unit is that of `like` where it is given, so that one sentence uses one unit: 28 µs beside 2.58 ms is `0.03 ms`.
    A time above zero never reads 0.00: 11 ns beside 12.5 ms is `11 ns`.
    """
    if ns is None:
        return "–"
    size = abs(ns)
    for scale, unit in _STEPS:
        # 999.6 µs prints as 1.00 ms: the unit is chosen by the rounded value.
        if (size if like is None else abs(like)) >= scale * 0.9995:
            if 0 < size < scale * _MIN_OF_A_UNIT:
                return duration(ns, signed)
            return f"{_sign(ns, signed)}{_digits(size / scale)} {unit}"
    return f"{_sign(ns, signed)}{size:.0f} ns"


def thousandths(number: int, signed: bool = False) -> str:
    """A count of thousandths of some unit, for aligned columns: 1240 is `1.240`."""
    return f"{_sign(number, signed)}{abs(number) // 1000:,}.{abs(number) % 1000:03d}"


def tick(ns: int, step: int) -> str:
    """The label of a mark on a scale with marks every `step`: `1.25 ms` for marks every 50 µs, `+` and `−` around 0."""
    scale, unit = next((factor for factor in _STEPS if factor[0] <= max(abs(ns), step)), (1, "ns"))
    decimals = next((digits for digits in range(9) if step * 10**digits % scale == 0), 9)
    return f"{_sign(ns, True)}{abs(ns) / scale:,.{decimals}f} {unit}"


def percent(share: float | None) -> str:
    """`0.471` → `47.1 %`; a share above zero never reads 0."""
    if share is None:
        return "–"
    if 0 < abs(share) < 0.0005:
        return "<0.1 %"
    return f"{share * 100:.1f} %"


def ratio(value: float) -> str:
    """`2.83` → `2.8 ×`, `1.31` → `1.31 ×`: two decimals below 2, where they matter."""
    return f"{value:.2f} ×" if value < 2 else f"{value:.1f} ×" if value < 100 else f"{value:,.0f} ×"


def plain(number: float) -> str:
    """A number without a unit, with four significant digits: `0.8124`."""
    return f"{number:.4g}".replace("-", "−")


def size(count: float | None) -> str:
    """Bytes in binary steps: `17.3 MiB`."""
    if count is None:
        return "–"
    for scale, unit in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(count) >= scale:
            return f"{_digits(count / scale)} {unit}"
    return f"{count:.0f} B"


def bandwidth(number: float) -> str:
    """Three significant digits: `13.9 GB/s`; `17.4 kB/s` for a small transfer."""
    if 0 < abs(number) < 0.001:
        return f"{number * 1e6:.3g} kB/s"
    return f"{number:.3g} GB/s" if abs(number) < 1000 else f"{number:,.0f} GB/s"


def rate(number: float) -> str:
    """A number per second with three significant digits: `10.9`, `1,240`."""
    return _digits(number)


def count(number: float | None) -> str:
    """A count with thousands separators; one decimal if it is not a whole number (but for the rounding of sums)."""
    if number is None:
        return "–"
    return f"{number:,.0f}" if float(round(number, 6)).is_integer() else f"{number:,.1f}"


def times(number: float) -> str:
    """How often: `once`, `3 times`, `0.5 times`."""
    return "once" if number == 1 else f"{count(number)} times"


def many(number: float, noun: str, several: str = "") -> str:
    """A number of something: `1 call`, `1,200 calls`, `2 passes` where the plural is given."""
    return f"{count(number)} {noun if number == 1 else several or f'{noun}s'}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}" if abs(value) < 99.95 else f"{value:,.0f}"


def _sign(value: float, signed: bool) -> str:
    return "−" if value < 0 else "+" if signed and value > 0 else ""


def apportioned(parts: "Sequence[float | Fraction]") -> list[int]:
    """Whole numbers next to the parts whose sum is the rounded sum of the parts (largest remainders first)."""
    floors = [int(part // 1) for part in parts]
    missing = round(sum(parts)) - sum(floors)
    by_remainder = sorted(range(len(parts)), key=lambda index: (floors[index] - parts[index], index))
    for index in by_remainder[:missing]:
        floors[index] += 1
    return floors
