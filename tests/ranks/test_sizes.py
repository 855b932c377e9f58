"""On a CPU the steady trace has no shapes: sizes come from the recording that has them, if that is unambiguous."""

import json

import pytest
from small import event, op, step

from tracekit.engine.cached import known_attribution
from tracekit.profile import Capture, Profile, Subject
from tracekit.ranks import rank_columns
from tracekit.ranks.matching import with_sizes
from tracekit.report import report
from tracekit.trace import Trace


def trace(path, steps, shapes):
    """`steps` lists, for each step, the elements of each all_reduce; a barrier comes before them."""
    events = []
    for number, sizes in enumerate(steps):
        t = 1000 + 10_000 * number
        events += [step(number, t, t + 10_000), op("aten::mm", t + 10, t + 20)]
        events.append(event("user_annotation", "gloo:barrier", t + 30, t + 40, tid=2))
        for nth, size in enumerate(sizes):
            said = {"Ev Idx": nth} | ({"Input Dims": [[size]], "Input type": ["float"]} if shapes else {})
            at = t + 100 + 1000 * nth
            events.append(event("user_annotation", "gloo:all_reduce", at, at + 500, tid=2, **said))
    distributed = {"rank": 0, "world_size": 2, "backend": "gloo"}
    content = {"schemaVersion": 1, "distributedInfo": distributed, "traceEvents": events}
    path.write_text(json.dumps(content))
    return path


def profile(folder, steady, detail):
    paths = trace(folder / "steady.json", steady, False), trace(folder / "detail.json", detail, True)
    attribution = known_attribution(Trace.load(paths[0]))
    return Profile("eager", (Capture(paths[0], attribution), Capture(paths[1], None, window="detail")))


@pytest.mark.parametrize(
    ("steady", "detail", "sizes"),
    [
        ([[1, 2], [1, 2], [1, 2]], [[8, 1], [8, 1]], [32, 4] * 3),
        ([[1, 2], [1, 2, 3]], [[8, 1], [8, 1]], [32, 4, None, None, None]),  # a step that differs from those recorded
        ([[1, 2], [1, 2]], [[8, 1], [1, 8]], [None] * 4),  # sizes that change from step to step
        ([[1, 2], [1, 2]], [[8, 1], [8]], [None] * 4),
    ],
)
def test_the_same_collectives_are_as_large(tmp_path, steady, detail, sizes):
    made = profile(tmp_path, steady, detail)
    (columns,) = with_sizes([rank_columns(made, 0)], made)
    rows = [row for row in columns.calls.to_pylist() if row["kind"] == "all_reduce"]
    assert [row["bytes"] for row in rows] == sizes
    assert columns.sizes_inferred == (sizes[0] is not None)


def test_the_report_marks_them(tmp_path):
    made = report(Subject([profile(tmp_path, [[1, 2]] * 3, [[8, 1]] * 2)]))
    section = next(section for section in made.sections if section.id == "communication")
    assert "Sizes are inferred from the same collectives in the recording with shapes" in section.blocks[0].lines[0]
    assert "all_reduce of 32 B among 2 ranks, reaches a bus bandwidth of" in section.blocks[0].lines[0]
    rows = {(row["kind"], row["bytes"], row["bytes_inferred"]) for row in section.blocks[1].rows.to_pylist()}
    assert rows == {("barrier", None, False), ("all_reduce", 32, True), ("all_reduce", 4, True)}


def test_what_a_trace_says_itself_is_not_replaced(tmp_path):
    paths = [trace(tmp_path / f"{name}.json", [[size]] * 2, True) for name, size in (("steady", 3), ("detail", 8))]
    made = Profile(
        "eager", (Capture(paths[0], known_attribution(Trace.load(paths[0]))), Capture(paths[1], None, window="detail"))
    )
    (columns,) = with_sizes([rank_columns(made, 0)], made)
    assert [row["bytes"] for row in columns.calls.to_pylist() if row["kind"] == "all_reduce"] == [12, 12]
    assert not columns.sizes_inferred
