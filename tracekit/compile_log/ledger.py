"""Makes the run's ledger from the compiler's log: joined by compile id, assigned to windows and steps, without
duplicates."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tracekit.compile_log.log import TRACEBACK, CompileLog, LogEntry, Span
from tracekit.run import Break, Compile, Ledger, Limit, Skip, Window
from tracekit.vocabulary.event_names import COMPILE_SPANS

_ID = re.compile(r"(?<!\d)(\d{1,9})/(\d{1,9})$")
_PLACE = re.compile(r"user code at (.+):(\d{1,9})$", re.M)
_REASON = re.compile(r"^(?:Graph Break )?Reason: (.*)", re.M | re.S)
_FRAME = re.compile(r'^ *File "(.+)", line (\d{1,9})\b', re.M)
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
    of_code = metrics or log.metrics.get(f"{frame}/0", {})
    code = f"{of_code.get('co_filename')}:{of_code.get('co_firstlineno')} {of_code.get('co_name')}"
    # `0/0: k == 0.5    # y = x*k  # f.py:3 in f` → `k == 0.5`.
    guard = re.sub(r"^\S*\d+/\d+: ", "", reasons[0].partition("\n")[0]).partition("  # ")[0] if reasons else None
    length_ns = span.end_ns - span.start_ns
    phases = {name: ns for name, ns in span.phases.items() if ns >= length_ns * _MIN_SHARE_OF_A_PHASE}
    rest_ns = length_ns - sum(phases.values())
    failures = [f"{hit.setting} reached" for hit in log.limits if hit.id == span.id]
    if failed := metrics.get("fail_type"):
        why = str(metrics.get("fail_reason") or "").strip().partition("\n")[0]
        failures.append(f"{str(failed).rpartition('.')[2]}: {why}")
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
        guard=guard.strip() if guard is not None else None,
        code=code if of_code.get("co_filename") else None,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        thread=span.thread,
        phases=dict(sorted(phases.items(), key=lambda item: -item[1])) | ({"other": rest_ns} if rest_ns else {}),
        step=began.step if began else None,
        during=began.during if began else "",
        failed=next(iter(failures), None) if span.name == "dynamo" else None,
        has_graph=span.id in log.with_graph or bool(metrics.get("graph_op_count")) or span_kind != "frame",
        guard_ns=round(guard_us * 1000) if span_kind == "frame" and guard_us is not None else None,
    )


def _cleaned(reason: str) -> str:
    """The first line of a reason, without the spaces that align its comment."""
    return re.sub(r" {2,}", "  ", reason.partition("\n")[0].partition(" (HINT:")[0])


def _break(note: LogEntry) -> Break:
    head, _, stack = note.text.partition(TRACEBACK)
    position = _PLACE.search(head) or _last(_FRAME, note.text)
    # What broke the graph and why, without Dynamo's hints.
    match = _REASON.search(head)
    lines = [line.strip() for line in (match[1] if match else head).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Encountered graph break when"):
        lines = lines[1:]
    sentences = [line.removeprefix("Explanation:").strip(" .") for line in lines[:2] if not line.startswith("Hint:")]
    reason = ": ".join(filter(None, sentences))
    operator = _OPERATOR.search(head)  # named only in the part for developers
    # The stack below our own frames, without the two that every call of a module adds.
    frames = re.split(r'(?m)^(?= *File ")', stack.partition("\nTraceback (most recent call last)")[0])
    last_own = max((index for index, frame in enumerate(frames) if _OURS in frame), default=-1)
    return Break(
        compile=note.id,
        reason=f"{reason} ({operator[1]})" if operator and operator[1] not in reason else reason,
        file=position[1] if position else None,
        line=int(position[2]) if position else None,
        stack="".join(frame for frame in frames[last_own + 1 :] if not _CALLS_MODULE.search(frame)).rstrip(),
        t_ns=note.t_ns,
    )


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
