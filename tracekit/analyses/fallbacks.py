"""Where did compiled code not run as requested: given up at the recompile limit, or run without its CUDA graph?"""

import pyarrow as pa

from tracekit.analyses import Answer, analysis, of_ledger, share_of_step, table
from tracekit.profile import Profile
from tracekit.run import Ledger
from tracekit.trace.schema import LABEL, column
from tracekit.units import count

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
_Key = tuple[str, str | None, str | None, str | None]


@analysis("fallbacks", rank=57)
def answer(profile: Profile) -> Answer:
    """One row per place and reason; only a run's ledger knows them."""
    groups = _grouped(profile.variant.ledger) if profile.variant is not None else {}
    columns = [list(values) for values in zip(*groups, strict=True)] or [[], [], [], []]
    shown = table(
        FALLBACKS,
        {
            **dict(zip(("to", "where", "code", "reason"), columns, strict=True)),
            "count": [len(ids) for ids in groups.values()],
            "ids": [", ".join(dict.fromkeys(filter(None, ids))) or None for ids in groups.values()],
        },
    )
    worth = share_of_step(profile, "python", "dispatch", "kernel_launch") if groups else 0.0
    status = of_ledger(profile) if groups or profile.variant is None else "absent"
    return Answer("fallbacks", "Fallbacks", _sentence(profile, groups), shown, worth=worth, status=status)


def _grouped(ledger: Ledger) -> dict[_Key, list[str]]:
    """The ids of each group, in order of time."""
    entries = [
        (limit.t_ns, ("eager", _position(limit.file, limit.line), limit.name, limit.reason), _text(limit.frame))
        for limit in ledger.limits
    ]
    entries += [
        (skip.t_ns, ("no CUDA graph", _position(skip.file, skip.line), None, skip.reason), _text(skip.compile))
        for skip in ledger.skips
    ]
    groups: dict[_Key, list[str]] = {}
    for _, key, compile_id in sorted(entries, key=lambda entry: entry[0]):
        groups.setdefault(key, []).append(compile_id)
    return groups


def _position(file: str | None, line: int | None) -> str | None:
    return f"{file}:{line}" if file else None


def _text(value: int | str | None) -> str:
    return "" if value is None else str(value)


def _sentence(profile: Profile, groups: dict[_Key, list[str]]) -> str:
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
