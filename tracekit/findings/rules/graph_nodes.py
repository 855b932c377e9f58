"""Does the trace show everything that CUDA graphs replay?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.graph_holes import graph_holes
from tracekit.intervals import Union
from tracekit.profile import Profile
from tracekit.trace.roles import bare
from tracekit.units import count, duration

_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"


@rule("graph_nodes")
def graph_nodes(profile: Profile) -> Iterator[Finding]:
    """`graph_nodes_missing`, which is not one of `VERDICTS`: the GPU seems to idle equally long in each replay."""
    trace = profile.trace
    holes = graph_holes(profile)
    if not len(holes.calls):
        return
    yield Finding(
        "graph_nodes_missing",
        f"The trace lacks nodes of CUDA graphs, as {count(len(holes.calls))} replays show",
        why="The GPU seems to idle for "
        f"{duration(float(np.median(holes.ends - holes.starts)))} before the first recorded node of each.",
        claim=Union.of(holes.starts, holes.ends),
        where=Where(function=bare(trace.names[trace.name_codes[holes.calls[0]]])),
        evidence=evidence(profile, holes.calls),
        do="Do not trust idle time in these replays. Start the profiler before the graphs are captured, or warm it "
        "up for a few more steps.",
        link=_LINK,
        confidence="inferred",
    )
