"""What a watch has left in a folder: the newest record, those of the other ranks of its job, and the traces it took.

A record may be damaged, or have been made to harm: what no watch can have written is left out and counted.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median_low

from msgspec import Struct

from tracekit.base import disclosure
from tracekit.base.units import duration
from tracekit.errors.reading import BadWatchError
from tracekit.loading.record import Place
from tracekit.loading.stalls import MAKING, Loading, read_loading
from tracekit.watched.causes import Explanation, explain, explanation_of, sentence
from tracekit.watched.record import STEPS, UNKNOWN, Cause, Facts, Flag, Minute, Record, Step
from tracekit.watched.usual import TYPICAL_STEPS, typical

ENDING = ".watch"
OLDEST_NS, NEWEST_NS = 946_684_800_000_000_000, 4_102_444_800_000_000_000  # of the years 2000 and 2100, unix ns
LONGEST_NS = 30 * 86_400_000_000_000  # of a step: 30 days
MOST = 1 << 48  # of anything that is counted
MOST_RANKS = 1 << 20
LEAST_STEPS = 16  # that say what is usual
ENTRIES_SLACK = STEPS  # steps between the middle one that is left and any other
TAKEN_TRACE = re.compile(r"(?P<stem>.+)-step(?P<step>\d{1,15})-(?P<reason>[a-z0-9-]+)\.pt\.trace\.json(?:\.gz)?")
_LOADER = re.compile(r"loader-\d{1,10}-\d{1,20}")  # the folder of its workers' records
_KNOWN_FLAGS = Flag.SLOW | Flag.TRACED | Flag.APART | Flag.TRIGGERED | Flag.PERIODIC
# Causes that lie in the rank itself. One that waits for another is off the processor; with a GPU, it is mostly busy
# asking whether the GPU is done. So the other way of being late is the rank's own, too.
_OWN = frozenset({Cause.BATCH, Cause.COMPILATION, Cause.COLLECTION, Cause.MEMORY, Cause.LARGER, Cause.QUEUED})


class TakenTrace(Struct, frozen=True):
    """A trace that the watch took."""

    path: Path
    after: int  # the number of the step that triggered it
    reason: str  # as in its name: "slow-batch", "trend", "signal"


class LateBatch(Struct, frozen=True):
    """The batch that a step waited for, as its worker recorded it."""

    worker: int
    making_ns: int
    place: Place | None  # at which the worker was longest while it made the batch
    place_ns: int


class SlowStep(Struct, frozen=True):
    """A slow step, or the one at which a trend was told."""

    step: Step
    explanation: Explanation
    sentence: str  # why it was slow
    late_rank: int | None = None  # where it waited for another rank
    late_batch: LateBatch | None = None  # where a worker made its batch for too long, and recorded it


class OfRank(Struct, frozen=True, dict=True):
    """What one record tells."""

    path: Path
    facts: Facts
    steps: list[Step]  # the last ones, by number
    slow: list[
        Step
    ]  # those that are slow, periodic ones not among them, and those at which a trend was told; by number
    minutes: list[Minute]
    left_out: int  # entries that no watch can have written
    had_more_slow: bool = False  # than are left

    @cached_property
    def alike(self) -> list[Step]:
        """The last steps, without those that were traced or are not only steps."""
        return [step for step in self.steps if step.step_ns != UNKNOWN and not step.flags & (Flag.TRACED | Flag.APART)]

    @property
    def number_of_slow(self) -> int:
        """How many slow steps are left."""
        return sum(step.cause is not Cause.TREND for step in self.slow)

    @cached_property
    def typical(self) -> Step | None:
        """The medians of the last steps; None where there are none."""
        return typical(self.alike) if self.alike else None

    @cached_property
    def by_number(self) -> dict[int, Step]:
        """All steps that are left, by number."""
        return {step.number: step for step in (*self.slow, *self.steps)}

    def usual_around(self, number: int) -> Step | None:
        """The medians of the steps before that one, as far as they are left; otherwise of the last ones."""
        end = bisect_left(self.alike, number, key=lambda step: step.number)
        before = self.alike[max(end - TYPICAL_STEPS, 0) : end]
        return typical(before) if len(before) >= LEAST_STEPS else self.typical

    @property
    def loader_folder(self) -> Path | None:
        """The folder in which the workers of its loaders recorded themselves; None if none did."""
        return self.path.parent / self.facts.loader if _LOADER.fullmatch(self.facts.loader) else None

    @cached_property
    def loading(self) -> Loading | None:
        """What the workers of its loaders recorded; None if nothing was."""
        return read_loading(self.loader_folder) if self.loader_folder is not None else None

    def late_batch(self, step: Step) -> LateBatch | None:
        """The batch that the step waited for longest; None unless its making took most of that wait."""
        if self.loading is None:
            return None
        stalls = self.loading.stalls([(step.began_ns, step.began_ns + step.host_ns)])
        longest = max(stalls, key=lambda stall: stall.waited_ns, default=None)
        if longest is None or longest.batch is None:
            return None
        if 2 * sum(longest.parts.get(part, 0) for part in MAKING) < longest.waited_ns:
            return None
        lines = self.loading.workers[longest.request.process].lines([longest.batch])
        ((place, place_ns),) = lines.most_common(1) or ((None, 0),)
        return LateBatch(longest.worker, longest.batch.made_ns - longest.batch.began_ns, place, place_ns)

    def explained(self, step: Step) -> Explanation:
        """Why that step was slow, as the watch found when it ended."""
        usual = self.usual_around(step.number)
        if usual is None:
            return Explanation(step.cause, 0, 0)
        is_told = step.cause or step.flags & Flag.SLOW  # of a periodic step, the watch says none
        return explanation_of(step.cause, step, usual) if is_told else explain(step, usual)


class Watched(Struct, frozen=True, dict=True):
    """The record with the lowest rank of the job that began last."""

    folder: Path
    shown: OfRank
    others: list[OfRank]  # of the other ranks of its job, by rank
    traces: list[TakenTrace]  # of all these ranks, by step
    earlier: int  # records of earlier jobs
    unreadable: dict[Path, BadWatchError]

    @property
    def facts(self) -> Facts:
        """What is watched."""
        return self.shown.facts

    @property
    def number_of_steps(self) -> int:
        """How many steps were watched so far."""
        lasts = [*self.shown.steps[-1:], *self.shown.slow[-1:]]
        return max((step.number for step in lasts), default=-1) + 1

    @property
    def lasted_ns(self) -> int:
        """From the beginning to the end of the last step."""
        ends = [step.began_ns + step.host_ns for step in self.shown.steps[-1:]]
        return max([0, *(end - self.facts.began_ns for end in ends)])

    @cached_property
    def slow(self) -> list[SlowStep]:
        """The slow steps that are left, each with its cause, by number."""
        return [self._explained(step) for step in self.shown.slow]

    @cached_property
    def periodic(self) -> list[SlowStep]:
        """The last steps that would be slow, but come at one interval; each with its cause, by number."""
        return [self._explained(step) for step in self.shown.steps if step.flags & Flag.PERIODIC]

    def _explained(self, step: Step) -> SlowStep:
        explanation = self.shown.explained(step)
        usual = self.shown.usual_around(step.number) or step
        if explanation.cause is Cause.TREND:
            return SlowStep(step, explanation, self._trend(step, usual))
        own = _OWN | {Cause.OFF_PROCESSOR if _on_gpu(self.facts) else Cause.LONGER_WORK}
        if explanation.cause not in own:
            for other in self.others:
                there = other.by_number.get(step.number)
                why = other.explained(there) if there is not None and there.flags & Flag.SLOW else None
                if there is not None and why is not None and why.cause in own:
                    told = sentence(there, other.usual_around(there.number) or there, why, _on_gpu(other.facts))
                    late = Explanation(Cause.RANK, min(why.explained_ns, explanation.beyond_ns), explanation.beyond_ns)
                    text = f"Rank {other.facts.rank} came late. {told}"
                    return SlowStep(step, late, text, other.facts.rank)
        late_batch = self.shown.late_batch(step) if explanation.cause is Cause.BATCH else None
        told = sentence(step, usual, explanation, _on_gpu(self.facts))
        return SlowStep(step, explanation, told, late_batch=late_batch)

    def _trend(self, step: Step, usual: Step) -> str:
        """From which to which duration steps have become longer, as far back as single steps are left, and why."""
        earlier = [one for one in self.shown.alike[:TYPICAL_STEPS] if one.number < step.number]
        before = typical(earlier) if len(earlier) >= LEAST_STEPS else usual
        if usual.step_ns <= before.step_ns:
            return "steps had become longer."
        why = explain(usual._replace(usual_ns=UNKNOWN), before)
        told = sentence(usual, before, why, _on_gpu(self.facts))
        return f"steps had become longer, from {duration(before.step_ns)} to {duration(usual.step_ns)}. {told}"

    def trace_after(self, number: int) -> TakenTrace | None:
        """The trace that this step triggered."""
        return next((trace for trace in self.traces if trace.after == number), None)


def is_watch(path: Path) -> bool:
    """Whether the path is a record, or a folder with records in it."""
    if path.name.endswith(ENDING):
        return os.path.isfile(path)
    try:
        return os.path.isdir(path) and any(entry.name.endswith(ENDING) for entry in os.scandir(path))
    except OSError:
        return False


def read_watch(path: Path) -> Watched:
    """Read a record, or of a folder the newest one; with those of the other ranks beside it. Raises BadWatchError."""
    folder = path if os.path.isdir(path) else path.parent
    records: list[OfRank] = []
    unreadable: dict[Path, BadWatchError] = {}
    # A folder may let its files be read, but not be listed; and records may go while they are looked for.
    files = {*folder.glob(f"*{ENDING}")} | ({path} if path != folder else set())
    for file in sorted(files):
        try:
            records.append(_read(file))
        except BadWatchError as error:
            if file == path:
                raise
            unreadable[file] = error
    if not records:
        raise next(iter(unreadable.values()), BadWatchError(path, "it has no record"))
    chosen = next((record for record in records if record.path == path), None)
    newest = chosen or max(records, key=lambda record: record.facts.began_ns)
    job = {newest.facts.rank: newest}
    for record in sorted(records, key=lambda record: -record.facts.began_ns):
        if newest.facts.job and record.facts.job == newest.facts.job and record.facts.ranks == newest.facts.ranks:
            job.setdefault(record.facts.rank, record)
    shown = chosen or job[min(job)]
    others = [record for _, record in sorted(job.items()) if record is not shown]
    stems = {record.path.name.removesuffix(ENDING) for record in (shown, *others)}
    earlier = sum(record.facts.began_ns < newest.facts.began_ns for record in records if record not in job.values())
    return Watched(folder, shown, others, _traces(folder, stems), earlier, unreadable)


def _traces(folder: Path, stems: set[str]) -> list[TakenTrace]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:  # they cannot be listed
        return []
    matches = ((path, TAKEN_TRACE.fullmatch(path.name)) for path in paths)
    taken = [
        TakenTrace(path, int(match["step"]), match["reason"])
        for path, match in matches
        if match is not None and match["stem"] in stems
    ]
    return sorted(taken, key=lambda trace: (trace.after, trace.path.name))


def _read(path: Path) -> OfRank:
    record, filter_ = Record.open(path), disclosure.current()
    try:
        facts = record.facts
        is_sound = OLDEST_NS < facts.began_ns < NEWEST_NS and 0 <= facts.rank < facts.ranks <= MOST_RANKS
        if not is_sound or not 0 <= facts.process < MOST:
            raise BadWatchError(path, "its facts are none that a watch writes")
        steps, slow, minutes = record.steps.entries(), record.slow.entries(), record.minutes.entries()
        had_more_slow = record.slow.count > len(slow)
    finally:
        record.close()
    sound = _near(_sound_steps(steps))
    last = max((step.number for step in sound), default=MOST)
    kept_slow = [step for step in _sound_steps(slow) if step.number <= last]
    kept_minutes = [minute for minute in minutes if _is_sound_minute(minute, last)]
    left_out = len(steps) + len(slow) + len(minutes) - len(sound) - len(kept_slow) - len(kept_minutes)
    told = {step.number: step for step in (*sound, *kept_slow) if step.flags & Flag.SLOW or step.cause is Cause.TREND}
    by_number = {step.number: step for step in sound}
    return OfRank(
        path,
        filter_.watched(facts) if filter_ is not None else facts,
        [by_number[number] for number in sorted(by_number)],
        [told[number] for number in sorted(told)],
        sorted(kept_minutes, key=lambda minute: minute.first),
        left_out,
        had_more_slow,
    )


def _sound_steps(steps: Iterable[Step]) -> list[Step]:
    """Those that a watch can have written, with flags and causes by their names."""
    return [
        step._replace(flags=Flag(step.flags & _KNOWN_FLAGS), cause=Cause(step.cause))
        for step in steps
        if _is_sound(step)
    ]


def _is_sound(step: Step) -> bool:
    times = (
        *(step.step_ns, step.host_ns, step.waited_ns, step.compile_ns, step.collect_ns, step.processor_ns),
        *(step.queued_ns, step.usual_ns, step.limit_ns),
    )
    counts = (step.batches, step.compiles, step.collections, step.retries, step.peak_bytes, step.nodes, step.edges)
    return (
        0 <= step.number < MOST
        and OLDEST_NS < step.began_ns < NEWEST_NS
        and all(UNKNOWN <= ns <= LONGEST_NS for ns in times)
        and all(UNKNOWN <= count < MOST for count in (*counts, step.worker))
        and step.host_ns >= 0
        and 0 <= step.flags <= _KNOWN_FLAGS
        and 0 <= step.cause <= max(Cause)
    )


def _near(steps: Sequence[Step]) -> list[Step]:
    """Those whose number is near that of most: a ring holds steps in a row."""
    middle = median_low(step.number for step in steps) if steps else 0
    return [step for step in steps if abs(step.number - middle) <= ENTRIES_SLACK]


def _is_sound_minute(minute: Minute, last: int) -> bool:
    return (
        OLDEST_NS < minute.began_ns < NEWEST_NS
        and 0 <= minute.first <= minute.most_number <= last
        and 0 <= minute.slow <= minute.steps <= MOST
        and 0 <= minute.least_ns <= minute.median_ns <= minute.most_ns <= LONGEST_NS
        and 0 <= minute.waited_ns <= LONGEST_NS
        and 0 <= minute.compile_ns <= LONGEST_NS
    )


def _on_gpu(facts: Facts) -> bool:
    return facts.device != "cpu"
