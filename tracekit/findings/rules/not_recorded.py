"""Is a whole side of the work missing from the recording?"""

from collections.abc import Iterator

from tracekit.findings import Finding, rule
from tracekit.profile import Profile
from tracekit.trace.roles import OTHER_DEVICE

_LINK = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.profile"


@rule("not_recorded")
def not_recorded(profile: Profile) -> Iterator[Finding]:
    """`empty`, `host_side_missing` or `gpu_side_missing`: they have no cost, and make all else doubtful."""
    trace = profile.trace
    on_a_device = trace.census.any(lambda roles: roles.launch | (roles.kind == OTHER_DEVICE))
    if not trace.census.any(lambda roles: roles.host | roles.gpu) or not len(trace.steps):
        yield Finding(
            "empty",
            "The trace holds no event that lasts",
            advice="Check that the profiler ran while the steps did: its schedule may have been still waiting.",
            link=_LINK,
        )
    elif trace.threads.main is None:
        yield Finding(
            "host_side_missing",
            "The trace holds GPU work and nothing of the host that submitted it",
            advice="Record with ProfilerActivity.CPU as well: without it nobody can say why the GPU idles.",
            link=_LINK,
        )
    elif trace.device != "gpu" and on_a_device:
        yield Finding(
            "gpu_side_missing",
            "The host submitted work to a device, and the trace shows none of that device's activity",
            advice="Record with ProfilerActivity.CUDA (or that of your device), and warm the profiler up for a step: "
            "what the device did, and whether it idled, cannot be told.",
            link=_LINK,
        )
