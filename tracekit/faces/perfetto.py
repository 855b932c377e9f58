"""A trace for ui.perfetto.dev: the original, byte for byte, preceded by tracks of ours that explain its events: steps,
buckets with blame, compilations, findings, memory. Our events use the phases `B` and `E`, which the profiler never
writes: any program that reads duration events from the file, including tracekit, gets only those of the original.
Times are on the trace's own clock.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from isal import igzip

from tracekit.analyses.compiles import spans_of
from tracekit.base.intervals import Ints, Union
from tracekit.base.names import sanitize
from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS, KEYS
from tracekit.errors.asking import OutputError
from tracekit.faces import variant_face
from tracekit.profile import Profile
from tracekit.report import Report
from tracekit.trace.reading.chunks import after_bracket
from tracekit.trace.reading.source import Source
from tracekit.trace.rereading import memory_events

_ROWS = 1 << 16  # events of a piece
_NAME = 200  # letters of a name
_PROCESS = "tracekit"
Slices = tuple[Ints, Ints, pa.Array, pa.Array]  # starts, ends, names and arguments as JSON
_PIECE = 1 << 20  # bytes copied at a time
_HEADER = 64 << 20  # bytes in which the list of events must begin


def tracks(report: Report, profile: Profile) -> Iterator[bytes]:
    """All tracks as JSON events, each with a comma after it; those of a track nest, and are in order of time."""
    pid = free_pid(profile)
    yield _event(ph="M", name="process_name", pid=pid, args={"name": f"{_PROCESS}: {sanitize(profile.name, _NAME)}"})
    yield _event(ph="M", name="process_sort_index", pid=pid, args={"sort_index": -1})
    numbers = count(1)
    for name, pieces in _named_tracks(report, profile):
        tid = next(numbers)
        yield _event(ph="M", name="thread_name", pid=pid, tid=tid, args={"name": name})
        yield _event(ph="M", name="thread_sort_index", pid=pid, tid=tid, args={"sort_index": tid})
        for piece in pieces:
            yield slices(pid, tid, piece)
    yield from _memory(profile, pid)


def _named_tracks(report: Report, profile: Profile) -> Iterator[tuple[str, Iterable[Slices]]]:
    view, compiles = profile.attribution.answered_view, profile.attribution.compiles
    known_steps = np.flatnonzero(view.known & (view.step_ns > 0))
    starts, lengths = view.starts_ns[known_steps], view.step_ns[known_steps]
    names = [f"step {profile.trace.steps.number[k]}" for k in known_steps]
    details: list[dict[str, object]] = [{"steady": not compiles[k], "ns": int(view.step_ns[k])} for k in known_steps]
    yield "steps", [(starts, starts + lengths, _texts(names), _texts(details))]
    yield f"where the {profile.attribution.pieces.view} time goes", _buckets(profile)
    by_thread: dict[str, list[Mapping[str, Any]]] = {}
    for span in spans_of(profile):
        by_thread.setdefault(str(span["thread"]), []).append(span)
    for thread, spans in by_thread.items():
        spans.sort(key=lambda span: int(span["start_ns"]))
        starts, lengths = (np.array([span[key] for span in spans], np.int64) for key in ("start_ns", "dur_ns"))
        names = [sanitize(str(span.get("kind")), _NAME) for span in spans]
        fields = ("id", "reason", "guard", "code", "span", "failed")
        details = [
            {key: sanitize(str(span[key]), 4 * _NAME) for key in fields if span.get(key) is not None} for span in spans
        ]
        title = f"compilations of thread {sanitize(thread, _NAME)}"
        yield title, [(starts, starts + lengths, _texts(names), _texts(details))]
    for finding in report.diagnoses[profile.name].findings:
        evidence = finding.evidence
        starts = np.array([event.start_ns for event in evidence], np.int64)
        lengths = np.array([event.dur_ns for event in evidence], np.int64)
        finding_spans = Union.of(starts, starts + lengths)
        if not len(finding_spans.starts):  # the finding is about no particular event, so about all steps
            low, high = profile.trace.steps.window
            finding_spans = Union(np.array([low]), np.array([high]))
        cost = f"up to {duration(finding.cost_ns)} a step" if finding.cost_ns is not None else ""
        texts = {
            "cost": cost,
            "why": sanitize(finding.why, 4 * _NAME),
            "what to change": sanitize(finding.advice, 4 * _NAME),
            "where": sanitize(str(finding.where), _NAME),
            "confidence": finding.confidence,
        }
        headline = sanitize(finding.headline, _NAME)
        args = {key: text for key, text in texts.items() if text}
        starts, ends = finding_spans.starts, finding_spans.ends
        yield (
            f"{cost}: {headline}" if cost else headline,
            [(starts, ends, _texts([headline] * len(starts)), _texts([args] * len(starts)))],
        )


def _buckets(profile: Profile) -> Iterator[Slices]:
    """Every stretch of the steps, with the event that is to blame for it."""
    pieces, trace = profile.attribution.pieces, profile.trace
    labels = _texts([BUCKETS[key].label for key in KEYS])
    meanings = [BUCKETS[key].meaning for key in KEYS]
    for low in range(0, len(pieces.start), _ROWS):
        rows = slice(low, low + _ROWS)
        bucket, event = pieces.bucket[rows].astype(np.int64), pieces.event[rows]
        name = np.where(event >= 0, trace.name_codes[np.maximum(event, 0)], -1) if len(trace.events) else event
        distinct, index = np.unique(bucket << 32 | (name + 1), return_inverse=True)
        args = []
        for code in distinct.tolist():
            because = trace.names[(code & 0xFFFFFFFF) - 1] if code & 0xFFFFFFFF else None
            blame = {"blame": sanitize(because, _NAME)} if because is not None else {}
            args.append({**blame, "meaning": meanings[code >> 32]})
        yield pieces.start[rows], pieces.end[rows], labels.take(pa.array(bucket)), _texts(args).take(pa.array(index))


def slices(pid: int, tid: int, piece: Slices) -> bytes:
    """Successive slices as pairs of events, made from whole columns without an object for each slice."""
    starts, ends, names, args = piece
    if not len(starts):
        return b""
    track_fields = f'"pid":{pid},"tid":{tid},"ts":'
    columns = [
        pa.scalar('{"ph":"B",' + track_fields),
        _microseconds(starts),
        pa.scalar(',"name":'),
        names,
        pa.scalar(',"args":'),
        args,
        pa.scalar('},\n{"ph":"E",' + track_fields),
        _microseconds(ends),
        pa.scalar("},\n"),
    ]
    return "".join(pc.binary_join_element_wise(*columns, "").to_pylist()).encode()


def _microseconds(times: Ints) -> pa.Array:
    """Exact times in the trace's own format: 1234567 ns is `1234.567`."""
    microseconds, rest = np.divmod(times, 1000)
    digits = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 3, "0")
    return pc.binary_join_element_wise(pa.array(microseconds).cast(pa.string()), digits, ".")


