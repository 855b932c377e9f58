"""Compares a capture with plain runs of the same script; every difference is a sentence."""

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracekit.run import Measured, Run, Variant, divergence, loss_tolerance

from . import captured, plain
from .captured import Captured
from .plain import Plain
from .printed import Printed
from .scripts import Script

_SETTLED = 12  # steps after which nothing compiles any more, in a plain run
_FASTEST = 20  # percent of the steps: what other processes do to a step only makes it longer
_PACE_WITHIN = 1.25  # how far the processor times of a step in two runs of one training may differ
_CLOCK_WITHIN = 1.05  # how far the capture's step time may differ from that of the script's own clock meanwhile


@dataclass(frozen=True)
class Row:
    """One variant in the table of results."""

    script: str
    variant: str
    steps: str
    plain: str
    captured: str
    cpu_ratio: float | None  # processor time of a step in the measured pass ÷ in a plain run
    clock: float | None  # the step time that the capture states ÷ what the script itself printed in that pass
    losses: str
    files: str
    busy: bool  # more processes ran than the machine has cores, so its times mean nothing

    @property
    def cells(self) -> list[str]:
        """The cells of the row, as texts."""
        ratios = ["–" if each is None else f"{each:.2f} ×" for each in (self.cpu_ratio, self.clock)]
        cpu_ratio, clock = (f"{each} (busy)" if self.busy else each for each in ratios)
        return [
            self.script,
            self.variant,
            self.steps,
            self.plain,
            self.captured,
            cpu_ratio,
            clock,
            self.losses,
            self.files,
        ]

    @property
    def keeps_pace(self) -> bool:
        """Whether its steps take as long as a plain run's, and as long as the capture says."""
        return _within(self.cpu_ratio, _PACE_WITHIN) and _within(self.clock, _CLOCK_WITHIN)

    @property
    def out_of_pace(self) -> str:
        """The sentence if a variant does not keep pace."""
        return (
            f"{self.variant}: a step takes {self.cells[5]} of a plain run's, and is said to take {self.cells[6]} of it"
        )


def compare(script: Script, folder: Path) -> tuple[list[Row], list[str]]:
    """Capture the script, run it plainly as each variant, and say where the two differ."""
    taken = captured.capture(script, folder)
    if taken.run is None:
        return [], [taken.output]
    rows, wrong = [], [*_left_behind(script, taken)]
    if script.says not in taken.output:
        wrong.append(f"the capture does not say: {script.says}")
    for variant in taken.run.variants:
        ran = plain.run(script, folder, variant.requested.compile)
        rows.append(_row(script, variant, taken, ran))
        wrong += _differences(script, variant, taken, ran)
    wrong += _told_apart(taken.run)
    return rows, [*dict.fromkeys(wrong), taken.output] if wrong else []


def is_busy() -> bool:
    """Whether more processes run than this machine has cores."""
    return os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)


def closest(row: Row, other: Row) -> Row:
    """The better of two attempts at one variant."""
    return min(row, other, key=lambda each: (each.busy, abs((each.cpu_ratio or 0) - 1)))


def _within(ratio: float | None, factor: float) -> bool:
    return ratio is not None and 1 / factor < ratio < factor


def _row(script: Script, variant: Variant, taken: Captured, ran: Plain) -> Row:
    timed = "+".join(str(len(times)) for times in _timed(variant.measured)) if variant.measured else "0"
    profiled = variant.profiled.steps if variant.profiled else 0
    return Row(
        script.name,
        variant.name,
        f"{len(ran.printed.losses)}: {timed} timed, {profiled} traced",
        str(ran.counts),
        str(captured.counts(variant)),
        _cpu_ratio(variant, taken, ran),
        _clock(variant, taken),
        "differ" if [*_losses(variant, taken, ran)] else "same",
        f"{len(ran.files)} / {len(taken.files)}",
        is_busy(),
    )


