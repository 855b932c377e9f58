"""Capturing the recipe of planted costs, and what its lines took: by its own clock, and by their owners."""

import json
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "capture"))
import pytest
import warm
from capturing import perform

from tracekit.engine import attribute
from tracekit.profile import Capture, Profile
from tracekit.report.line_costs import SideBySide
from tracekit.report.owner_costs import OfVariant
from tracekit.trace import Trace

LINES = ("loop", "sleep", "operator")
LAYERS = ("product", "curve")
RECIPE = Path(__file__).parent / "planted.py"


class Planted(NamedTuple):
    profile: Profile
    truth: dict[str, float]


def planted(folder, requested=None, steps=6, **params):
    """One profiled pass: the profile, and the mean of what each stretch took in the counted steps, ns."""
    truth = folder / "truth.json"
    more = {"requested": requested} if requested is not None else {}
    params = {"truth": str(truth), **params}
    with warm.passes():
        answer = perform(folder, "profile", RECIPE, 300, steps=steps, params=params, **more)
    assert answer.outcome == "ok", answer.traceback
    steady, detail = (folder / f"{window}.json.gz" for window in ("steady", "detail"))
    cost = attribute(Trace.load(steady))
    profile = Profile("planted", (Capture(steady, cost), Capture(detail, None, window="detail")))
    base = cost.trace.meta["baseTimeNanoseconds"]
    told = [json.loads(line) for line in truth.read_text().splitlines()]
    bounds = [*zip(cost.trace.steps.issued.tolist(), cost.trace.steps.returned.tolist(), strict=True)]
    counted = [each for each in told if any(low <= each["start"] - base < high for low, high in bounds)]
    assert len(counted) == steps
    mean = {name: sum(each[name] for each in counted) / steps for name in counted[0] if name != "start"}
    return Planted(profile, mean)


def line_of(name):
    """The line that takes that cost."""
    lines = RECIPE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {name}"))


def found(profile, *names, backward=False):
    """What these lines cost in a counted step, alone and fused with others: their backward, or all else."""
    wanted = {line_of(name) for name in names}
    means = profile.owner_means.by(
        "wall",
        lambda owner: (bool(wanted & {line.line for line in owner.lines}), owner.phase == "backward"),
    )
    return means.get((True, backward), 0.0)


def check(profile, truth, name):
    """A line costs what it took; a layer's, with what stands around its call, which is a small part of it."""
    around = found(profile, f"{name}, around it", f"{name}, called") if name in LAYERS else 0.0
    assert found(profile, name) + around == pytest.approx(truth[name], rel=0.05), name
    assert found(profile, name) > 4 * around, name


def check_backward(profile, truth):
    """Backward costs what it took, and is for the lines of the layers."""
    layers = found(profile, *LAYERS, *(f"{name}, around it" for name in LAYERS), backward=True)
    called = found(profile, "backward") + found(profile, "backward", "between", backward=True)
    assert layers + called == pytest.approx(truth["backward"], rel=0.05)
    assert layers > 8 * called


def first_row(profile):
    """The line that costs most."""
    return SideBySide([OfVariant("planted", profile.owner_means, "wall")]).table()["line"][0].as_py()
