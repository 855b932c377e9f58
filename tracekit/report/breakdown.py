"""Parts of a whole for each variant, rounded to thousandths of one unit so that rows and columns still add up."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import Struct, field

from tracekit.base.units import apportioned
from tracekit.profile.compare import Difference

_UNITS = (("s", 1_000_000_000, 10), ("ms", 1_000_000, 1), ("µs", 1_000, 0))
TOTAL = ""  # the key of the whole, which no part has


class Part(Struct, frozen=True):
    """One part of the whole: its name, its colour and its meaning."""

    key: str
    label: str
    colour: str
    meaning: str


class Breakdown(Struct, frozen=True):
    """Parts by variant. `scale_ns` ns are one unit; `cells[key][variant]` and the deltas count thousandths of it.

    `keys` are the parts that are not empty, and TOTAL; `means` are the exact means, ns. Each variant's difference is
    from its own baseline; a baseline has none.
    """

    kind: ClassVar[str] = "breakdown"
    name: str
    title: str
    unit: str
    scale_ns: int
    parts: tuple[Part, ...]
    means: Mapping[str, Mapping[str, float]]
    cells: Mapping[str, Mapping[str, int]]
    deltas: Mapping[str, Mapping[str, int]]
    baselines: Mapping[str, str] = field(default_factory=dict)
    differences: Mapping[str, Difference | None] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)  # variant → why it has no numbers
    contradicted: Mapping[str, str] = field(default_factory=dict)  # variant → what unprofiled passes say of its whole

    @property
    def keys(self) -> list[str]:
        """The parts that are not empty, in order, and the whole."""
        return [*(part.key for part in self.parts), TOTAL]

    @property
    def variants(self) -> list[str]:
        """The variants that have numbers, in order."""
        return list(self.means)

    @property
    def compared(self) -> list[str]:
        """The variants that are compared with a baseline."""
        return [name for name in self.variants if name in self.deltas[TOTAL]]

    def part(self, key: str) -> Part | None:
        """The part with that key; None for the whole."""
        return next((part for part in self.parts if part.key == key), None)


def breakdown(
    name: str,
    title: str,
    parts: Sequence[Part],
    *,
    means: Mapping[str, Mapping[str, float]],
    baselines: Mapping[str, str] | None = None,
    differences: Mapping[str, Difference | None] | None = None,
    unanswered: Mapping[str, str] | None = None,
    contradicted: Mapping[str, str] | None = None,
) -> Breakdown | None:
    """The breakdown of these means, ns by variant and part; None where there are none."""
    if not means:
        return None
    longest = max(sum(row.values()) for row in means.values())
    unit, scale = next((unit, scale) for unit, scale, min_units in _UNITS if longest >= scale * min_units)
    cells: dict[str, dict[str, int]] = {key: {} for key in (*(part.key for part in parts), TOTAL)}
    for variant, row in means.items():
        rounded = apportioned([row[part.key] * 1000 / scale for part in parts])
        for part, value in zip(parts, rounded, strict=True):
            cells[part.key][variant] = value
        cells[TOTAL][variant] = sum(rounded)
    base = baselines or {}
    return Breakdown(
        name=name,
        title=title,
        unit=unit,
        scale_ns=scale,
        parts=tuple(part for part in parts if any(cells[part.key].values())),
        means=means,
        cells=cells,
        deltas={key: {v: row[v] - row[base[v]] for v in row if base.get(v) in row} for key, row in cells.items()},
        baselines=base,
        differences=differences or {},
        unanswered=unanswered or {},
        contradicted=contradicted or {},
    )
