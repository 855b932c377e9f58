"""Captures the recipe with planted costs, and compares what its lines took by its own clock and by their owners."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import warm

from tests.capture.capturing import perform
from tracekit.engine import attribute
from tracekit.lines.owners import PHASES
from tracekit.profile import Capture, Profile
from tracekit.report.owner_costs import VariantOwners
from tracekit.report.sections.lines import SideBySide
from tracekit.trace import Trace

LINES = ("loop", "sleep", "operator", "item")
LAYERS = ("product", "curve")
RECIPE = Path(__file__).parent / "planted_recipe.py"


class Planted(NamedTuple):
    profile: Profile
    truth: list[dict[str, int]]  # of each step in the steady trace, ns by the name of the stretch

    def costs(self, names, *, backward=None, recipe=RECIPE):
        """What these lines cost in each step, in ns, alone and fused: in backward, in everything else, or in both."""
        costs, owners = self.profile.ownership.costs["wall"], self.profile.ownership.owners
        lines, total = {line_of(name, recipe) for name in names}, np.zeros(len(self.truth))
        for step, owner, ns in zip(costs.step.tolist(), costs.owner.tolist(), costs.ns.tolist(), strict=True):
            is_backward = PHASES[owners.rows[owner].phase] == "backward"
            if backward in (None, is_backward) and any(each.line in lines for each in owners.group_of(owner)):
                total[step] += ns
        return total

    def check(self, name, *, backward=False):
        """In a third of the steps at least, a line costs what it took, within 5 %.

        On a busy machine, another process may run between a reading of the clock and the operator after it; a cost that
        is given to the wrong line is wrong in every step.

        A layer's stretch has three lines: the one that computes, nearly all of it; its `def`, for what generated code
        does around kernels; and the one that calls it, for the way there, through Dynamo's guards or autograd's engine.
        """
        stretch = f"{name}, backward" if backward else name
        took = np.array([step[stretch] for step in self.truth])
        if name not in LAYERS:
            self._is_close(self.costs([name, *(["loop, head"] if name == "loop" else [])]) / took, stretch)
            return
        computes = self.costs([name], backward=backward)
        around = self.costs([f"{name}, defined"], backward=backward)
        calls = self.costs([stretch if backward else f"{name}, called"])
        self._is_close((computes + around + calls) / took, stretch)
        assert np.sort(computes / took)[-(len(took) // 3)] > 0.85, stretch

    @staticmethod
    def _is_close(ratios, stretch):
        assert np.sort(np.abs(ratios - 1))[len(ratios) // 3] < 0.05, (stretch, ratios)

    def first_row(self):
        """The costliest line."""
        return SideBySide([VariantOwners("planted", self.profile.owner_means, "wall")]).table()["line"][0].as_py()


def planted(folder, requested=None, steps=12, recipe=RECIPE, **params):
    """One profiled pass of the recipe."""
    truth = folder / "truth.json"
    more = {"requested": requested} if requested is not None else {}
    params = {"truth": str(truth), **params}
    with warm.passes():
        result = perform(folder, "profile", recipe, 600, steps=steps, params=params, **more)
    assert result.outcome == "ok", result.traceback
    return read(folder)


def read(folder):
    """The profile of such a pass, and how long its stretches took."""
    steady, detail = (folder / f"{window}.json.gz" for window in ("steady", "detail"))
    attribution = attribute(Trace.load(steady))
    profile = Profile("planted", (Capture(steady, attribution), Capture(detail, None, window="detail")))
    base = attribution.trace.meta["baseTimeNanoseconds"]
    truths = [json.loads(line) for line in (folder / "truth.json").read_text().splitlines()]
    bounds = zip(attribution.trace.steps.issued.tolist(), attribution.trace.steps.returned.tolist(), strict=True)
    return Planted(profile, [each for low, high in bounds for each in truths if low <= each["start"] - base < high])


def line_of(name, recipe=RECIPE):
    """The line to which this cost belongs."""
    lines = recipe.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {name}"))
