"""A file for speedscope (https://www.speedscope.app): a profile of each host thread and each GPU stream, in ns.

The format is evented (https://www.speedscope.app/file-format-schema.json): frames open and close, properly nested. An
event that outlasts the one around it, as no call does, is divided there, so that every ns of every event stays. Moments
are counted from the first event or from the beginning of the step, because those of the trace's clock have more digits
than a number in JavaScript holds. Events without duration weigh nothing, and are left out.
"""

import json
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np
from msgspec import Struct, field

from tracekit.base.intervals import Ints
from tracekit.base.names import sanitize
from tracekit.errors.asking import UnknownStepError
from tracekit.faces import DEFAULTS, Options, face
from tracekit.installed import version
from tracekit.profile import Profile
from tracekit.profile.where import line_table
from tracekit.report import Report
from tracekit.timeline.index import rows_by_track, thread_title, threads_in_order
from tracekit.trace.roles import OVERHEAD
from tracekit.trace.schema import codes
from tracekit.vocabulary.code_owner import profiled

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_NAME = 400  # letters of a name
_PART = '{{"type":"{}","frame":{},"at":{}}}'
Part = tuple[str, int, int]  # O or C, the frame, and the moment, ns


class Frames(Struct, frozen=True):
    """The frames that all profiles of a file share: a name, and file and line where they are known."""

    numbers: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)

    def of(self, profile: Profile, rows: Ints) -> Ints:
        """The number of the frame of each of these events: a Python function has the line of its `def`, all else the
        line of the user's that it runs for."""
        trace, lines = profile.trace, line_table(profile, rows)
        line_of = codes(lines["where"].combine_chunks()) + 1
        keys, first, inverse = np.unique(
            trace.name_codes[rows].astype(np.int64) << 32 | line_of, return_index=True, return_inverse=True
        )
        numbers = []
        for key, row in zip(keys.tolist(), first.tolist(), strict=True):
            name = trace.names[key >> 32]
            frame = profiled(name)
            if frame is not None:
                name, file, line = frame.function, frame.file, frame.line or None
            else:
                file, line = lines["file"][row].as_py(), lines["line"][row].as_py()
            place = sanitize(file, _NAME) if file is not None else None, line
            numbers.append(self.numbers.setdefault((sanitize(name, _NAME), *place), len(self.numbers)))
        of_events: Ints = np.array(numbers, np.int64)[inverse.reshape(-1)]
        return of_events

    def document(self) -> list[dict[str, str | int]]:
        """The frames as speedscope wants them: what is unknown of one is left out."""
        named = (zip(("name", "file", "line"), key, strict=True) for key in self.numbers)
        return [{key: value for key, value in frame if value is not None} for frame in named]


@face("speedscope", on_terminal=False)
def render(report: Report, options: Options = DEFAULTS) -> str:
    """The threads and streams of every variant, in one file. Raises UnknownStepError."""
    frames = Frames()
    texts: list[str] = []
    mains: list[int] = []
    for profile in report.profiles:
        prefix = f"{profile.name}: " if len(report.profiles) > 1 else ""
        for title, is_main, end_ns, parts in profiles_of(profile, frames, options.step):
            mains += [len(texts)] if is_main else []
            head = {"type": "evented", "name": sanitize(prefix + title, _NAME), "unit": "nanoseconds"}
            head_text = json.dumps(head | {"startValue": 0, "endValue": end_ns}, separators=(",", ":"))
            events = ",".join(_PART.format(*part) for part in parts)
            texts.append(f'{head_text[:-1]},"events":[{events}]}}')
    shown = {
        "$schema": SCHEMA,
        "name": sanitize(report.title, _NAME),
        "exporter": f"tracekit {version() or ''}".rstrip(),
        "activeProfileIndex": mains[0] if mains else 0,
        "shared": {"frames": frames.document()},
    }
    head_text = json.dumps(shown, separators=(",", ":"))
    return "".join((head_text[:-1], ',"profiles":[\n', ",\n".join(texts), "\n]}\n"))


def profiles_of(
    profile: Profile, frames: Frames, number: int | None = None
) -> Iterator[tuple[str, bool, int, Iterator[Part]]]:
    """For each thread and stream that has events in the step of that number, or at any time: its title, whether it is
    the main thread, when the last event of all ends, and the parts of its events."""
    trace = profile.trace
    low_ns, high_ns = _window(profile, number)
    within = (trace.ts_ns < high_ns) & (trace.ts_ns + trace.dur_ns > low_ns) & (trace.dur_ns > 0)
    roles = trace.roles
    threads = rows_by_track(trace, within & (roles.host | (roles.kind == OVERHEAD)))
    streams = rows_by_track(trace, within & roles.gpu)
    rows_of = [(thread_title(trace, track), threads[track], track) for track in threads_in_order(trace, threads)]
    pids, tids = (trace.tracks[column].to_pylist() for column in ("pid", "tid"))
    several_gpus = len({pids[track] for track in streams}) > 1
    for track, rows in streams.items():
        gpu = f"GPU {pids[track]} " if several_gpus else ""
        rows_of.append((f"{gpu}stream {tids[track].removeprefix('stream ')}", rows, track))
    clipped = [
        (np.maximum(trace.ts_ns[rows], low_ns), np.minimum(trace.ts_ns[rows] + trace.dur_ns[rows], high_ns))
        for _, rows, _ in rows_of
    ]
    if number is None:
        low_ns = min((int(starts.min()) for starts, _ in clipped), default=0)
    end_ns = max((int(ends.max()) for _, ends in clipped), default=low_ns) - low_ns
    for (title, rows, track), (starts, ends) in zip(rows_of, clipped, strict=True):
        parts = nested(starts - low_ns, ends - low_ns, frames.of(profile, rows))
        yield title, track == trace.threads.main, end_ns, parts


def _window(profile: Profile, number: int | None) -> tuple[int, int]:
    view, steps = profile.attribution.answered_view, profile.trace.steps.number
    if number is None:
        bounds = np.iinfo(np.int64)
        return int(bounds.min), int(bounds.max)
    if number not in steps:
        raise UnknownStepError(number, profile.name, steps)
    k = steps.index(number)
    return int(view.starts_ns[k]), int(view.starts_ns[k] + view.step_ns[k])


def nested(starts: Ints, ends: Ints, frames: Ints) -> Iterator[Part]:
    """The events of a track as frames that open and close in order of time, each within those around it."""
    order = np.lexsort((-ends, starts))
    events = zip(starts[order].tolist(), ends[order].tolist(), frames[order].tolist(), strict=True)
    following = next(events, None)
    rests: list[tuple[int, int, int]] = []  # of divided events: start, end × −1, frame
    around: list[tuple[int, int]] = []  # the open ones: end and frame, of which the innermost ends first
    while following is not None or rests:
        if rests and (following is None or rests[0][:2] <= (following[0], -following[1])):
            start, minus_end, frame = heappop(rests)
            end = -minus_end
        else:
            assert following is not None
            start, end, frame = following
            following = next(events, None)
        while around and around[-1][0] <= start:
            closed, closed_frame = around.pop()
            yield "C", closed_frame, closed
        if around and end > around[-1][0]:
            heappush(rests, (around[-1][0], -end, frame))
            end = around[-1][0]
        around.append((end, frame))
        yield "O", frame, start
    while around:
        end, frame = around.pop()
        yield "C", frame, end
