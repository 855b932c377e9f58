"""Runs whose steps have a planted cost per graph size."""

import numpy as np

from tracekit import run as runs
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.run import GraphSizes, Ledger, Measured, Pass, Requested, Run, Variant

FIXED, SLOPE = 1_200_000.0, 0.8  # ns; ns per edge: 1.2 ms + 0.8 µs per thousand edges


def passes(edges, rng, *, fixed=FIXED, slope=SLOPE, noise=0.03, mood=0.01, number=5, wild=0.03):
    """Unprofiled passes over the same batches, each with a speed of its own; some steps are disturbed."""
    made = []
    for k in range(number):
        ns = (fixed + slope * edges) * np.exp(rng.normal(0, noise, len(edges))) * np.exp(rng.normal(0, mood))
        ns[rng.random(len(edges)) < wild] *= 5
        times = ns.astype(int).tolist()
        graphs = GraphSizes(nodes=(edges // 4).tolist(), edges=edges.tolist())
        made.append(Pass(round=k, started_ns=k, step_ns=int(np.median(times)), step_all_ns=times, graphs=graphs))
    return made


def variant(name, made, *, compiled=False, ledger=None, graphs=None):
    every = [ns for each in made for ns in each.step_all_ns]
    measured = Measured(
        step_ns=int(np.median(every)), step_all_ns=every, spread_ns=0, clock="perf_counter", passes=made
    )
    return Variant(
        name=name,
        outcome="ok",
        requested=Requested(compile=compiled),
        measured=measured,
        ledger=ledger or Ledger(),
        graphs=graphs,
    )


def section(folder, name, *variants):
    """What the report of a run of these variants says in a section; None if it has no such section."""
    run = Run(created="2026-11-21T20:00:00+00:00", tracekit="0", recipe="gcn", script="r.py", variants=[*variants])
    runs.write(run, folder / "run.json")
    sections = report(open_subject([folder / "run.json"])).sections
    return next((each for each in sections if each.id == name), None)
