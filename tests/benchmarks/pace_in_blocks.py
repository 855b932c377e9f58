"""`python -m tests.benchmarks.pace_in_blocks PAIRS`: what a capture's hooks add to a step, within one process.

The same script runs in short blocks, alternately plain and under a measuring pass: both have the same memory layout and
the same machine, which two processes never do. Prints as JSON, for each pair of neighbouring blocks, the paces of the
plain and of the captured block, and the number of events per step that Python's audit hooks get, which limits what the
journal of files, which cannot be removed again, may add.
"""

import json
import statistics
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from tracekit.capture.child import program, script
from tracekit.capture.child.measure import measure
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import Job

SCRIPT = Path(__file__).with_name("training.py")
SETTLED = 16  # steps: in earlier ones, a capture still examines the script
STEPS = SETTLED + 48
Paces = tuple[float, float]  # the median step, ns: by the clock, and by processor time


def main(pairs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="tracekit-pace-") as folder:
        file = str(Path(folder, "stamps.json"))
        both = [lambda: _plain(file), lambda: _captured(file)]
        for run in both:
            run()
        times_of_pairs = []
        for pair in range(pairs):
            order = (0, 1) if pair % 2 else (1, 0)  # so that what only rises or falls favours neither
            times = {of: both[of]() for of in order}
            times_of_pairs.append((times[0], times[1]))
        print(json.dumps({"pairs": times_of_pairs, "audit_events": _audit_events(file)}))


def _plain(file: str) -> Paces:
    program.run_file(str(SCRIPT), [str(STEPS), file])
    return paces(file)


def _captured(file: str) -> Paces:
    job = Job(stage="measure", program=str(SCRIPT), is_script=True, arguments=[str(STEPS), file])
    with CompileRecorder() as recorder:
        result = script.run(job, lambda graphs: measure(job, recorder, graphs), recorder)
    assert result.measured is not None, result.traceback or result.error
    return paces(file)


def paces(file: str) -> Paces:
    """The steps, after warming up, of the run that wrote this file."""
    stamps = json.loads(Path(file).read_text())[SETTLED:]
    clock, processor = (statistics.median(b[of] - a[of] for a, b in pairwise(stamps)) for of in (0, 1))
    return clock, processor


def _audit_events(file: str) -> float:
    """Audit events per step: what a long run has more than a short one, divided by the additional steps."""
    heard = 0

    def hear(*_: object) -> None:
        nonlocal heard
        heard += 1

    sys.addaudithook(hear)
    counts = []
    for steps in (STEPS, 2 * STEPS):
        heard = 0
        program.run_file(str(SCRIPT), [str(steps), file])
        counts.append(heard)
    return (counts[1] - counts[0]) / STEPS


if __name__ == "__main__":
    main(int(sys.argv[1]))
