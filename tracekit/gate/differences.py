"""Did the two runs of a check run the same thing? If not, the outcomes may be misleading."""

from collections.abc import Iterator

from tracekit.gate.against import pairs
from tracekit.profile import Member, Subject
from tracekit.report.conditions import different_things


def differences(new: Subject, old: Subject) -> list[str]:
    """A sentence for each of recipe, parameters, data, device and threads in which a variant differs from the earlier
    one."""
    names_by_sentence: dict[str, list[str]] = {}
    for before, after in pairs(new, old):
        if after is not None:
            for aspect, now, earlier in _differing(after, before):
                names_by_sentence.setdefault(
                    f"a different {aspect} than in the earlier run ({now}; {earlier})", []
                ).append(before.name)
    return [
        f"{', '.join(names)}: {text}: that alone may make it slower or faster"
        for text, names in names_by_sentence.items()
    ]


def _differing(after: Member, before: Member) -> Iterator[tuple[str, str, str]]:
    changes = [*different_things(after, before)]
    threads, earlier_threads = (
        member.run.environment.get("threads") if member.run else None for member in (after, before)
    )
    if threads and earlier_threads and threads != earlier_threads:
        changes.append(("number of threads", str(threads), str(earlier_threads)))
    yield from changes
    if any(aspect == "recipe" for aspect, _, _ in changes):
        return  # their parameters cannot be compared
    params_after, params_before = _params(after), _params(before)
    if differing := [
        key for key in {**params_after, **params_before} if params_after.get(key) != params_before.get(key)
    ]:
        now, earlier = (
            ", ".join(f"{key}={params.get(key, 'none')}" for key in differing)
            for params in (params_after, params_before)
        )
        yield "set of parameters", now, earlier


def _params(member: Member) -> dict[str, object]:
    """The parameters of its run together with its own."""
    run = member.run.params if member.run is not None else {}
    return {**run, **(member.variant.params if member.variant is not None else {})}
