"""Every table of a subject, variants one below the other: what exports write and notebooks get."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tracekit.analyses import answers
from tracekit.engine.attribution import SEGMENTS
from tracekit.profile import Profile
from tracekit.trace.schema import EVENTS, LABEL, TRACKS, column

VARIANT = column("variant", LABEL, "name of the variant")
ATTRIBUTION = pa.schema(
    [
        column("step", pa.int64(), "the N of ProfilerStep#N"),
        column("view", LABEL, "wall or host"),
        column("bucket", LABEL, "where the time counts"),
        column("dur_ns", pa.int64(), "how much; null where the view cannot be answered for this step", "ns"),
        column("steady", pa.bool_(), "nothing compiled in the step"),
    ]
)


def tables(profiles: list[Profile]) -> dict[str, pa.Table]:
    """Name → table. Each begins with the variant; field metadata says what a column means, and its unit.

    `events`, `tracks`, `attribution`, `segments`, and for each analysis its rows under its name; where what faces
    show is a summary of the rows, that too, as `<name>_summary`.
    """
    parts: dict[str, list[pa.Table]] = {}
    for profile in profiles:
        for name, part in _of(profile):
            parts.setdefault(name, []).append(named(part, profile.name))
    return {name: pa.concat_tables(found).unify_dictionaries() for name, found in parts.items()}


def _of(profile: Profile) -> Iterator[tuple[str, pa.Table]]:
    yield "events", profile.trace.events.cast(EVENTS)
    yield "tracks", profile.trace.tracks.cast(TRACKS)
    yield "attribution", _attribution(profile)
    yield "segments", profile.cost.segments.cast(SEGMENTS)
    for answer in answers(profile):
        if answer.rows is None or answer.rows is answer.table:
            yield answer.analysis, answer.table
        else:
            yield answer.analysis, answer.rows
            yield f"{answer.analysis}_summary", answer.table


def named(part: pa.Table, variant: str) -> pa.Table:
    """The table with the name of its variant before each row."""
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(part), np.int32)), [variant])
    return part.add_column(0, VARIANT, names)


def _attribution(profile: Profile) -> pa.Table:
    """Long form: one row per step, view and bucket."""
    cost, numbers = profile.cost, profile.trace.steps.number
    views = []
    for view in cost.views.values():
        width, length = len(view.keys), len(numbers) * len(view.keys)
        views.append(
            pa.Table.from_arrays(
                [
                    pa.array(np.repeat(np.array(numbers, np.int64), width)),
                    pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), [view.name]),
                    pa.DictionaryArray.from_arrays(
                        pa.array(np.tile(np.arange(width, dtype=np.int32), len(numbers))), list(view.keys)
                    ),
                    pa.array(view.totals.ravel(), mask=np.repeat(~view.known, width)),
                    pa.array(np.repeat(cost.steady, width)),
                ],
                schema=ATTRIBUTION,
            )
        )
    return pa.concat_tables(views).unify_dictionaries()
