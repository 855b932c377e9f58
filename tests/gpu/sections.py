"""The sections, the most important first, how long each may take, and which of them may run side by side."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A module with this name, whose `check(claims)` makes the claims."""

    name: str
    seconds: int
    about: str
    on_a_cpu: bool = True
    only_if_named: bool = False


@dataclass(frozen=True)
class Lane:
    """Sections that run one after another, beside those of other lanes, on their share of the machine's cores."""

    share: float
    sections: tuple[Section, ...]


# What these claim are times: nothing else may run.
ALONE = (
    Section("injected", 110, "known causes, and what the report says of them"),
    Section("pairs", 60, "what-if's predictions of true pairs", on_a_cpu=False),
    Section("planted_lines", 100, "what lines cost, beside CUDA events", on_a_cpu=False),
    Section("sources", 300, "what guides promise, and what is seen", on_a_cpu=False, only_if_named=True),
)
LANES = (
    Lane(
        0.35,
        (Section("modes", 300, "gcn_cora, captured in every mode"),),
    ),
    Lane(0.45, (Section("pathologies", 400, "every pathology and its cure", on_a_cpu=False),)),
    Lane(
        0.20,
        (
            Section("faults", 110, "memory that runs out, and a kernel that never ends"),
            Section("recipes", 130, "every recipe, eager, once"),
            Section("sessions", 60, "several recordings in one process", on_a_cpu=False),
            Section("doctor", 90, "what this machine can capture"),
        ),
    ),
)
SECTIONS = (*ALONE, *(section for lane in LANES for section in lane.sections))
