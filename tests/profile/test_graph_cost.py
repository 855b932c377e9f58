"""A planted cost per edge is found, and the question is left open if the sizes of the graphs cannot answer it."""

import re

import numpy as np
import pytest
from msgspec.structs import replace

from tests.profile.graph_sizes import FIXED, SLOPE, passes, section, variant
from tracekit.run import Compile, GraphSizes, Ledger
from tracekit.statistics.typical_step import typical_step

THOUSAND = 1000


def sizes(rng, count=40, low=200_000, high=3_000_000):
    return rng.integers(low, high, count)


def one(tmp_path, *variants):
    shown = section(tmp_path, "graph_sizes", *variants)
    return shown.blocks[0].lines, shown.blocks[1].rows.to_pylist()


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_cost_is_found_within_5_percent(tmp_path, seed):
    rng = np.random.default_rng(seed)
    lines, rows = one(tmp_path, variant("eager", passes(sizes(rng), rng)))
    assert rows[0]["fixed_ns"] == pytest.approx(FIXED, rel=0.05)
    assert rows[0]["per_thousand_ns"] == pytest.approx(SLOPE * THOUSAND, rel=0.05)
    assert rows[0]["per_thousand_low_ns"] <= SLOPE * THOUSAND <= rows[0]["per_thousand_high_ns"]
    assert "ns) per thousand edges" in lines[0]
    assert "% of a step of median size grows with its graph" in lines[0]


def test_what_sizes_do_not_tell_is_not_told(tmp_path):
    rng = np.random.default_rng(0)
    lines, rows = one(
        tmp_path,
        variant("few", passes(np.resize([1000, 2000, 3000], 40), rng)),
        variant("near", passes(sizes(rng, low=1_000_000, high=1_010_000), rng)),
        variant("flat", passes(sizes(rng), rng, slope=0.0, noise=0.01)),
        variant("apart", passes(sizes(rng, low=20_000_000, high=22_000_000), rng, noise=0.05)),
    )
    assert "few: what an edge costs cannot be known: 3 different sizes in 200 steps are too few" in lines[0]
    assert "near: what an edge costs cannot be known: the sizes" in lines[1]
    assert "ms however large its graph is" in lines[2]
    assert "per thousand edges; how much it takes apart from that cannot be known" in lines[3]
    assert [row["fixed_ns"] is None for row in rows] == [True, True, False, True]
    assert [row["per_thousand_ns"] is None for row in rows] == [True, True, False, False]


def repeating(edges, rng, period, extra_ns, slope=SLOPE):
    """Passes of steps that repeat, of which the last of each period takes so much longer."""
    last = np.arange(len(edges)) % period == period - 1
    made = []
    for each in passes(edges, rng):
        ns = ((FIXED + slope * edges + extra_ns * last) * np.exp(rng.normal(0, 0.02, len(edges)))).astype(int).tolist()
        step = typical_step(ns)
        made.append(replace(each, step_all_ns=ns, step_ns=step.step_ns, alike=step.alike, period=step.period))
    return made


def test_sizes_that_repeat_with_everything_else_tell_no_cost(tmp_path):
    """The last batch of each epoch is small, and an evaluation follows it: small graphs would seem to cost more."""
    rng = np.random.default_rng(0)
    small_last = np.where(np.arange(40) % 4 == 3, 0.2, 1.0) * rng.integers(2_000_000, 2_400_000, 40)
    epochs = repeating(small_last.astype(int), rng, 4, 20e6)
    shuffled = repeating(sizes(rng), rng, 4, 20e6)
    assert {each.period for each in (*epochs, *shuffled)} == {4}
    lines, rows = one(tmp_path, variant("epochs", epochs), variant("shuffled", shuffled))
    assert lines[0].startswith(
        "epochs: what an edge costs cannot be known: every 4 steps, sizes and step times repeat together, so whatever "
        "else happens in some of these steps would count as a cost of their size ("
    )
    assert rows[0]["per_thousand_ns"] is None
    assert rows[1]["per_thousand_low_ns"] <= SLOPE * THOUSAND <= rows[1]["per_thousand_high_ns"]


def test_steps_of_two_kinds_take_their_mean_however_large_the_graph_is(tmp_path):
    rng = np.random.default_rng(0)
    every_other = repeating(sizes(rng), rng, 2, 0.3e6, slope=0.0)
    shown = variant("eager", every_other)
    measured = replace(shown.measured, step_ns=every_other[0].step_ns)
    lines, _ = one(tmp_path, replace(shown, measured=measured))
    takes = re.match("eager: a step takes ([0-9.]+) ms however large its graph is", lines[0])
    assert takes is not None, lines
    assert float(takes[1]) == pytest.approx(1.35, rel=0.02)  # of 1.2 and 1.5 ms


