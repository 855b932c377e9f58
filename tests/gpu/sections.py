"""The sections, the most important first, and how long each may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A module with this name, whose `check(claims)` makes the claims."""

    name: str
    seconds: int
    about: str
    on_a_cpu: bool = True
    only_if_named: bool = False


SECTIONS = (
    Section("injected", 110, "known causes, and what the report says of them"),
    Section("modes", 230, "gcn_cora, captured in every mode"),
    Section("recipes", 130, "every recipe, eager, once"),
    Section("faults", 110, "memory that runs out, and a kernel that never ends"),
    Section("sessions", 60, "several recordings in one process", on_a_cpu=False),
    Section("doctor", 90, "what this machine can capture"),
    Section("pairs", 60, "what-if's predictions of true pairs", on_a_cpu=False),
    Section("pathologies", 200, "every pathology and its cure", on_a_cpu=False, only_if_named=True),
    Section("sources", 500, "what guides promise, and what is seen", on_a_cpu=False, only_if_named=True),
)
