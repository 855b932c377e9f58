"""Where does a compiled function fall back to Python, and which line of yours causes it?"""

import re

import pyarrow as pa

from tracekit.analyses import Answer, analysis, of_ledger, share_of_step, table
from tracekit.code_owner import TORCH, may_be_the_users, owner_by_path
from tracekit.profile import Profile
from tracekit.python_frames import plain_function, stacked
from tracekit.run import Break
from tracekit.trace.schema import column
from tracekit.units import count

BREAKS = pa.schema(
    [
        column("yours", pa.string(), "innermost line of your own code in the stack", role="place"),
        column("where", pa.string(), "file and line that cannot be compiled", role="place"),
        column("reason", pa.string(), "why, in the compiler's own words", role="reason"),
        column("count", pa.int64(), "compilations that broke there"),
        column("ids", pa.string(), "their compile ids"),
        column("stack", pa.string(), "the stack of the first, innermost last", role="plumbing"),
        column("file", pa.string(), "file of that line of yours", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
        column("function", pa.string(), "your function", role="source"),
    ]
)
_ON_PURPOSE = re.compile(
    r"have intentionally marked|`torch\._dynamo\.graph_break\(\)`|torch\.(?:compiler|_dynamo)\.disable"
)
_Yours = tuple[str, int, str] | None  # file, line and function


@analysis("graph_breaks", rank=55)
def answer(profile: Profile) -> Answer:
    """One row per place, reason and line of yours; only a run's ledger knows them."""
    breaks = profile.variant.ledger.breaks if profile.variant is not None else []
    by_place: dict[tuple[str | None, int | None, str, _Yours], list[Break]] = {}
    for entry in breaks:
        by_place.setdefault((entry.file, entry.line, entry.reason, _users_line(entry.stack)), []).append(entry)
    yours = [line for *_, line in by_place]
    shown = table(
        BREAKS,
        {
            "yours": ["{}:{} {}".format(*line) if line else None for line in yours],
            "where": [f"{file}:{line}" if file else None for file, line, *_ in by_place],
            "reason": [reason for _, _, reason, _ in by_place],
            "count": [len(group) for group in by_place.values()],
            "ids": [", ".join(dict.fromkeys(entry.compile for entry in group)) for group in by_place.values()],
            "stack": [group[0].stack for group in by_place.values()],
            "file": [line[0] if line else None for line in yours],
            "line": [line[1] if line else None for line in yours],
            "function": [line[2] if line else None for line in yours],
        },
    )
    sentence = _sentence(profile, len(breaks), len({key[:3] for key in by_place}))
    worth = share_of_step(profile, "python", "dispatch", "guards") if breaks else 0.0
    return Answer("graph_breaks", "Graph breaks", sentence, shown, worth=worth, status=of_ledger(profile))


def is_on_purpose(entry: Break) -> bool:
    """Whether torch breaks the graph there by design, as around an optimizer's update: nobody can rewrite that."""
    return bool(_ON_PURPOSE.search(entry.reason)) and owner_by_path(entry.file or "").owner == TORCH


def _users_line(stack: str) -> _Yours:
    users = [frame for frame in stacked(stack) if may_be_the_users(frame.file)]
    return (users[-1].file, users[-1].line, plain_function(users[-1].function)) if users else None


def _sentence(profile: Profile, breaks: int, places: int) -> str:
    if profile.variant is None:
        return "Cannot be answered: a trace does not name graph breaks. A capture does: tracekit capture."
    if not profile.variant.requested.compile:
        return "Nothing was compiled, so no graph could break."
    if not breaks:
        return "No graph breaks: each compiled function is one graph."
    intended = sum(map(is_on_purpose, profile.variant.ledger.breaks))
    which = "All" if intended == breaks else f"{count(intended)} of them"
    on_purpose = f" {which} are made by torch on purpose: there is nothing to rewrite." if intended else ""
    return (
        f"{count(breaks)} graph break{'s' if breaks > 1 else ''} in {count(places)} place{'s' if places > 1 else ''}: "
        f"each splits a graph in two, and Python runs in between.{on_purpose}"
    )