def _differences(script: Script, variant: Variant, taken: Captured, ran: Plain) -> Iterator[str]:
    """All differences except that of the pace."""
    if ran.code:
        yield f"{variant.name}: the plain run ended with exit code {ran.code}: {ran.output[-2000:]}"
    if variant.outcome != "ok":
        yield f"{variant.name}: {variant.outcome} ({variant.error})"
    if variant.requested.compile and str(ran.counts) != script.counts:
        yield f"{variant.name}: {ran.counts} graphs/recompiles/breaks in a plain run, {script.counts} expected"
    expected = script.ledger if variant.requested.compile and script.ledger else str(ran.counts)
    if (ours := str(captured.counts(variant))) != expected:
        yield f"{variant.name}: {expected} graphs/recompiles/breaks in a plain run, {ours} in the ledger"
    yield from _losses(variant, taken, ran)
    for each in taken.passes[variant.name].values():
        yield from _elsewhere(script, variant.name, each, ran.printed)


def _losses(variant: Variant, taken: Captured, ran: Plain) -> Iterator[str]:
    """A pass stops once it has seen enough, so its losses are the first ones of a plain run."""
    passes = taken.passes[variant.name].values()
    if not any(each.losses for each in passes):
        yield f"{variant.name}: no pass printed a step"
    for each in passes:
        if each.losses != ran.printed.losses[: len(each.losses)]:
            pairs = zip(each.losses, [*ran.printed.losses, *each.losses], strict=False)
            at, pair = next((at, pair) for at, pair in enumerate(pairs) if pair[0] != pair[1])
            yield f"{variant.name}: the loss of step {at} is {pair[0]}, in a plain run {pair[1]}"


def _told_apart(run: Run) -> Iterator[str]:
    """Both variants train in the same way, and the capture's own comparison of their losses must say so."""
    eager, *others = run.variants
    for variant in others:
        apart = divergence(eager.losses, variant.losses)
        if apart is not None and apart > loss_tolerance(eager.loss_drift):
            yield f"{variant.name}: its losses are said to differ from {eager.name}'s, by {apart:.1e}"


def _elsewhere(script: Script, name: str, each: Printed, ran: Printed) -> Iterator[str]:
    """sys.path, arguments, the current folder: what the script sees of where it runs."""
    for key, value in ran.here.items():
        expected = [one for one in value if one != script.compile] if key == "argv" else value
        if each.here and each.here.get(key) != expected:
            yield f"{name}: {key} is {each.here.get(key)!r}, in a plain run {expected!r}"


def _left_behind(script: Script, taken: Captured) -> Iterator[str]:
    """What the script writes must not remain, except that the capture names what C code wrote directly."""
    if silently := sorted(name for name in taken.files if f"not put back: {name}" not in taken.output):
        yield f"the capture leaves behind {', '.join(silently[:5])}"


def _cpu_ratio(variant: Variant, taken: Captured, ran: Plain) -> float | None:
    settled = ran.printed.cpu_ms[_SETTLED:]
    meanwhile = [ms for each in _measured(taken, variant) for ms in each.cpu_ms[_SETTLED:]]
    return _fast(meanwhile) / _fast(settled) if min(len(meanwhile), len(settled)) >= 5 else None


def _clock(variant: Variant, taken: Captured) -> float | None:
    """The last steps of a pass are the timed ones; the line of the very last step is no longer printed."""
    if variant.measured is None:
        return None
    printed, ratios = taken.passes[variant.name], []
    for at, times in enumerate(_timed(variant.measured)):
        printed_ms = printed[f"measure-{at + 1}" if at else "measure"].times_ms[-len(times) :]
        if len(printed_ms) >= 5:
            ratios.append(_fast(times) / 1e6 / _fast(printed_ms))
    return statistics.median(ratios) if ratios else None


def _timed(measured: Measured) -> list[list[int]]:
    return [each.step_all_ns for each in measured.passes] or [measured.step_all_ns]


def _measured(taken: Captured, variant: Variant) -> list[Printed]:
    return [each for name, each in taken.passes[variant.name].items() if name.startswith("measure")]


def _fast(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100)[_FASTEST - 1]
