"""Where does compiled code not run as requested: where does a function fall back to Python, which line of yours causes
it, and where was it given up at the recompile limit, or run without its CUDA graph?
"""

import re

import pyarrow as pa

from tracekit.analyses import Answer, analysis, of_ledger, share_of_step, table
from tracekit.base.units import count, many
from tracekit.profile import Profile
from tracekit.run import Break
from tracekit.trace.schema import LABEL, column
from tracekit.vocabulary.code_owner import TORCH, may_be_the_users, owner_by_path, plain_function, stacked

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
FALLBACKS = pa.schema(
    [
        column("to", LABEL, "how it runs instead: eagerly, or without a CUDA graph"),
        column(
            "where",
            pa.string(),
            "file and line of the function that fell back, or that prevented a CUDA graph",
            role="place",
        ),
        column("code", pa.string(), "the function that fell back", role="place"),
        column("reason", pa.string(), "why, in the compiler's own words", role="reason"),
        column("count", pa.int64(), "how often"),
        column("ids", pa.string(), "compile ids, frame/attempt; for a frame that fell back, its number"),
    ]
)
_Key = tuple[str, str | None, str | None, str | None]  # the first columns of `FALLBACKS`
_Entry = tuple[int, str, str | None, int | None, str | None, str | None, int | str | None]


@analysis("graph_breaks", rank=55)
def graph_breaks(profile: Profile) -> Answer:
    """One row per place, reason and line of yours; only a run's ledger knows them."""
    breaks = profile.variant.ledger.breaks if profile.variant is not None else []
    by_place: dict[tuple[str | None, int | None, str, _Yours], list[Break]] = {}
    for entry in breaks:
        users = [frame for frame in stacked(entry.stack) if may_be_the_users(frame.file)]
        users_line = (users[-1].file, users[-1].line, plain_function(users[-1].function)) if users else None
        by_place.setdefault((entry.file, entry.line, entry.reason, users_line), []).append(entry)
    yours = [line for *_, line in by_place]
    summary = table(
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
    sentence = _breaks_sentence(profile, len(breaks), len({key[:3] for key in by_place}))
    worth = share_of_step(profile, "python", "dispatch", "guards") if breaks else 0.0
    return Answer("graph_breaks", "Graph breaks", sentence, summary, worth=worth, status=of_ledger(profile))


def is_on_purpose(entry: Break) -> bool:
    """Whether torch breaks the graph there by design, as around an optimizer's update: nobody can rewrite that."""
    return bool(_ON_PURPOSE.search(entry.reason)) and owner_by_path(entry.file or "").owner == TORCH


def _breaks_sentence(profile: Profile, breaks: int, places: int) -> str:
    if profile.variant is None:
        return "Cannot be answered: a trace does not name graph breaks. A capture does: tracekit capture."
    if not profile.variant.requested.compile:
        return "Nothing was compiled, so no graph could break."
    if not breaks:
        return "No graph breaks: each compiled function is one graph."
    ledger = profile.variant.ledger
    intended = len({(entry.file, entry.line, entry.reason) for entry in ledger.breaks if is_on_purpose(entry)})
    subject = "All" if intended == places else f"{count(intended)} of them"
    on_purpose = f" {subject} are made by torch on purpose: there is nothing to rewrite." if intended else ""
    return (
        f"{many(places, 'graph break')}{f', met by {count(breaks)} compilations' if breaks > places else ''}: "
        f"each splits a graph in two, and Python runs in between.{on_purpose}"
    )


@analysis("fallbacks", rank=57)
def fallbacks(profile: Profile) -> Answer:
    """One row per place and reason; only a run's ledger knows them."""
    entries: list[_Entry] = []
    if profile.variant is not None:
        ledger = profile.variant.ledger
        entries += [
            (limit.t_ns, "eager", limit.file, limit.line, limit.name, limit.reason, limit.frame)
            for limit in ledger.limits
        ]
        entries += [
            (skip.t_ns, "no CUDA graph", skip.file, skip.line, None, skip.reason, skip.compile) for skip in ledger.skips
        ]
    groups: dict[_Key, list[str]] = {}  # the ids of each, in order of time
    for _, to, file, line, code, reason, compile_id in sorted(entries, key=lambda entry: entry[0]):
        key = to, f"{file}:{line}" if file else None, code, reason
        groups.setdefault(key, []).append("" if compile_id is None else str(compile_id))
    columns = [list(values) for values in zip(*groups, strict=True)] or [[], [], [], []]
    summary = table(
        FALLBACKS,
        {
            **dict(zip(("to", "where", "code", "reason"), columns, strict=True)),
            "count": [len(ids) for ids in groups.values()],
            "ids": [", ".join(dict.fromkeys(filter(None, ids))) or None for ids in groups.values()],
        },
    )
    worth = share_of_step(profile, "python", "dispatch", "kernel_launch") if groups else 0.0
    status = of_ledger(profile) if groups or profile.variant is None else "absent"
    return Answer("fallbacks", "Fallbacks", _fallbacks_sentence(profile, groups), summary, worth=worth, status=status)


def _fallbacks_sentence(profile: Profile, groups: dict[_Key, list[str]]) -> str:
    if profile.variant is None:
        return "Cannot be answered: a trace does not say what fell back. A capture does: tracekit capture."
    if not profile.variant.requested.compile:
        return "Nothing was compiled, so nothing fell back."
    if not groups:
        return "Nothing fell back: compiled code runs as requested."
    eager = sum(len(ids) for (to, *_), ids in groups.items() if to == "eager")
    skipped = sum(len(ids) for ids in groups.values()) - eager
    clauses = []
    if eager:
        functions = f"{count(eager)} function{'s' * (eager > 1)}"
        clauses.append(f"{functions} reached the recompile limit and ran eagerly from then on")
    if skipped:
        clauses.append(f"{count(skipped)} time{'s' * (skipped > 1)} no CUDA graph was recorded")
    return f"{'; '.join(clauses)}."
