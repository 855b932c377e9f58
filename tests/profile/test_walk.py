"""How much memory is in use when, compared with a loop over the events: for small known numbers, and at random."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.intervals import StepFunction
from tracekit.profile.memory_use import Walk
from tracekit.trace.rereading import MemoryEvents


def walk(*rows):
    """The walk over events given by time, bytes and address."""
    ts, size, address = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    unknown = np.full(len(ts), -1, np.int64)
    return Walk(MemoryEvents("cpu", ts, size, address, unknown, unknown, unknown))


def test_the_peak_and_what_is_held_there():
    here = walk((0, 100, 1), (10, 50, 2), (20, -50, 2), (30, 70, 2), (40, -100, 1), (50, 60, 3))
    assert here.level.tolist() == [100, 150, 100, 170, 70, 130]
    assert (here.peak, here.peak_bytes) == (3, 170)
    assert here.live.tolist() == [True, False, False, True, False, False]


def test_what_was_there_before_may_be_released():
    here = walk((0, -500, 9), (10, 100, 1))
    assert here.level.tolist() == [-500, -400]
    assert here.peak_bytes == 0


def test_a_phase_begins_at_the_level_that_it_finds():
    phases = StepFunction(np.array([0, 15, 35]), np.array([1, 2]), 0)
    here = walk((0, 100, 1), (10, -40, 1), (40, 10, 2))
    assert here.peaks_by(phases, 0, 50) == {1: 100, 2: 60, 0: 70}


def by_brute_force(rows, edges, values, low, high):
    """Take one moment after the other, with its events in order, and a change of phase before them."""
    peaks, level, at = {}, 0, 0
    for moment in sorted({low, *edges, *(ts for ts, _, _ in rows)}):
        if low <= moment < high:
            inside = [k for k in range(len(values)) if edges[k] <= moment < edges[k + 1]]
            phase = values[inside[0]] if inside else 0
            if moment == low or moment in edges:
                peaks[phase] = max(peaks.get(phase, level), level)
        while at < len(rows) and rows[at][0] == moment:
            level += rows[at][1]
            if low <= moment < high:
                peaks[phase] = max(peaks.get(phase, level), level)
            at += 1
    return peaks


@st.composite
def recordings(draw):
    moments = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=25)))
    rows = [(ts, draw(st.integers(-90, 90).filter(bool)), draw(st.integers(1, 4))) for ts in moments]
    edges = sorted(draw(st.sets(st.integers(0, 60), min_size=2, max_size=6)))
    values = [draw(st.integers(0, 3)) for _ in edges[1:]]
    return rows, edges, values, draw(st.integers(0, 30)), draw(st.integers(31, 61))


@given(recordings())
def test_peaks_by_phase_are_those_of_a_loop(recording):
    rows, edges, values, low, high = recording
    phases = StepFunction(np.array(edges), np.array(values), 0)
    assert walk(*rows).peaks_by(phases, low, high) == by_brute_force(rows, edges, values, low, high)


@given(recordings())
def test_what_is_held_is_that_of_a_loop(recording):
    rows = recording[0]
    here, held = walk(*rows), {}
    for at, (_, size, address) in enumerate(rows[: here.peak + 1]):
        held.pop(address, None)
        if size > 0:
            held[address] = at
    assert np.flatnonzero(here.live).tolist() == sorted(held.values())
