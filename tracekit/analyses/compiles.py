"""What was compiled, recompiled or recorded while the steps ran, and what did it cost?"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from typing import Literal

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, Status, analysis
from tracekit.base.intervals import NO_INTS, Ints
from tracekit.base.units import count, duration, many
from tracekit.profile import Profile
from tracekit.run import Compile
from tracekit.trace import Trace
from tracekit.trace.rows import enclosing, names_of_rows, outermost
from tracekit.trace.schema import LABEL, column
from tracekit.vocabulary import event_names
from tracekit.vocabulary.code_owner import plain_function

Kind = Literal["first", "recompile", "backward", "cudagraph", "autotune", "unknown"]

SPANS = pa.schema(
    [
        column("trace", LABEL, "cold or steady; null where it was compiled between the traces"),
        column("step", pa.int64(), "the N of the step in whose time it starts; null for none", role="identity"),
        column("id", pa.string(), "compile id, frame/attempt; null where the trace does not say"),
        column("kind", LABEL, "first, recompile, backward, cudagraph, autotune or unknown"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("reason", pa.string(), "why, in the compiler's own words; known for a run only", role="reason"),
        column("guard", pa.string(), "the guard that failed; known for a run only", role="reason"),
        column("code", pa.string(), "your function; known for a run only", role="place"),
        column("failed", pa.string(), "why it produced no code; known for a run only", role="reason"),
        column(
            "start_ns",
            pa.int64(),
            "start, on the trace's clock; null where it is in no trace",
            "clock",
            role="plumbing",
        ),
        column("span", LABEL, "name of the outermost compile span", role="detail"),
        column("thread", LABEL, "thread it ran on", role="detail"),
        column("event", pa.int64(), "row of the events table of that trace; null where it is in none", role="plumbing"),
        column("file", LABEL, "the file of the function that was compiled", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
        column("function", LABEL, "the function that was compiled", role="source"),
    ]
)
_DATA = re.compile(r"(.*)_data: .*?compile_id=(\S+)", re.DOTALL)
_REGION = re.compile(r"Torch-Compiled Region: (\S+)")
_CODE = re.compile(r"(.+):(\d{1,9}) (.+)", re.DOTALL)  # "file.py:12 forward"
_SPECIAL: dict[str, Kind] = {
    **{name: kind for name, kind in event_names.COMPILE_SPANS.items() if kind != "frame"},
    "backward._backward_impl (dynamo_timed)": "backward",
}
_PREPARED = "prepared"  # a kind for sentences only
_NOUNS = {
    _PREPARED: "CUDA graph preparation",
    "first": "first compilation",
    "recompile": "recompilation",
    "backward": "backward graph",
    "cudagraph": "CUDA graph",
    "autotune": "autotuning run",
}


@analysis("compiles", rank=50)
def answer(profile: Profile) -> Answer:
    """One row per compile span that no other encloses, and per entry of the run's ledger that is in no trace."""
    traces = [("steady", profile.trace)]
    if profile.cold is not None:
        traces.insert(0, ("cold", profile.cold.trace))
    ledger: Sequence[Compile] = profile.variant.ledger.compiles if profile.variant is not None else ()
    rows: list[dict[str, object]] = []
    for window, trace in traces:
        spans, ledger = _spans(window, trace, ledger)
        rows += spans
    rows += [
        {
            "step": entry.step,
            "id": entry.id,
            "kind": entry.kind,
            "dur_ns": entry.end_ns - entry.start_ns,
            **_ledger_columns(entry),
            "span": entry.span,
            "thread": str(entry.thread),
        }
        for entry in ledger
    ]
    compilations = pa.Table.from_pylist(rows, schema=SPANS)
    has_host = profile.trace.threads.main is not None
    status: Status = "answered" if len(compilations) else "absent" if has_host else "unanswered"
    # Steady steps compile nothing, so what counts here is how much of the captured time went into compiling.
    compiling = int(np.sum(compilations["dur_ns"].to_numpy()))
    worth = compiling / max(compiling + int(profile.views["host"].step_ns.sum()), 1)
    sentence = _sentence(profile, compilations)
    return Answer("compiles", "Compilations", sentence, compilations, worth=worth, status=status)


def spans_of(profile: Profile) -> list[dict[str, object]]:
    """What was compiled in the trace that figures come from, as rows of `SPANS`."""
    ledger = profile.variant.ledger.compiles if profile.variant is not None else ()
    return _spans("steady", profile.trace, ledger)[0]


def _spans(window: str, trace: Trace, ledger: Sequence[Compile]) -> tuple[list[dict[str, object]], Sequence[Compile]]:
    """The rows of one trace with what the ledger knows about them, and the ledger's entries that are not in it."""
    rows: list[dict[str, object]] = []
    rest = list(ledger)
    spans = compile_spans(trace)
    ids = compile_ids(trace, spans)
    steps = trace.steps.of(trace.ts_ns[spans]).tolist()
    base = trace.base_ns
    tids = trace.tracks["tid"].to_pylist()
    for row, compile_id, name, step in zip(spans.tolist(), ids, names_of_rows(trace, spans), steps, strict=True):
        start, end = int(trace.ts_ns[row]), int(trace.ts_ns[row] + trace.dur_ns[row])
        kind = kind_of(name or "", compile_id)
        of_span = (
            entry
            for entry in rest
            if entry.id == compile_id and (entry.kind == "backward") == (kind == "backward")
            if entry.start_ns < base + end and base + start < entry.end_ns  # at the same time on the same clock
        )
        entry = next(of_span, None)
        if entry is not None:
            rest.remove(entry)
        rows.append(
            {
                "trace": window,
                "step": trace.steps.number[step] if step >= 0 else None,
                "id": compile_id,
                "kind": kind if kind != "unknown" or entry is None else entry.kind,
                "dur_ns": end - start,
                **_ledger_columns(entry),
                "start_ns": start,
                "span": name,
                "thread": tids[int(trace.track[row])],
                "event": row,
            }
        )
    return rows, rest


