"""What did the work run on? The profiler lists the devices; a run also knows its processor."""

from collections.abc import Iterator

from tracekit.profile.profile import Profile
from tracekit.profile.subject import Member, Untraced


def device_name(member: Member) -> str | None:
    """`NVIDIA A100-SXM4-40GB`, several names if devices differ; None if unknown."""
    names = [*dict.fromkeys(_names(member))]
    return ", ".join(names) or None


def _names(member: Member) -> Iterator[str]:
    if isinstance(member, Profile) and member.trace.device == "gpu":
        yield from (each["name"] for each in member.trace.gpus if isinstance(each.get("name"), str))
        return
    if isinstance(member, Untraced) and (member.run is None or member.run.device != "cpu"):
        return
    environment = member.run.environment if member.run is not None else {}
    if isinstance(name := environment.get("cpu"), str):
        yield name
