"""Lines are carried over to steady steps: without stacks, with other times, lost operators, or from another step."""

import gzip
import json

import numpy as np
import pytest
from real import trace_path

from tests.twin import load_events, nanoseconds
from tracekit.base.intervals import Union
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace

MOST_MISPLACED = 0.01  # of the wall time
NAMES = ["leimao_eager_rtx5080", "tracelens_resnet_mi300x_training"]


class EditableTrace:
    """The events of a real trace in whole nanoseconds, to be changed and written again."""

    def __init__(self, name):
        self.events = [
            (event, start, start + max(nanoseconds(event.get("dur")) or 0, 0))
            for event in load_events(trace_path(name))
            if event.get("ph") == "X" and (start := nanoseconds(event.get("ts"))) is not None
        ]

    def disturbed(self, rng, sigma):
        """The recording with every stretch between two moments longer or shorter by a factor of its own."""
        moments = np.unique(np.array([time for _, *times in self.events for time in times], np.int64))
        lengths = np.maximum(np.rint(np.diff(moments) * np.exp(rng.normal(0, sigma, len(moments) - 1))), 1)
        warped = moments[0] + np.concatenate(([0], np.cumsum(lengths.astype(np.int64))))
        at = dict(zip(moments.tolist(), warped.tolist(), strict=True))
        return self.with_events([(event, at[start], at[end]) for event, start, end in self.events])

    def without_stacks(self):
        return self.with_events([each for each in self.events if each[0].get("cat") != "python_function"])

    def losing(self, rng, share):
        """The recording without some of its operators; annotations, calls and kernels stay."""

        def stays(event):
            node = str(event.get("name")).startswith("autograd::engine::evaluate_function")
            return event.get("cat") != "cpu_op" or node or rng.random() >= share

        return self.with_events([each for each in self.events if stays(each[0])])

    def step(self, which):
        """The recording of only one step."""
        steps = sorted((start, end) for event, start, end in self.events if _is_step(event))
        low, high = steps[which]
        inside = [
            each
            for each in self.events
            if (low <= each[1] and each[2] <= high) or str(each[0].get("cat")) == "python_function"
        ]
        return self.with_events([each for each in inside if not _is_step(each[0]) or each[1] == low])

    def with_events(self, events):
        other = EditableTrace.__new__(EditableTrace)
        other.events = events
        return other

    def write(self, path):
        rows = [{**event, "ts": None, "dur": None} for event, _, _ in self.events]
        texts = []
        for row, (_, start, end) in zip(rows, self.events, strict=True):
            text = json.dumps(row, default=str)
            for key, ns in (("ts", start), ("dur", end - start)):
                text = text.replace(f'"{key}": null', f'"{key}": {ns // 1000}.{ns % 1000:03}', 1)
            texts.append(text)
        path.write_bytes(gzip.compress(('{"traceEvents": [' + ",\n".join(texts) + "]}").encode(), 1))
        return path


def _is_step(event):
    return str(event.get("name")).startswith("ProfilerStep#") and event.get("cat") != "gpu_user_annotation"


def misplaced(truth, carried, view):
    """The share of the steps' time that is given to another line."""
    one, other = truth.blame[view], carried.blame[view]
    low, high = max(one.edges[0], other.edges[0]), min(one.edges[-1], other.edges[-1])
    steps = truth.attribution.trace.steps
    inside = Union.of(steps.begin, steps.done)
    edges = np.unique(np.concatenate((one.edges, other.edges, inside.edges)))
    edges = edges[(edges >= low) & (edges <= high)]
    names = [
        np.array([str(ownership.owners.group_of(owner)) for owner in blamed.at(edges[:-1]).tolist()])
        for ownership, blamed in ((truth, one), (carried, other))
    ]
    lengths = np.diff(edges) * inside.covers(edges[:-1])
    return float(lengths[names[0] != names[1]].sum() / lengths.sum())


@pytest.mark.traces
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_hardly_anything_is_misplaced(tmp_path, name, lost):
    rng = np.random.default_rng(7)
    recorded = EditableTrace(name)
    detail = recorded.step(1).write(tmp_path / "detail.json.gz")
    steady = recorded.disturbed(rng, 0.5)
    truth = Ownership.of(attribute(Trace.load(steady.write(tmp_path / "truth.json.gz"))), None)
    stripped = steady.without_stacks().losing(rng, lost).write(tmp_path / "steady.json.gz")
    carried = Ownership.of(attribute(Trace.load(stripped)), detail)
    assert not carried.attribution.trace.has_stacks
    assert carried.carried.matched > (0.9 - lost) * carried.carried.tokens
    assert misplaced(truth, carried, "wall") < MOST_MISPLACED