def _ledger_columns(entry: Compile | None) -> dict[str, object]:
    if entry is None:
        return {}
    columns = {"reason": entry.reason, "guard": entry.guard, "code": entry.code, "failed": entry.failed}
    code = _CODE.fullmatch(entry.code or "")
    return columns | ({"file": code[1], "line": int(code[2]), "function": plain_function(code[3])} if code else {})


def compile_spans(trace: Trace) -> Ints:
    """The compile spans of the main thread's process that no other span of their thread encloses, by start."""
    if not trace.census.any(lambda roles: roles.compile_span):
        return NO_INTS
    return outermost(trace, trace.where(lambda part: part.roles.compile_span & part.process))


def compile_ids(trace: Trace, spans: Ints) -> list[str | None]:
    """The id of each outermost span: its first marker's (2.11 and later), else that of the region it led to."""
    if not len(spans):
        return []
    ids: dict[int, str] = {}
    for _, enclosing_span, (about, compile_id) in _matches(trace, _DATA, spans):
        name = trace.name(enclosing_span) if enclosing_span >= 0 else ""
        if about == name and compile_id != "None":
            ids.setdefault(enclosing_span, compile_id)
    regions: dict[int, list[tuple[int, str]]] = defaultdict(list)  # by track, the start and the id of each, by time
    for row, _, (compile_id,) in _matches(trace, _REGION, spans):
        regions[int(trace.track[row])].append((int(trace.ts_ns[row]), compile_id))
    for span in spans.tolist():
        if span in ids or trace.name(span) in _SPECIAL:
            continue
        track, end = int(trace.track[span]), int(trace.ts_ns[span] + trace.dur_ns[span])
        after = regions[track]
        if (first := bisect_left(after, end, key=itemgetter(0))) < len(after):
            ids[span] = after[first][1]
    return [ids.get(span) for span in spans.tolist()]


def _matches(trace: Trace, pattern: re.Pattern[str], spans: Ints) -> list[tuple[int, int, tuple[str, ...]]]:
    """Events whose name fits, by time: row, the span around it, and what the pattern matched."""
    if not trace.census.any(lambda roles: roles.host & roles.named(pattern)):
        return []
    rows = trace.where(lambda part: part.roles.host & part.roles.named(pattern))
    enclosing_spans = enclosing(trace, rows, lambda part: part.among(spans))
    result = []
    for row, span, name in zip(rows.tolist(), enclosing_spans.tolist(), names_of_rows(trace, rows), strict=True):
        caught = pattern.fullmatch(name or "")
        if caught is not None:
            result.append((row, span, caught.groups()))
    return result


def kind_of(name: str, compile_id: str | None) -> Kind:
    """First compile, recompile (a later attempt at the same frame), or something that is neither."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    attempt = compile_id.rsplit("/", 1)[-1] if compile_id else None
    if attempt is None or not attempt.isdigit():
        return "unknown"
    return "first" if attempt == "0" else "recompile"


def _sentence(profile: Profile, spans: pa.Table) -> str:
    if profile.trace.threads.main is None:
        return "Cannot be answered: the trace holds no host events."
    if not len(spans):
        return f"torch.compile compiles nothing in this {'trace' if profile.variant is None else 'run'}."
    names = zip(spans["kind"].to_pylist(), spans["span"].to_pylist(), strict=True)
    kinds = [_PREPARED if span == event_names.PREPARATION else kind for kind, span in names]
    numbers = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    counted = ", ".join(
        many(number, _NOUNS[kind]) if kind in _NOUNS else f"{count(number)} of unknown kind"
        for kind, number in numbers.items()
    )
    total = sum(spans["dur_ns"].to_pylist())
    steps = [step for step in dict.fromkeys(spans["step"].to_pylist()) if step is not None]
    steps_clause = f" in step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps[:8]))}" if steps else ""
    others_clause = " and others" if len(steps) > 8 else ""
    single = len(spans) == 1
    recordings = spans["kind"].to_pylist().count("cudagraph")  # which compile nothing
    nouns = (
        ("compilation",)
        if not recordings
        else ("recording",)
        if recordings == len(spans)
        else ("compilation or recording", "compilations and recordings")
    )
    takes = f"take{'s' if single else ''} {duration(total)}{steps_clause}{others_clause}"
    text = f"{many(len(spans), *nouns)} ({counted}) {takes}."
    limits = profile.variant.ledger.limits if profile.variant is not None else []
    for limit in limits[:3]:
        function = f"{limit.file}:{limit.line}" if limit.file else "a function"
        text += f" The recompile limit was reached for {limit.name or function}, which ran eagerly from then on."
    return text
