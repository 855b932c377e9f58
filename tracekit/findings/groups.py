"""Which findings of several variants are one and the same: equal in what they say and in the line that they blame."""

from collections.abc import Mapping
from dataclasses import dataclass

from tracekit.findings.diagnosis import Diagnosis
from tracekit.findings.finding import Finding


@dataclass(frozen=True)
class Alike:
    """Equal findings, by variant, the costliest first; each with its index into the list of its variant."""

    of: dict[str, tuple[int, Finding]]

    @property
    def finding(self) -> Finding:
        """The costliest, whose evidence stands for the others'."""
        return next(iter(self.of.values()))[1]


def alike(diagnoses: Mapping[str, Diagnosis]) -> list[Alike]:
    """The findings that are worth telling, equal ones once: doubts first, then the costliest."""
    found = [
        (name, index, finding)
        for name, diagnosis in diagnoses.items()
        for index, finding in enumerate(diagnosis.findings)
    ]
    found.sort(key=lambda entry: (entry[2].cost_ns is not None, -(entry[2].cost_ns or 0.0)))
    groups: dict[tuple[object, ...], dict[str, tuple[int, Finding]]] = {}
    for name, index, finding in found:
        key = finding.id, finding.headline, finding.do, finding.where.file, finding.where.line
        of = groups.setdefault(key, {})
        if name in of:  # of one variant, two findings are two
            of = groups[*key, index] = {}
        of[name] = index, finding
    return [Alike(of) for of in groups.values()]
