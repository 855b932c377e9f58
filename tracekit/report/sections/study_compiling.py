"""What did the compiler do at each setting: graphs, recompilations, breaks, and what it gave up on; what does that
cost, and after how many steps or epochs does it pay off?
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.profile.run_facts import SPREAD_EPOCHS, epoch_ns, epoch_with_compiling_ns
from tracekit.report.section import rows_of_study
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.run import Variant
from tracekit.run.contrast import cold_cost_ns
from tracekit.study import Study
from tracekit.study.settings import Group, groups_of
from tracekit.trace.schema import column

_REAL, _INTEGER = pa.float64(), pa.int64()
COMPILING = pa.schema(
    [
        SETTING,
        VARIANT,
        column("compile_ns", _REAL, "time inside compilations; mean over the seeds", "ns"),
        column("compiles", _REAL, "compilations"),
        column("first_step_ns", _REAL, "the first step, compilation included", "ns"),
        column(
            "cold_cost_ns",
            _REAL,
            "what the slower start cost: compiling before the first step, and longer first steps",
            "ns",
        ),
        column("break_even_steps", _REAL, "steps until the time saved makes up for the slower start"),
        column("epoch_steps", _INTEGER, "steps per epoch; null where they cannot be counted"),
        column("break_even_epochs", _REAL, "the same in epochs"),
        column("epoch_ns", _REAL, "an epoch at the unprofiled step time", "ns"),
        column("epoch_with_compiling_ns", _REAL, "the same, with the slower start spread over `epochs`", "ns"),
        column("epochs", _INTEGER, "epochs trained; 100 where none were"),
    ]
)
GRAPHS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("graphs", _INTEGER, "graphs compiled in the profiled pass, first ones and recompilations"),
        column("recompiles", _INTEGER, "recompilations in the profiled pass, including those that failed"),
        column("graph_breaks", _INTEGER, "places where a graph breaks", title="graph break places"),
        column("reason", pa.string(), "why the first of them breaks, in the compiler's own words", role="reason"),
        column("gave_up", _INTEGER, "functions that reached the recompile limit and have run eagerly since"),
        column("mode", pa.string(), "the mode that was in effect"),
        column("ran_eagerly", pa.string(), "why nothing was compiled although that was requested"),
    ]
)


@rows_of_study("compile_cost", "Cost of compiling", COMPILING, rank=7)
def compiling(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant that was measured."""
    epochs = study.manifest.options.epochs or SPREAD_EPOCHS
    for setting, group in groups_of(study):
        if not group.measured:
            continue
        compared = setting.speed_up_of(group.variant)
        steps = compared.break_even_steps if compared is not None else None
        of_epoch = next((measured.epoch_steps for measured in group.measured.values()), None)
        yield {
            "setting": setting.name,
            "variant": group.variant,
            "compile_ns": group.compile_ns,
            "compiles": group.mean(lambda variant: variant.measured.compiles if variant.measured is not None else None),
            "first_step_ns": group.mean(_first_step),
            "cold_cost_ns": group.mean(cold_cost_ns),
            "break_even_steps": steps,
            "epoch_steps": of_epoch,
            "break_even_epochs": steps / of_epoch if steps is not None and of_epoch else None,
            "epoch_ns": group.mean(epoch_ns),
            "epoch_with_compiling_ns": group.mean(lambda variant: epoch_with_compiling_ns(variant, epochs)),
            "epochs": epochs if of_epoch else None,
        }


def _first_step(variant: Variant) -> float | None:
    return next(iter(variant.measured.first_steps_ns), None) if variant.measured is not None else None


@rows_of_study("graphs", "Graphs, recompilations and breaks", GRAPHS, rank=10)
def graphs(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant that was compiled; the most of all seeds."""
    for setting, group in groups_of(study):
        compiled = [variant for variant in group.variants if variant.requested.compile]
        if not compiled:
            continue
        yield {
            "setting": setting.name,
            "variant": group.variant,
            "graphs": max(variant.ledger.graphs for variant in compiled),
            "recompiles": recompiles(group),
            "graph_breaks": graph_breaks(group),
            "reason": next((variant.ledger.breaks[0].reason for variant in compiled if variant.ledger.breaks), None),
            "gave_up": max(len(variant.ledger.limits) for variant in compiled),
            "mode": ", ".join(dict.fromkeys(variant.effective.mode or "" for variant in compiled)) or None,
            "ran_eagerly": group.ran_eagerly,
        }


def graph_breaks(group: Group) -> int | None:
    """Places where a graph breaks: the most of all seeds; None where nothing was captured."""
    return max((variant.ledger.break_places for variant in group.variants), default=None)


def recompiles(group: Group) -> int | None:
    """Recompilations in the profiled pass: the most of all seeds; None where nothing was captured."""
    return max((variant.ledger.recompiles for variant in group.variants), default=None)
