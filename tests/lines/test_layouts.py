"""Each line costs what a clock in the same script says, however the script is laid out."""

import ast
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import warm

from tests.capture.capturing import perform
from tests.lines.layouts import CALLED, HEAD, LAYOUTS, script
from tracekit.engine import attribute
from tracekit.profile import Capture, Profile
from tracekit.trace import Trace

SCRIPTS = Path(__file__).parent / "scripts"
# Before Python 3.12, tracing cannot pause outside of the main thread: a hot loop there counts too much, and takes from
# what stands beside it.
BESIDE_LOOPS = {"thread": {"sleep", "loop", "objects", "scalars"}} if sys.version_info < (3, 12) else {}
WORTH = 0.04  # of a step: a stretch that takes less is not checked
APART = 0.2


def blocks(folder):
    """The lines of each stretch under a clock, as (file, line), by its name."""
    found = {}
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.With(items=[ast.withitem(context_expr=ast.Call(func=ast.Name(id="clock"), args=[name]))]):
                    lines = range(node.body[0].lineno, node.body[-1].end_lineno + 1)
                    found.setdefault(name.value, set()).update((file.name, line) for line in lines)
    return found


def captured(folder, text, *more):
    """The profile of one pass of that script, and what its clock said of each step in the trace."""
    program, truth = folder / "train.py", folder / "truth.jsonl"
    program.write_text(f"import sys\n\nsys.path.insert(0, {str(folder / 'lib/site-packages')!r})\n{text}")
    for file in SCRIPTS.glob("*.py"):
        shutil.copy(file, folder)
    library = folder / "lib" / "site-packages"
    library.mkdir(parents=True)
    (folder / "installed.py").rename(library / "installed.py")
    traces = folder / "traces"
    traces.mkdir()
    with warm.passes():
        result = perform(traces, "profile", program, 600, is_script=True, in_place=True, arguments=(str(truth), *more))
    assert result.outcome == "ok", result.traceback or result.error
    steady, detail = (traces / f"{window}.json.gz" for window in ("steady", "detail"))
    attribution = attribute(Trace.load(steady))
    profile = Profile("script", (Capture(steady, attribution), Capture(detail, None, window="detail")))
    rows = [json.loads(line) for line in truth.read_text().splitlines()]
    ends = np.array([row["end"] for row in rows]) - attribution.trace.base_ns
    # What a step took is noted right after its end, which is that of the optimizer's step.
    of_steps = np.searchsorted(ends, attribution.trace.steps.returned)
    return profile, [rows[row]["took"] for row in of_steps]


def costs_of_lines(profile, lines):
    """What these lines cost in each step of the trace, ns."""
    owners, costs = profile.ownership.owners, profile.ownership.costs["wall"]
    total = np.zeros(len(profile.trace.steps.issued))
    for step, owner, ns in zip(costs.step.tolist(), costs.owner.tolist(), costs.ns.tolist(), strict=True):
        group = owners.group_of(owner)
        if any((Path(line.file).name, line.line) in lines for line in group):
            total[step] += ns
    return total


def compared(folder, text, *more):
    """What the lines of each stretch that is worth it cost, divided by what its clock said, in each step of the trace.

    On a busy machine, another process may run between a reading of the clock and the line's first instruction, and on
    Python 3.11 lines are read from other steps; a cost that is given to the wrong line is wrong in every step.
    """
    profile, rows = captured(folder, text, *more)
    step_ns = float(np.median(profile.trace.steps.returned - profile.trace.steps.issued))
    ratios = {}
    for name, lines in blocks(folder).items():
        said = np.array([row.get(name, 0) for row in rows])
        if np.median(said) > WORTH * step_ns:
            ratios[name] = costs_of_lines(profile, lines) / said
    return ratios


def wrong(ratios):
    """The stretches whose cost is wrong in more than two thirds of the steps."""
    apart = {name: np.sort(abs(each - 1)) for name, each in ratios.items()}
    return {name: each.round(2).tolist() for name, each in apart.items() if each[len(each) // 3] > APART}


def test_code_that_others_call_costs_what_the_clock_says(tmp_path):
    ratios = compared(tmp_path, HEAD + CALLED)
    assert len(ratios) >= 5
    assert not wrong(ratios)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_line_costs_what_the_clock_says(layout, tmp_path):
    ratios = compared(tmp_path, script(layout))
    assert len(ratios) >= 6
    for name in BESIDE_LOOPS.get(layout, ()):
        ratios.pop(name, None)
    assert not wrong(ratios)
