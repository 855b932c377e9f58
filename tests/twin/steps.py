"""When each step was issued, began and was done (§7), and which steps the trace cannot answer for (§6, last part)."""

from __future__ import annotations

from dataclasses import dataclass

from .events import STEP, Event


@dataclass(slots=True)
class Step:
    """A step: issued over [s, e), its work begins at `begin` and is done at `done` (§7)."""

    number: int
    s: int
    e: int
    begin: int = 0
    done: int = 0


def find_steps(
    hosts: list[Event], main: tuple[str, str] | None, gpu: list[Event], launch_of: dict[Event, Event]
) -> list[Step]:
    """The steps in order, each with its beginning and its end."""
    steps = []
    for event in hosts:
        number = STEP.fullmatch(event.name)
        if event.thread == main and event.kind == "annotation" and number:
            steps.append(Step(int(number[1]), event.start, event.end))
    bare = not steps
    if bare:  # the whole trace is step 0; zero-length events bound nothing
        lasting = [e for e in [*hosts, *gpu] if e.lasts]
        if not lasting:
            return []
        steps = [Step(0, min(e.start for e in lasting), max(e.end for e in lasting))]
    steps.sort(key=lambda step: (step.s, step.e, step.number))

    first = steps[0].s
    backlog = []
    if not bare:
        numbers = [e.correlation for e in hosts if e.kind == "runtime" and e.correlation is not None]
        for activity in gpu:
            call = launch_of.get(activity)
            if call is not None:
                queued_before = call.start < first
            else:
                queued_before = activity.correlation is not None and all(
                    activity.correlation < number for number in numbers
                )
            if queued_before and activity.lasts:
                backlog.append(activity.end)
    done = max(backlog, default=first)  # F_0

    for i, step in enumerate(steps):
        start, end = step_time(steps, i)
        work = [a.end for a, call in launch_of.items() if a.lasts and start <= call.start < end]
        step.begin = max(step.s, done)
        step.done = done = max(step.e, done, *work)
    return steps


def step_time(steps: list[Step], i: int) -> tuple[int, int]:
    """[S_i, S_(i+1)), for the last step [S_i, E_i)."""
    return steps[i].s, steps[i + 1].s if i + 1 < len(steps) else steps[i].e


def no_wall_view(
    known: list[Event], steps: list[Step], gpu: bool, two_clocks: bool, launch_of: dict[Event, Event]
) -> str | None:
    """The reason why the trace has no wall view, if it has none (§6, last part)."""
    launching = {e.thread[0] for e in known if e.launch}
    if not gpu and launching:
        return "launch calls, and no GPU activity"
    if not gpu and any(e.kind == "other_device" for e in known):
        return "another kind of device"
    if len(launching) > 1:
        return "several processes make launch calls"
    if two_clocks:
        return "two clocks"
    if gpu and not any(
        step_time(steps, i)[0] <= call.start < step_time(steps, i)[1]
        for call in launch_of.values()
        for i in range(len(steps))
    ):
        return "the launch of no GPU activity is in a step"
    return None


def step_is_known(hosts: list[Event], time: tuple[int, int], launch_of: dict[Event, Event]) -> bool:
    """False if launch calls start in the step's time, but none of them is the launch of a GPU activity (§6)."""
    submits = any(e.launch and time[0] <= e.start < time[1] for e in hosts)
    return not submits or any(time[0] <= call.start < time[1] for call in launch_of.values())
