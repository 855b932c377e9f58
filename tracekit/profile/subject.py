"""The variants that were opened: those with traces, and those that were only measured, or failed; and the device on
which each of them ran.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from tracekit.errors.reading import NoTraceInRunError
from tracekit.profile.profile import Mean, Profile
from tracekit.run import Run, Variant
from tracekit.study import Cell, Study
from tracekit.watched.reading import Watched

if TYPE_CHECKING:
    from tracekit.ranks import RankColumns


class Untraced(Struct, frozen=True):
    """A variant without a trace: none was taken, or it cannot be read. Its run may have other measurements."""

    name: str
    outcome: str
    reason: str
    variant: Variant | None = None
    run: Run | None = None
    run_name: str = ""
    cell: Cell | None = None  # of a study

    @property
    def means(self) -> dict[str, Mean | None]:
        """What a step takes in each view: unknown without a trace."""
        return {"wall": None, "host": None}

    @property
    def is_measured(self) -> bool:
        """Whether an unprofiled pass or a trace says how long a step takes."""
        return self.variant is not None and self.variant.measured is not None


Member = Profile | Untraced


def has_figures(member: Member) -> bool:
    """Whether there is anything to show of it: its trace was read, or it was at least measured."""
    return isinstance(member, Profile) or member.is_measured


class Subject(Struct, frozen=True):
    """The variants in the order given, including those without a trace."""

    members: list[Member]
    study: Study | None = None  # where a study was opened: its cells are the members
    watch: Watched | None = None  # where a watch was opened: the last traces that it took are the members
    # By variant, where readers elsewhere made them. They are only carried here, for the layers above to compare: this
    # layer needs no more than their type.
    ranks: "Mapping[str, list[RankColumns]]" = field(default_factory=dict)

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Variants that could not be read, or whose capture did not go well: name and sentence."""
        sentences = []
        for member in self.members:
            if member.variant is not None and member.variant.error:
                sentences.append((member.name, f"{member.variant.outcome}: {member.variant.error}"))
            if isinstance(member, Untraced) and (member.variant is None or member.reason != member.variant.error):
                sentences.append((member.name, member.reason))
        return sentences

    @property
    def profiles(self) -> list[Profile]:
        """The variants that were read."""
        return [member for member in self.members if isinstance(member, Profile)]

    @property
    def known(self) -> list[Member]:
        """The variants that have anything to show: those that were read, or at least measured; where a study or a watch
        has none of these, all of them."""
        figures = [member for member in self.members if has_figures(member)]
        return figures if figures or (self.study is None and self.watch is None) else self.members

    @property
    def runs(self) -> dict[str, Run]:
        """The runs that were opened, by name."""
        return {member.run_name: member.run for member in self.members if member.run is not None}

    @property
    def run(self) -> Run | None:
        """The run, if exactly one was opened and nothing else."""
        opened = [*self.runs.values()]
        return opened[0] if len(opened) == 1 and all(member.run is opened[0] for member in self.members) else None

    def traced(self, path: object) -> "Subject":
        """Itself, opened from that path, for callers that need a trace. Raises NoTraceInRunError."""
        if not self.profiles:
            raise NoTraceInRunError(path, why_none(self.members), measured=True)
        return self


def why_none(members: list[Member]) -> str:
    """The reason why none of these variants has anything to show."""
    return next((": ".join(problem) for problem in Subject(members).problems), "no variant has one")


def device_name(member: Member) -> str | None:
    """`NVIDIA A100-SXM4-40GB`, several names if devices differ; None if unknown."""
    names: list[object] = []
    if isinstance(member, Profile) and member.trace.device == "gpu":
        names = [gpu.get("name") for gpu in member.trace.gpus]
    elif member.run is not None and (isinstance(member, Profile) or member.run.device == "cpu"):
        names = [member.run.environment.get("cpu")]
    return ", ".join(dict.fromkeys(name for name in names if isinstance(name, str))) or None
