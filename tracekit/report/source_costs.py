"""What does each line of one of your files cost, in every variant? For faces that show the file with a margin."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracekit.lines.owners import Group
from tracekit.report.owner_costs import VariantOwners


@dataclass(frozen=True)
class Fused:
    """Lines whose work was fused into one kernel, and what they cost together, ns in a counted step of that variant."""

    variant: str
    lines: Group  # at least one of them is in the file; others may be elsewhere
    step_ns: float


@dataclass(frozen=True)
class SourceCosts:
    """A file as it was captured, and what its lines cost in a counted step, ns.

    What a line costs alone and what it costs together with others are never the same time: `alone` and `fused` add
    up, and what was fused is never split between its lines.
    """

    file: str
    text: str
    alone: Mapping[str, Mapping[int, float]]  # by variant and number of the line; a line that costs nothing has none
    fused: tuple[Fused, ...]  # most expensive first

    def total_ns(self, variant: str) -> float:
        """What the file's lines cost, those that were fused with lines of other files included."""
        together = sum(fused_group.step_ns for fused_group in self.fused if fused_group.variant == variant)
        return sum(self.alone[variant].values()) + together

    def fused_by_line(self) -> dict[str, dict[int, float]]:
        """By variant and number of the line, what the groups cost that it is part of: the whole of each."""
        costs: dict[str, dict[int, float]] = {name: {} for name in self.alone}
        for fused_group in self.fused:
            of_variant = costs[fused_group.variant]
            for number in {line.line for line in fused_group.lines if line.file == self.file}:
                of_variant[number] = of_variant.get(number, 0.0) + fused_group.step_ns
        return costs


def source_costs(variants: Sequence[VariantOwners], file: str, text: str | None = None) -> SourceCosts:
    """The costs of one of `sources(variants)`, or of a file whose text is given. Raises KeyError for another file."""
    costs = [(variant.name, variant.by(lambda owner: owner.lines)) for variant in variants]
    fused = [
        Fused(name, lines, ns)
        for name, group_ns in costs
        for lines, ns in group_ns.items()
        if len(lines) > 1 and any(line.file == file for line in lines)
    ]
    return SourceCosts(
        file,
        sources(variants)[file] if text is None else text,
        {name: _single_line_costs(group_ns, file) for name, group_ns in costs},
        tuple(sorted(fused, key=lambda fused_group: -fused_group.step_ns)),
    )


def sources(variants: Iterable[VariantOwners]) -> dict[str, str]:
    """The user's files by their full paths, as they were when they were captured."""
    return {file: text for variant in variants for file, text in variant.means.sources.items()}


def _single_line_costs(costs: Mapping[Group, float], file: str) -> dict[int, float]:
    of_lines: dict[int, float] = {}
    for lines, ns in costs.items():
        if len(lines) == 1 and lines[0].file == file and ns >= 1:
            of_lines[lines[0].line] = of_lines.get(lines[0].line, 0.0) + ns
    return of_lines
