"""The steps that have ended: each is judged, written to the record, and counted in its minute."""

import statistics
from collections.abc import Callable, Sequence

from tracekit.watched import Cause, Flag, Minute, Record, Step
from tracekit.watched.causes import cause_of
from tracekit.watched.record import UNKNOWN
from tracekit.watched.usual import Usual, Verdict

_NEVER = 1 << 62  # ns
# As plain numbers, whose bits are looked at in a twentieth of the time that those of a Flag take.
_SLOW, _TRACED, _TRIGGERED, _PERIODIC, _APART = map(
    int, (Flag.SLOW, Flag.TRACED, Flag.TRIGGERED, Flag.PERIODIC, Flag.APART)
)
_MOST_DURATIONS = 1024  # of a minute, whose median is computed between two steps
_MS = 1e6  # ns
_OF_A_MINUTE = [*map(Step._fields.index, ("step_ns", "waited_ns", "compile_ns"))]
_NO_VERDICT = Verdict()
_NOT_JUDGED = (UNKNOWN, UNKNOWN, Flag(0), Cause.UNKNOWN)


class History:
    """What is known of the steps so far, with the record that it is written to."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._usual = Usual(record.steps.entry)
        self._told = 0  # steps in the record that were added here, or caught up with
        self.usual_ns, self.limit_ns = 0, _NEVER  # of steps, as of the last one that was judged
        self._minute = _OpenMinute()
        self._summed = 0  # steps, up to the last summary

    def add(self, seen: Sequence[int], step_ns: int, may_trace: Callable[[], bool]) -> str:
        """Add a step, given as in Step but without its duration and what is concluded from it. Returns why the next
        steps are to be traced; empty if they are not."""
        flags = seen[-1]
        if not flags and (verdict := self._usual.at_a_glance(seen[0], step_ns)) is not None:
            entry = (seen[0], seen[1], step_ns, *seen[2:-1], verdict.usual_ns, verdict.limit_ns, 0, 0)
            self._write(entry)
            self._minute.add(entry, slow=False)
            return ""
        entry, reason = self._judged(seen, step_ns, may_trace)
        self._write(entry)
        return reason

    def judge(self, number: int, step_ns: int, may_trace: Callable[[], bool]) -> str:
        """The same of a step that is in the record, but for how long it took; those before it are caught up with."""
        written = self.record.steps.entry(number)
        seen = (*written[:2], *written[3:-4], int(written.flags))
        entry, reason = self._judged(seen, step_ns, may_trace)
        self.record.steps.amend(number, entry)
        self._told = number + 1
        return reason

    def _judged(self, seen: Sequence[int], step_ns: int, may_trace: Callable[[], bool]) -> tuple[tuple[int, ...], str]:
        """The whole entry; and why the next steps are to be traced."""
        flags = seen[-1]
        step = Step._make((seen[0], seen[1], step_ns, *seen[2:-1], *_NOT_JUDGED))
        cause, reason = Cause.UNKNOWN, ""
        verdict = _NO_VERDICT if flags else self._usual.judge(step)
        if verdict.limit_ns != UNKNOWN:
            self.usual_ns, self.limit_ns = verdict.usual_ns, verdict.limit_ns
        if verdict.slow:
            flags |= _SLOW
            cause = cause_of(step, self._usual.typical)
            if may_trace():
                flags |= _TRIGGERED
                reason = f"slow-{cause.name.lower().replace('_', '-')}"
        elif verdict.trend:
            flags, cause, reason = self._trend(may_trace)
        elif verdict.period:
            flags |= _PERIODIC
        entry = (*step[:-4], verdict.usual_ns, verdict.limit_ns, flags, cause)
        if cause or verdict.slow:
            self.record.slow.append(entry)
        if not flags & _TRACED and step_ns != UNKNOWN:
            self._minute.add(step, verdict.slow)
        return entry, reason

    def catch_up(self, end: int, may_trace: Callable[[], bool]) -> tuple[str, int]:
        """Take in the steps before number `end` that the tally has written to the record since. Returns why the next
        steps are to be traced, and after which one; empty if they are not."""
        first, self._told = self._told, end
        reason, after = "", 0
        if first == end:
            return reason, after
        columns = self.record.steps.columns(first, end, _OF_A_MINUTE)
        durations = columns[0]
        numbers: Sequence[int] = range(first, end)
        sample = self._usual.sample(first, end)
        if UNKNOWN in durations:  # the GPU was too far behind
            numbers = [number for number in numbers if durations[number - first] != UNKNOWN]
            sample = [number for number in sample if durations[number - first] != UNKNOWN]
            columns = [[column[number - first] for number in numbers] for column in columns]
        if numbers:
            self._minute.add_all(numbers, self.record.steps.entry(numbers[0]).began_ns, *columns)
        for number in self._usual.learn(sample, [durations[number - first] for number in sample]):
            flags, cause, reason = self._trend(may_trace)
            after, entry = number, (*self.record.steps.entry(number)[:-2], flags, cause)
            self.record.slow.append(entry)
            self.record.steps.amend(number, entry)
        if (quiet := self._usual.quiet).limit_ns != UNKNOWN:
            self.usual_ns, self.limit_ns = quiet[:2]
        return reason, after

    @property
    def quiet(self) -> Verdict:
        """See Usual."""
        return self._usual.quiet

    def _trend(self, may_trace: Callable[[], bool]) -> tuple[int, Cause, str]:
        cause = Cause.TREND
        return (_TRIGGERED, cause, cause.name.lower()) if may_trace() else (0, cause, "")

    def _write(self, entry: Sequence[int]) -> None:
        self.record.steps.append(entry)
        self._told += 1

    def end_minute(self) -> None:
        """Write the minute that is over, if any step ended in it."""
        if self._minute.steps:
            self.record.minutes.append(self._minute.closed())
        self._minute = _OpenMinute()

    def summary(self) -> dict[str, float]:
        """See Watch.summary."""
        entries = self.record.steps.entries(since=self._summed)
        steps = [step for step in entries if step.number < self._told and not step.flags & (_TRACED | _APART)]
        self._summed = self._told
        durations = [step.step_ns for step in steps if step.step_ns != UNKNOWN]
        if not durations:
            return {}
        host_ns = sum(step.host_ns for step in steps)
        figures = {
            "tracekit/steps": len(steps),
            "tracekit/step_ms": statistics.median(durations) / _MS,
            "tracekit/longest_step_ms": max(durations) / _MS,
            "tracekit/slow_steps": sum(bool(step.flags & _SLOW) for step in steps),
            "tracekit/share/waiting": sum(step.waited_ns for step in steps) / host_ns,
            "tracekit/share/compiling": sum(step.compile_ns for step in steps) / host_ns,
            "tracekit/share/collecting": sum(step.collect_ns for step in steps) / host_ns,
        }
        if (peak_bytes := steps[-1].peak_bytes) != UNKNOWN:
            figures["tracekit/peak_mb"] = peak_bytes / 1e6
        return figures


class _OpenMinute:
    """The steps of the current minute, of which enough durations are kept for a median."""

    def __init__(self) -> None:
        self.steps = 0
        self._stride = 1
        self._durations: list[int] = []
        self._first = self._began_ns = self._most_ns = self._most_number = 0
        self._least_ns = 1 << 62
        self._slow = self._waited_ns = self._compile_ns = 0

    def add(self, step: Sequence[int], slow: bool) -> None:
        number, began_ns, step_ns, _, waited_ns, _, compile_ns = step[:7]
        if not self.steps:
            self._first, self._began_ns = number, began_ns
        if self.steps % self._stride == 0:
            self._durations.append(step_ns)
            if len(self._durations) == _MOST_DURATIONS:
                self._durations = self._durations[::2]
                self._stride *= 2
        self.steps += 1
        if step_ns > self._most_ns:
            self._most_ns, self._most_number = step_ns, number
        self._least_ns = min(self._least_ns, step_ns)
        self._waited_ns += waited_ns
        self._compile_ns += compile_ns
        self._slow += slow

    def add_all(
        self, numbers: Sequence[int], began_ns: int, durations: list[int], waited_ns: list[int], compile_ns: list[int]
    ) -> None:
        """Several steps, none of which is slow; when the first of them began."""
        if not self.steps:
            self._first, self._began_ns = numbers[0], began_ns
        self._durations += durations[-self.steps % self._stride :: self._stride]
        self.steps += len(durations)
        if len(self._durations) >= _MOST_DURATIONS:
            self._durations = self._durations[::2]
            self._stride *= 2
        longest_ns = max(durations)
        if longest_ns > self._most_ns:
            self._most_ns, self._most_number = longest_ns, numbers[durations.index(longest_ns)]
        self._least_ns = min(self._least_ns, *durations)
        self._waited_ns += sum(waited_ns)
        self._compile_ns += sum(compile_ns)

    def closed(self) -> Minute:
        return Minute(
            self._began_ns,
            self._first,
            self.steps,
            self._least_ns,
            int(statistics.median(self._durations)),
            self._most_ns,
            self._most_number,
            self._slow,
            self._waited_ns,
            self._compile_ns,
        )
