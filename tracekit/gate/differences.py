"""Did the two runs of a check run the same thing? If not, the outcomes may be misleading."""

from collections.abc import Iterator

from tracekit.gate.against import pairs
from tracekit.profile import Member, Subject
from tracekit.report.conditions import different_things


def differences(new: Subject, old: Subject) -> list[str]:
    """A sentence for each of recipe, parameters, data, device and threads in which a variant differs from the earlier
    one."""
    said: dict[str, list[str]] = {}
    for before, after in pairs(new, old):
        if after is not None:
            for what, now, earlier in _differing(after, before):
                said.setdefault(f"a different {what} than in the earlier run ({now}; {earlier})", []).append(
                    before.name
                )
    return [f"{', '.join(names)}: {text}: that alone may make it slower or faster" for text, names in said.items()]


def _differing(after: Member, before: Member) -> Iterator[tuple[str, str, str]]:
    others = [*different_things(after, before)]
    threads, earlier_threads = (of.run.environment.get("threads") if of.run else None for of in (after, before))
    if threads and earlier_threads and threads != earlier_threads:
        others.append(("number of threads", str(threads), str(earlier_threads)))
    yield from others
    if any(what == "recipe" for what, _, _ in others):
        return  # their parameters cannot be compared
    ours, theirs = _params(after), _params(before)
    if differing := [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]:
        now, earlier = (", ".join(f"{key}={of.get(key, 'none')}" for key in differing) for of in (ours, theirs))
        yield "set of parameters", now, earlier


def _params(member: Member) -> dict[str, object]:
    """The parameters of its run together with its own."""
    run = member.run.params if member.run is not None else {}
    return {**run, **(member.variant.params if member.variant is not None else {})}
