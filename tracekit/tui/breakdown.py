"""Where the time of a step goes, bucket by bucket: the report's table, and the bars that stand for it."""

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from tracekit.faces.shared.wording import interval, is_noise, label, share
from tracekit.profile import Profile
from tracekit.report import Report
from tracekit.report import breakdown as blocks
from tracekit.report.sections.breakdowns import TITLES, of_view
from tracekit.sanitize import sanitize
from tracekit.units import thousandths

_MARKS = ascii_lowercase + ascii_uppercase


@dataclass(frozen=True)
class Share:
    """What one variant spends on one bucket; `thousandths` of the breakdown's unit, text as the report has it."""

    thousandths: int
    value: str
    share: str


@dataclass(frozen=True)
class Change:
    """A variant's difference from the baseline in one bucket."""

    thousandths: int
    value: str
    interval: str
    noise: bool


@dataclass(frozen=True)
class Line:
    """One bucket, or the total, whose key is empty. The mark stands for the bucket where its label has no room."""

    key: str
    mark: str
    label: str
    colour: str
    meaning: str
    shares: dict[str, Share]
    changes: dict[str, Change]


@dataclass(frozen=True)
class Breakdown:
    """The table of one view: a column for each variant that can answer, in order, and a reason for each that cannot.

    Names are the report's own: whoever draws one sanitizes it first.
    """

    view: str
    title: str
    unit: str
    names: list[str]
    baseline: str
    lines: list[Line]
    unanswered: dict[str, str]

    @property
    def total(self) -> Line | None:
        """The last line."""
        return self.lines[-1] if self.lines else None


def breakdown(report: Report, view: str) -> Breakdown:
    """The breakdown of one view; without lines where no variant can answer."""
    numbers = of_view(report, view)
    if numbers is not None:
        return shown(numbers)
    unanswered = {profile.name: _why(profile, view) for profile in report.profiles}
    return Breakdown(view, TITLES[view], "", [], report.baseline.name, [], unanswered)


def shown(numbers: blocks.Breakdown) -> Breakdown:
    """A breakdown of the report as screens show it."""
    return Breakdown(
        view=numbers.name,
        title=sanitize(numbers.title),
        unit=numbers.unit,
        names=numbers.variants,
        baseline=next((base for base in numbers.baselines.values()), ""),
        lines=[_line(numbers, key, mark) for key, mark in zip(numbers.keys, _MARKS, strict=False)],
        unanswered={name: sanitize(why) for name, why in numbers.unanswered.items()},
    )


def _line(numbers: blocks.Breakdown, key: str, mark: str) -> Line:
    part = numbers.part(key)
    return Line(
        key=key,
        mark=mark if part else "",
        label=label(numbers, key),
        colour=part.colour if part else "",
        meaning=part.meaning if part else "every bucket of a step together",
        shares={name: _share(numbers, key, name) for name in numbers.variants},
        changes={name: _change(numbers, key, name) for name in numbers.compared},
    )


def _share(numbers: blocks.Breakdown, key: str, name: str) -> Share:
    value = numbers.cells[key][name]
    return Share(value, thousandths(value) if value or not key else "·", share(numbers, key, name))


def _change(numbers: blocks.Breakdown, key: str, name: str) -> Change:
    delta = numbers.deltas[key][name]
    return Change(delta, thousandths(delta, signed=True), interval(numbers, key, name), is_noise(numbers, key, name))


def _why(profile: Profile, view: str) -> str:
    return sanitize(profile.views[view].reason or "no step of it can be answered")
