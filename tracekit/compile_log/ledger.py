"""Makes the run's ledger from the compiler's log: joined by compile id, assigned to windows and steps, without
duplicates."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from tracekit.compile_log.log import TRACEBACK, CompileLog, LogEntry, Span
from tracekit.run import Break, Compile, Ledger, Limit, Skip, Window
from tracekit.vocabulary.event_names import COMPILE_SPANS

_ID = re.compile(r"(\d+)/(\d+)$")
_PLACE = re.compile(r"user code at (.+):(\d+)$", re.M)
_REASON = re.compile(r"^(?:Graph Break )?Reason: (.*)", re.M | re.S)
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.M)
_OPERATOR = re.compile(r"^ *Developer debug context: unsupported operator: (\S+)", re.M)
_CALLS_MODULE = re.compile(r"in _(wrapped_)?call_impl$", re.M)
_OURS = str(Path(__file__).parents[1] / "capture")
_MIN_SHARE_OF_A_PHASE = 0.01  # phases below this share of the compilation are summed up as "other"


class StepStart(Struct, frozen=True):
    """The beginning of a step, and whether it is in a window or warms up."""

    t_ns: int  # unix time
    step: int
    during: Window | Literal["warmup"]


def ledger(log: CompileLog, starts: Sequence[StepStart]) -> Ledger:
    """Everything recorded, in order of time."""
    return Ledger(
        compiles=[_compile(span, log, starts) for span in sorted(log.compilations(), key=lambda span: span.start_ns)],
        breaks=[_break(note) for note in log.breaks],
        limits=[
            Limit(
                frame=_numbers(hit.id)[0],
                file=hit.file,
                line=hit.line,
                name=hit.name,
                reason=_cleaned(hit.reason),
                t_ns=hit.t_ns,
            )
            for hit in log.limits
        ],
        skips=[_skip(note) for note in log.skips],
    )


def total_ns(spans: Sequence[Span]) -> int:
    """Wall time inside compilations; time in which several threads compile counts once."""
    total = reached = 0
    for span in sorted(spans, key=lambda span: span.start_ns):
        total += max(0, span.end_ns - max(span.start_ns, reached))
        reached = max(reached, span.end_ns)
    return total


def _compile(span: Span, log: CompileLog, starts: Sequence[StepStart]) -> Compile:
    frame, attempt = _numbers(span.id)
    span_kind = COMPILE_SPANS[span.name]
    kind: Literal["first", "recompile", "backward", "cudagraph", "autotune"]
    kind = span_kind if span_kind != "frame" else "recompile" if attempt else "first"
    reasons = log.reasons.get(span.id, []) if kind == "recompile" else []
    metrics = log.metrics.get(span.id, {})
    following = bisect_right(starts, span.start_ns, key=lambda start: start.t_ns)
    began = starts[following - 1] if following else None
    guard_us = metrics.get("guard_latency_us")
    return Compile(
        id=span.id,
        frame=frame,
        attempt=attempt,
        kind=kind,
        span=span.name,
        reason="\n".join(map(_cleaned, reasons)) or None,
        guard=_guard(reasons[0]) if reasons else None,
        code=_code(metrics or log.metrics.get(f"{frame}/0", {})),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        thread=span.thread,
        phases=_phases(span),
        step=began.step if began else None,
        during=began.during if began else "",
        failed=_failure(span, log, metrics) if span.name == "dynamo" else None,
        has_graph=span.id in log.with_graph or bool(metrics.get("graph_op_count")) or span_kind != "frame",
        guard_ns=round(guard_us * 1000) if span_kind == "frame" and guard_us is not None else None,
    )


def _guard(reason: str) -> str:
    """`0/0: k == 0.5    # y = x*k  # f.py:3 in f` → `k == 0.5`."""
    return re.sub(r"^\S*\d+/\d+: ", "", reason.partition("\n")[0]).partition("  # ")[0].strip()


def _cleaned(reason: str) -> str:
    """The first line of a reason, without the spaces that align its comment."""
    return re.sub(r" {2,}", "  ", reason.partition("\n")[0].partition(" (HINT:")[0])


def _failure(span: Span, log: CompileLog, metrics: dict[str, Any]) -> str | None:
    for hit in log.limits:
        if hit.id == span.id:
            return f"{hit.setting} reached"
    failed, why = metrics.get("fail_type"), str(metrics.get("fail_reason") or "")
    return f"{str(failed).rpartition('.')[2]}: {why.strip().partition(chr(10))[0]}" if failed else None


def _code(metrics: dict[str, Any]) -> str | None:
    if not metrics.get("co_filename"):
        return None
    return f"{metrics['co_filename']}:{metrics.get('co_firstlineno')} {metrics.get('co_name')}"


def _phases(span: Span) -> dict[str, int]:
    smallest_ns = (span.end_ns - span.start_ns) * _MIN_SHARE_OF_A_PHASE
    large = {name: ns for name, ns in span.phases.items() if ns >= smallest_ns}
    rest = span.end_ns - span.start_ns - sum(large.values())
    return {**dict(sorted(large.items(), key=lambda item: -item[1])), **({"other": rest} if rest else {})}


def _break(note: LogEntry) -> Break:
    head, _, stack = note.text.partition(TRACEBACK)
    position = _PLACE.search(head) or _last(_FRAME, note.text)
    return Break(
        compile=note.id,
        reason=_reason(head),
        file=position[1] if position else None,
        line=int(position[2]) if position else None,
        stack=_users_stack(stack.partition("\nTraceback (most recent call last)")[0]),
        t_ns=note.t_ns,
    )


def _reason(head: str) -> str:
    """What broke the graph and why, without Dynamo's hints."""
    match = _REASON.search(head)
    lines = [line.strip() for line in (match[1] if match else head).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Encountered graph break when"):
        lines = lines[1:]
    sentences = [line.removeprefix("Explanation:").strip(" .") for line in lines[:2] if not line.startswith("Hint:")]
    reason = ": ".join(filter(None, sentences))
    operator = _OPERATOR.search(head)  # named only in the part for developers
    return f"{reason} ({operator[1]})" if operator and operator[1] not in reason else reason


def _users_stack(stack: str) -> str:
    """The stack below our own frames, without the two that every call of a module adds."""
    frames = re.split(r'(?m)^(?= *File ")', stack)
    last_own = max((index for index, frame in enumerate(frames) if _OURS in frame), default=-1)
    return "".join(frame for frame in frames[last_own + 1 :] if not _CALLS_MODULE.search(frame)).rstrip()


def _skip(note: LogEntry) -> Skip:
    position = _last(_FRAME, note.text)
    return Skip(
        compile=note.id if _numbers(note.id)[0] is not None else None,
        reason=re.split(r"\.? *Found from|\n", note.text)[0].strip(" ."),
        file=position[1] if position else None,
        line=int(position[2]) if position else None,
        t_ns=note.t_ns,
    )


def _numbers(compile_id: str) -> tuple[int | None, int | None]:
    match = _ID.search(compile_id)
    return (int(match[1]), int(match[2])) if match else (None, None)


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed([*pattern.finditer(text)]), None)
