"""On what did the work run? The profiler lists the devices; a run knows its processor, too."""

from collections.abc import Iterator

from tracekit.profile.profile import Profile


def device_name(profile: Profile) -> str | None:
    """`NVIDIA A100-SXM4-40GB`, several names where devices differ; None where nothing says it."""
    names = [*dict.fromkeys(_names(profile))]
    return ", ".join(names) or None


def _names(profile: Profile) -> Iterator[str]:
    if profile.trace.device == "gpu":
        listed = profile.trace.meta.get("deviceProperties")
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                yield each["name"]
        return
    environment = profile.run.environment if profile.run is not None else {}
    if isinstance(name := environment.get("cpu"), str):
        yield name
