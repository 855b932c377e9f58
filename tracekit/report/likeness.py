"""Do two traces that are compared do the same work? Where they plainly do not, their times are no comparison."""

from collections.abc import Iterator

import msgspec

from tracekit.analyses import summary
from tracekit.kernel_class import kernel_class
from tracekit.profile import Member, Profile
from tracekit.profile.cache_names import name_of
from tracekit.profile.device import device_name
from tracekit.profile.kernel_time import kernel_times, summed
from tracekit.sanitize import sanitize
from tracekit.trace.rereading.arguments import BYTES_OF_TYPE
from tracekit.trace.storing.results import recall, remember
from tracekit.units import percent

# Kinds of work that no compiler adds or removes; attention that is not fused consists of matrix products.
_KINDS = {
    "convolution": "convolutions",
    "matmul": "matrix products",
    "attention": "matrix products",
    "recurrent": "recurrent layers",
    "sparse": "sparse products",
    "embedding": "embeddings",
}
_LARGE_SHARE = 0.2  # of the work: where one side has so much of a kind and the other has none, they do different work
_PRODUCTS = ("matmul", "convolution")
_MIN_SIZES = 3  # sizes of operands on either side, to say that the sides have none in common
_MAX_REASONS = 2  # reasons that a sentence carries


class Work(msgspec.Struct, frozen=True):
    """What a step does: figures by which two traces are told apart."""

    device: str
    shares: dict[str, float]  # of each of these kinds in the time of kernels, or of operators on a CPU
    sizes: set[tuple[int, ...]]  # of what one step multiplies, in any order of dimensions, where recorded
    types: set[str]  # of the same


def unlike(member: Member, base: Member) -> str:
    """A sentence, after a space, if the two did different work, or the same on another device or in another type.

    Variants of one run are of one program: what differs there was asked for.
    """
    if member.run is not None and member.run is base.run:
        return ""
    (name, device), (base_name, other_device) = ((sanitize(side.name), device_name(side)) for side in (member, base))
    same_program = member.run is not None and base.run is not None and member.run.recipe == base.run.recipe
    types: list[set[str]] = []
    if isinstance(member, Profile) and isinstance(base, Profile) and not same_program:
        work, base_work = known_work(member), known_work(base)
        reasons = [*_differences(member.name, work, base.name, base_work)]
        if min(len(work.sizes), len(base_work.sizes)) >= _MIN_SIZES and work.sizes.isdisjoint(base_work.sizes):
            reasons.append("no operand of their matrix products and convolutions has the same size")
        if reasons:
            return f" This is hardly a comparison: {'; '.join(reasons[:_MAX_REASONS])}."
        types = [work.types, base_work.types]
    if device and other_device and device != other_device:
        return f" They ran on different devices: {name} on {sanitize(device)}, {base_name} on {sanitize(other_device)}."
    if all(types) and types and types[0].isdisjoint(types[1]):
        type_texts = [" and ".join(sorted(side_types)) for side_types in types]
        return f" They compute with different types: {name} multiplies {type_texts[0]}, {base_name} {type_texts[1]}."
    return ""


def known_work(profile: Profile) -> Work:
    """What a step of the variant does; from the cache where the same code worked it out."""
    entry = profile.trace.entry
    modules = __name__, "tracekit.profile.kernel_time", "tracekit.profile.sample", "tracekit.analyses.operators"
    name = name_of(profile, "work", *modules) if entry is not None else ""
    if (work := recall(entry, name, Work)) is None:
        work = Work(profile.trace.device, _shares(profile), *_operands(profile))
        remember(entry, name, work)
    return work


def _differences(name: str, work: Work, base_name: str, base_work: Work) -> Iterator[str]:
    if work.device != base_work.device:
        yield f"one computes on a {work.device.upper()}, the other on a {base_work.device.upper()}"
        return
    for kind in dict.fromkeys(_KINDS.values()) if work.shares and base_work.shares else ():
        for richer_name, richer, poorer_name, poorer in (
            (name, work, base_name, base_work),
            (base_name, base_work, name, work),
        ):
            if richer.shares.get(kind, 0.0) >= _LARGE_SHARE and kind not in poorer.shares:
                share = f"{percent(richer.shares[kind])} of {sanitize(richer_name)}'s work is {kind}"
                yield f"{share}, and {sanitize(poorer_name)} has none"


def _shares(profile: Profile) -> dict[str, float]:
    if profile.trace.device == "gpu":
        work = summed(kernel_times(profile), "label")
    else:
        work = {}
        for row in summary(profile, "operators").table.select(["class", "step_ns"]).to_pylist():
            work[row["class"]] = work.get(row["class"], 0.0) + row["step_ns"]
    total = sum(work.values())
    shares: dict[str, float] = {}
    for kind, name in _KINDS.items():
        if work.get(kind):
            shares[name] = shares.get(name, 0.0) + work[kind] / total
    return shares


def _operands(profile: Profile) -> tuple[set[tuple[int, ...]], set[str]]:
    sizes, types = set(), set()
    for row, operator in profile.sample.known.items():
        if kernel_class("", profile.trace.names[profile.trace.name_codes[row]]) in _PRODUCTS:
            sizes |= {tuple(sorted(dims)) for dims in operator.inputs or () if len(dims) > 1}
            types |= {type_name.removeprefix("c10::") for type_name in operator.types if type_name in BYTES_OF_TYPE}
    return sizes, types
