"""Model × data × variant: the settings as rows, their variants as columns, and the workloads side by side."""

from collections.abc import Sequence

from msgspec import Struct

from tracekit.study.settings import Setting, SpeedUp, names_of

_NAMED = ("recipe", "model", "dataset", "workload")


class Row(Struct, frozen=True):
    """One model on one data set, with everything else in its setting."""

    model: str
    data: str
    rest: str  # `framework=dgl loops_ahead=true`: the axes beside these in which settings of the study differ
    setting: Setting

    def speed_up(self, variant: str) -> SpeedUp | None:
        """How that variant compares with the baseline; None if it cannot be compared."""
        return next((comparison for comparison in self.setting.speed_ups if comparison.group.variant == variant), None)


def model_of(axes: dict[str, str]) -> str:
    """The model that a setting trains: a parameter of that name, or else the recipe."""
    return axes.get("model", axes["recipe"])


def data_of(axes: dict[str, str]) -> str:
    """What it trains on: a data set or a task, if an axis names one, else the recipe, which has its own data."""
    return axes.get("dataset") or axes.get("task") or axes["recipe"]


def rows(settings: Sequence[Setting], workload: str | None = None) -> list[Row]:
    """A row for each setting; if a workload is named, only for its settings."""
    rest = names_of([{"recipe": "", **_rest(setting.axes)} for setting in settings])
    return [
        Row(model_of(setting.axes), data_of(setting.axes), name.strip(), setting)
        for setting, name in zip(settings, rest, strict=True)
        if workload in (None, setting.axes["workload"])
    ]


def variants_of(settings: Sequence[Setting]) -> list[str]:
    """Every variant that occurs, in the order of the plan."""
    return [*dict.fromkeys(group.variant for setting in settings for group in setting.groups)]


def _rest(axes: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in axes.items() if name not in _NAMED and value}
