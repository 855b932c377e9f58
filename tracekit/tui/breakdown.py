"""Where the time of a step goes, bucket by bucket: the report's table, and the bars that stand for it."""

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from tracekit.draw.wording import title_of, uncertainty
from tracekit.engine.buckets import BUCKETS
from tracekit.profile import Profile
from tracekit.report import Grid, Report, grid
from tracekit.sanitize import sanitize
from tracekit.units import percent, thousandths

_MARKS = ascii_lowercase + ascii_uppercase
_NOISE = " ~ noise"


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
    """One clock's table: a column for each variant that can answer, in order, and a reason for each that cannot.

    Names are the report's own: whoever draws one makes it `plain`.
    """

    clock: str
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


def breakdown(found: Report, clock: str) -> Breakdown:
    """The breakdown of one clock; without lines where no variant can answer."""
    numbers = grid(found, clock)
    names = [profile.name for profile in found.profiles if numbers is not None and profile.name in numbers.cells[""]]
    return Breakdown(
        clock=clock,
        title=title_of(clock),
        unit=numbers.unit if numbers is not None else "",
        names=names,
        baseline=found.baseline.name,
        lines=[_line(numbers, key, mark) for key, mark in zip(numbers.keys, _MARKS, strict=False)] if numbers else [],
        unanswered={profile.name: _why(profile, clock) for profile in found.profiles if profile.name not in names},
    )


def _line(numbers: Grid, key: str, mark: str) -> Line:
    row, whole = numbers.cells[key], numbers.cells[""]
    bucket = BUCKETS.get(key)
    return Line(
        key=key,
        mark=mark if bucket else "",
        label=bucket.label if bucket else "total",
        colour=bucket.colour if bucket else "",
        meaning=bucket.meaning if bucket else "every bucket of a step together",
        shares={name: _share(row[name], whole[name], not key) for name in row},
        changes={name: _change(numbers, key, name) for name in numbers.deltas[key]},
    )


def _share(value: int, whole: int, total: bool) -> Share:
    shown = thousandths(value) if value or total else "·"
    return Share(value, shown, percent(value / whole) if value and whole and not total else "")


def _change(numbers: Grid, key: str, name: str) -> Change:
    delta, sure = numbers.deltas[key][name], uncertainty(numbers, key, name)
    return Change(delta, thousandths(delta, signed=True), sure.removesuffix(_NOISE), sure.endswith(_NOISE))


def _why(profile: Profile, clock: str) -> str:
    return sanitize(profile.cost.cannot_answer.get(clock, "no step of it can be answered"))
