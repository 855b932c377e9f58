"""Which single thing on the host keeps the GPU idle, or the CPU from computing, for a millisecond or more?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.culprits import plain
from tracekit.findings.holes import Hole, Holes
from tracekit.findings.rules.allocator import recurring_calls
from tracekit.findings.rules.host_compute import computing
from tracekit.findings.rules.pageable_copies import pageable_calls
from tracekit.findings.rules.preprocessing import is_preparing
from tracekit.findings.stories import Cases, Story, story_of
from tracekit.findings.where import where_of_event, where_of_piece
from tracekit.profile import Profile
from tracekit.profile.missing_device import device_side_missing


@rule("long_stretches")
def long_stretches(profile: Profile) -> Iterator[Finding]:
    """`cold_start`, `host_freeze`, `backward_handover`, `idle_unexplained`, `compile_in_steps`, `python_bound`,
    `dispatch_bound`."""
    if profile.means["wall"] is None or device_side_missing(profile.trace) is not None:
        return
    groups: dict[tuple[str, str], tuple[Story, list[Hole]]] = {}
    of_other_rules = np.union1d(pageable_calls(profile.trace), recurring_calls(profile))
    of_other_rules = np.union1d(of_other_rules, computing(profile))
    prepared = is_preparing(profile)
    every = Holes(profile, of_other_rules)
    for hole in every:
        story = story_of(hole)
        if prepared[hole.piece] or hole.outlier or (hole.unseen and story.id != "cold_start"):
            continue
        whose = str(_where(profile, hole)) if hole.row < 0 else hole.name
        _, holes = groups.setdefault((story.id, "" if story.together else whose), (story, []))
        holes.append(hole)
    for story, holes in groups.values():
        yield _finding(profile, story, holes, every)


def _finding(profile: Profile, story: Story, holes: list[Hole], every: Holes) -> Finding:
    pieces = profile.attribution.pieces
    holes = sorted(holes, key=lambda each: -each.lasts_ns)
    longest = holes[0]
    cases = Cases(profile, holes, _where(profile, longest))
    events = [row for each in holes for row in ([each.row] if each.row >= 0 else each.near)]
    chosen = np.zeros(len(pieces.start), bool)
    chosen[[each.piece for each in holes]] = True
    if longest.often:
        chosen |= every.shorter(longest)
    return Finding(
        story.id,
        story.headline(cases),
        why=story.why(cases),
        do=story.advice(cases),
        where=cases.where,
        evidence=evidence(profile, np.unique(np.array(events, np.int64))),
        link=story.link,
        confidence="measured" if longest.row >= 0 else "inferred",
        claim=pieces.union(chosen).minus(profile.waits_in_collectives),
    )


def _where(profile: Profile, hole: Hole) -> Where:
    if hole.fused:
        return where_of_event(profile, hole.row, "fallback_function")
    if hole.row >= 0:
        return where_of_event(profile, hole.row, plain(hole.name))
    line = where_of_piece(profile, hole.piece)
    return line if line != Where() else Where(operator=hole.name)
