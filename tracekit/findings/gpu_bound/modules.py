"""For which classes of module does the GPU work? Known if there is a recording with stacks."""

import re

from tracekit.lines.means import Owner
from tracekit.profile import Profile
from tracekit.units import percent

_WORK = ("gpu_compute", "gpu_copy")
_NUMBER = re.compile(r"_\d+$")  # of the instance: Linear_3
_NAMED, _LEAST = 2, 0.1  # modules that are named, and the least share of the work


def modules(profile: Profile) -> dict[str, float]:
    """The share of each class of innermost module in the GPU's work, the largest first."""
    times = profile.owner_means.by("wall", _innermost, lambda mean: mean.bucket in _WORK)
    total = sum(times.values())
    shares = {name: time / total for name, time in times.items() if name and time}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def sentence(profile: Profile) -> str:
    """The largest in words: `by module: Linear 61.0 %, GELU 12.5 %`."""
    largest = [*modules(profile).items()][:_NAMED]
    listed = ", ".join(f"{name} {percent(share)}" for name, share in largest if share >= _LEAST)
    return f"by module: {listed}" if listed else ""


def _innermost(owner: Owner) -> str:
    return _NUMBER.sub("", owner.module[-1]) if owner.module else ""
