"""Holistic Trace Analysis, by Meta: as it comes, and with its two settings for exactness."""

import tempfile
from pathlib import Path
from typing import Any

from tests.compare.peer import Breakdown, Peer, main

_PARTS = {"compute": "compute_time(us)", "other GPU work": "non_compute_time(us)", "idle": "idle_time(us)"}

# With pandas 3, it fails on traces of AMD's GPUs.
PEER = Peer("hta", "HTA", "traceinsight", ("traceinsight==0.6.1", "pandas==2.3.3"))


def first_table(files: list[Path]) -> None:
    """Load all ranks together, as its documentation does, and show how each GPU's time divides and why it idles."""
    analysis = _load(files)
    print(analysis.get_temporal_breakdown(visualize=False).to_string())
    print(analysis.get_idle_time_breakdown(ranks=list(range(len(files))), visualize=False)[0].to_string())


def breakdowns(file: Path) -> list[Breakdown]:
    """Its temporal breakdown, and its categories of idle time, which it counts for each stream."""
    from hta.configs.env_options import HTAEnvOptions

    answers = [_breakdown(_load([file]), "as it comes")]
    HTAEnvOptions.instance().set_disable_ns_rounding(True)
    return [*answers, _breakdown(_load([file], include_last_profiler_step=True), "unrounded, with the last step")]


def _load(files: list[Path], **options: bool) -> Any:
    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as folder:
        return TraceAnalysis(trace_files=dict(enumerate(map(str, files))), trace_dir=folder, **options)


def _breakdown(analysis: Any, settings: str) -> Breakdown:
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    idle = analysis.get_idle_time_breakdown(visualize=False)[0].groupby("idle_category")["idle_time"].sum()
    events = analysis.t.get_trace(0)
    gpu = events[events["stream"].ne(-1)]  # what it takes for the GPU's work: from the first to the last of it
    window = [round((analysis.t.min_ts + at) * 1000) for at in (gpu["ts"].min(), (gpu["ts"] + gpu["dur"]).max())]
    return Breakdown(
        {name: float(row[column]) * 1000 for name, column in _PARTS.items()},
        ["compute", "other GPU work"],
        {str(name): float(took) * 1000 for name, took in idle.items()},
        [window],
        settings,
    )


if __name__ == "__main__":
    main(breakdowns, first_table)
