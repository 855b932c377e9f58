"""What the person at the terminal reads while a capture runs."""

import sys
from pathlib import Path

from tracekit.capture.job import Stage
from tracekit.plain import plain
from tracekit.run import Run, Variant, divergence
from tracekit.units import duration

_TOLERANCE = 1e-4  # of the loss: other orders of summation stay well below it
_DOING: dict[Stage, str] = {
    "inspect": "preparing",
    "measure": "measuring, unprofiled",
    "profile": "taking traces",
    "check": "checking its losses",
}


def on_stderr(line: str) -> None:
    """stdout is for data."""
    print(line, file=sys.stderr, flush=True)


def beginning(run: Run) -> str:
    """`gcn_cora on cpu: eager, compiled`."""
    return f"{run.recipe} on {run.device}: {', '.join(run.planned)}"


def doing(name: str, stage: Stage) -> str:
    """`compiled: taking traces …`."""
    return f"{name}: {_DOING[stage]} …"


def ending(variant: Variant, run: Run) -> str:
    """`compiled: 0.80 ms a step (± 0.05 ms), 2 compilations of 21.8 s; same losses as eager`."""
    if variant.outcome != "ok":
        return f"{variant.name}: {variant.outcome} ({variant.error})"
    said = [_pace(variant), _compilations(variant), *_sameness(variant, run), *variant.effective.notes]
    return f"{variant.name}: {'; '.join(part for part in said if part)}"


def interrupted(run: Run, out: Path) -> str:
    """What Ctrl-C left."""
    kept = [variant.name for variant in run.variants if variant.measured]
    return f"Interrupted. {out} keeps {', '.join(kept)}." if kept else "Interrupted. Nothing was written."


def written(out: Path) -> str:
    """Where it is, and what opens it."""
    return f"Wrote {out}\nOpen it:  tracekit tui {out}   or   tracekit report {out}"


def quoted(traceback: str) -> str:
    """The recipe's own traceback, harmless to the terminal."""
    return "\n".join(plain(line) for line in traceback.rstrip().splitlines())


def _pace(variant: Variant) -> str:
    measured = variant.measured
    return f"{duration(measured.step_ns)} a step (± {duration(measured.spread_ns / 2)})" if measured else ""


def _compilations(variant: Variant) -> str:
    ledger = variant.ledger
    if not variant.measured or not ledger.compiles:
        return ""
    graphs = sum(entry.kind in ("first", "recompile") and not entry.failed for entry in ledger.compiles)
    again = sum(entry.kind == "recompile" for entry in ledger.compiles)
    counts = [_some(graphs, "graph"), _some(again, "recompilation"), _some(len(ledger.breaks), "graph break")]
    return f"{', '.join(counts)}, {duration(variant.measured.compile_ns)} compiling"


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _sameness(variant: Variant, run: Run) -> list[str]:
    eager = next((each for each in run.variants if not each.requested.compile and each.params == variant.params), None)
    if eager is None or eager is variant or not variant.losses:
        return []
    apart = divergence(eager.losses, variant.losses)
    if apart is None:
        return [f"its losses cannot be compared with {eager.name}'s"]
    if apart > _TOLERANCE:
        return [f"OTHER losses than {eager.name}: {apart:.1e} apart within {len(variant.losses)} steps"]
    return [f"same losses as {eager.name}"]