def test_one_graph_for_all_steps_is_one_sentence(tmp_path):
    rng = np.random.default_rng(0)
    full = [variant(name, passes(np.full(30, 10_556), rng)) for name in ("eager", "compiled")]
    shown = section(tmp_path, "graph_sizes", *full)
    assert shown.contents.status == "absent"
    assert shown.blocks[0].lines == (
        "Every step trains on 2,639 nodes and 10,556 edges: what one of them costs cannot be known.",
    )


def test_padding_is_what_a_sibling_does_without(tmp_path):
    rng = np.random.default_rng(0)
    edges = sizes(rng, low=800_000, high=1_000_000)
    padded = passes(np.full(40, 1_000_000), rng)
    lines, _ = one(tmp_path, variant("eager", passes(edges, rng)), variant("padded", padded))
    share = 100 * (1 - edges.mean() / 1_000_000)
    assert (
        f"padded pads: {share:.1f} % of its edges and {share:.1f} % of its nodes are not in the graphs of eager"
        in (lines[2])
    )
    cost, low, high = padding_cost(lines[2], ", by what an edge costs in eager.")
    assert low <= SLOPE * (1_000_000 - edges.mean()) / 1000 <= high
    assert cost == pytest.approx(SLOPE * (1_000_000 - edges.mean()) / 1000, rel=0.2)


def padding_cost(line, source):
    """The cost of padding and its interval, in µs."""
    found = re.search(r"This padding costs ([\d.]+) µs \(([\d.]+) µs … ([\d.]+) µs\) a step(.*)$", line)
    assert found is not None, line
    assert found[4] == source
    return tuple(map(float, found.groups()[:3]))


def test_padding_to_a_few_sizes_is_measured_where_it_happens(tmp_path):
    rng = np.random.default_rng(1)
    edges = np.sort(sizes(rng, count=60))
    rooms = np.arange(500_000, 3_500_000, 500_000)
    filled = rooms[np.searchsorted(rooms, edges)]
    lines, _ = one(tmp_path, variant("eager", passes(edges, rng)), variant("buckets", passes(filled, rng, slope=1.6)))
    assert (
        f"buckets pads to {len(set(filled))} sizes: {100 * (1 - edges.sum() / filled.sum()):.1f} % of its" in lines[2]
    )
    _, low, high = padding_cost(lines[2], ".")
    assert low <= 1.6 * (filled - edges).mean() / 1000 <= high


def test_what_padding_costs_is_unknown_without_the_cost_of_an_edge(tmp_path):
    rng = np.random.default_rng(0)
    edges = sizes(rng, low=990_000, high=1_000_000)
    lines, _ = one(
        tmp_path, variant("eager", passes(edges, rng)), variant("padded", passes(np.full(40, 1_000_000), rng))
    )
    assert lines[2].endswith("What this padding costs cannot be known, because it is unknown what an edge costs.")


def test_a_variant_with_few_steps_is_not_taken_for_padded(tmp_path):
    rng = np.random.default_rng(0)
    few = [replace(each) for each in passes(np.array([3_000_000, 2_999_000]), rng, number=1)]
    lines, _ = one(tmp_path, variant("eager", passes(sizes(rng), rng)), variant("short", few))
    assert not any("pads" in line for line in lines)


def mismatch(tensor, index, actual, step):
    guard = f"tensor '{tensor}' size mismatch at index {index}. expected 1, actual {actual}"
    return Compile(id="0/1", kind="recompile", guard=guard, start_ns=0, end_ns=1, thread=1, step=step)


def test_the_size_that_makes_recompilations_is_named(tmp_path):
    rng = np.random.default_rng(0)
    graphs = GraphSizes(nodes=[10, 11, 12], edges=[30, 35, 36], edge_types={"user__rates__movie": [5, 6, 7]})
    entries = [mismatch("x", 0, 11, 1), mismatch("x", 0, 12, 2), mismatch("e", 1, 6, 1), mismatch("mask", 0, 99, 2)]
    made = variant("compiled", passes(sizes(rng), rng), compiled=True, ledger=Ledger(compiles=entries), graphs=graphs)
    lines, _ = one(tmp_path, made)
    assert lines[1] == (
        "compiled: of its recompilations, 2 are due to a different number of nodes (x, dimension 0), 1 is due to a "
        "different number of user__rates__movie edges (e, dimension 1), 1 is due to a different size (mask, dimension "
        "0). With dynamic=True, or graphs padded to one size, there would be none."
    )


def test_runs_without_sizes_have_no_such_section(tmp_path):
    rng = np.random.default_rng(0)
    made = variant("eager", [replace(each, graphs=None) for each in passes(sizes(rng), rng)])
    assert section(tmp_path, "graph_sizes", made) is None