def _texts(values: Iterable[object]) -> pa.Array:
    return pa.array([json.dumps(value) for value in values], pa.string())


def _event(**event: object) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b",\n"


def free_pid(profile: Profile) -> int:
    """A number that no process of the trace has."""
    used_pids = set(profile.trace.tracks["pid"].to_pylist())
    return next(pid for pid in count(900_000_001) if str(pid) not in used_pids)


def _memory(profile: Profile, pid: int) -> Iterator[bytes]:
    """Counters of what the allocator held, by device, if the profiler recorded memory."""
    for device in memory_events(profile.trace):
        held = device.chosen(device.allocated >= 0)
        for first in range(0, len(held), _ROWS):
            rows = slice(first, first + _ROWS)
            columns = [
                pa.scalar(f'{{"ph":"C","pid":{pid},"ts":'),
                _microseconds(held.ts_ns[rows]),
                pa.scalar(f',"name":"memory, {device.device}, bytes","args":{{"allocated":'),
                pa.array(held.allocated[rows]).cast(pa.string()),
                pa.scalar(',"reserved":'),
                pa.array(np.maximum(held.reserved[rows], 0)).cast(pa.string()),
                pa.scalar("}},\n"),
            ]
            yield "".join(pc.binary_join_element_wise(*columns, "").to_pylist()).encode()


@variant_face("perfetto", ".json.gz")
def export(report: Report, profile: Profile, path: Path) -> None:
    """One variant's trace with our tracks. Raises OutputError if the original cannot be read again."""
    original = profile.trace.path
    if not profile.trace.source.is_json:
        raise OutputError(path, f"{original} is not JSON, to which tracks can be added")
    if not original.is_file():
        raise OutputError(path, f"{original} is not a file that can be read again")
    with Source(original) as source, igzip.open(path, "wb", compresslevel=1) as output:
        head = _head(source)
        if head is None:
            raise OutputError(path, f"{original} begins its list of events too late")
        opened, rest = head
        output.write(opened)
        waiting = b""
        for piece in tracks(report, profile):
            output.write(waiting)
            waiting = piece
        no_event_follows = rest.lstrip()[:1] == b"]"
        output.write(waiting.rstrip(b",\n") + b"\n" if no_event_follows else waiting)
        output.write(rest)
        for piece in _pieces(source):
            output.write(piece)


def _head(source: Source) -> tuple[bytes, bytes] | None:
    """The text before the first event, including the bracket, and the rest of what was read."""
    begun = bytearray()
    for piece in _pieces(source):
        begun += piece
        events_start = after_bracket(begun)
        if events_start is not None and begun[events_start:].strip():
            return bytes(begun[:events_start]), bytes(begun[events_start:])
        if len(begun) > _HEADER:
            return None
    events_start = after_bracket(begun)
    return (bytes(begun[:events_start]), bytes(begun[events_start:])) if events_start is not None else None


def _pieces(source: Source) -> Iterator[bytes]:
    buffer = bytearray(_PIECE)
    while count := source.readinto(memoryview(buffer)):
        yield bytes(memoryview(buffer)[:count])
