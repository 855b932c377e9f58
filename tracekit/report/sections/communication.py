"""How fast is the communication between ranks, and how much of it is exposed?"""

from statistics import fmean
from typing import Any

from tracekit.profile import Profile
from tracekit.profile.ranks import rank_of
from tracekit.ranks import RankColumns, rank_columns
from tracekit.ranks.communication import communication as table_of
from tracekit.ranks.exposed import communication_ns, on_a_cpu
from tracekit.ranks.sizes import with_sizes
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_variant
from tracekit.report.section import Contents
from tracekit.units import bandwidth, duration, percent, size


@of_variant("communication", "Communication", rank=6)
def communication(report: Report, profile: Profile) -> Contents | None:
    """A row for each kind, group and size of collective."""
    columns = report.ranks.get(profile.name) or _single_rank(profile)
    if not any(len(rank_columns.calls) for rank_columns in columns):
        return None
    table = table_of(columns, report.collectives.get(profile.name))
    rows = table.to_pylist()
    if not rows:
        return None
    exposed, overlapped = (sum(row[name] for row in rows) for name in ("exposed_ns", "overlapped_ns"))
    if on_a_cpu(columns[0]):  # collectives run at the same time there, so that rows do not add up
        exposed, overlapped = fmean(communication_ns(rank_columns) or 0.0 for rank_columns in columns), 0.0
    mean = profile.means["wall"]
    worth = exposed / mean.step_ns if mean is not None and mean.step_ns else None
    lines = (_sentence(rows, exposed, overlapped, alone=len(columns) == 1),)
    return Contents((Sentences(lines), Table("communication", table)), worth=worth)


def _single_rank(profile: Profile) -> list[RankColumns]:
    """The columns of a trace of a single rank; most traces show at once that nothing is communicated in them."""
    if not len(profile.trace.communications):
        return []
    return with_sizes([rank_columns(profile, rank_of(profile)[0] or 0)], profile)


def _sentence(rows: list[dict[str, Any]], exposed: float, overlapped: float, *, alone: bool) -> str:
    hidden = f", and computation hides {duration(overlapped)}" if overlapped else ""
    share = f" ({percent(exposed / (exposed + overlapped))} of all communication)" if overlapped and exposed else ""
    subject = "This rank" if alone else "On average, a rank"
    text = f"{subject} spends {duration(exposed)} a step in exposed communication{share}{hidden}."
    fastest = max((row for row in rows if row["busbw"]), key=lambda row: row["bytes"], default=None)
    if fastest is not None:
        text += (
            f" The largest, {fastest['kind']} of {size(fastest['bytes'])} among {fastest['ranks']} ranks, reaches "
            f"a bus bandwidth of {bandwidth(fastest['busbw'])} (formulas of nccl-tests)."
        )
    if alone:
        text += " In a single rank's trace, the fastest call of each size is taken as the transfer."
    if any(row["bytes_inferred"] for row in rows):
        text += " Sizes are inferred from the same collectives in the recording with shapes: the trace gives no sizes."
    if any(row["group"] is None for row in rows):
        text += " The trace does not name process groups: calls are matched by step, kind and order."
    return text
