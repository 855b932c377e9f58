"""What are the sizes of the operands of matrix products and convolutions? Known where the trace has shapes."""

import numpy as np

from tracekit.intervals import Ints
from tracekit.kernel_class import kernel_class
from tracekit.profile import Profile
from tracekit.trace.rereading.arguments import Arguments

_PRODUCTS = ("matmul", "convolution")
_INPUTS = 3  # matrices among the first inputs are operands, what is added, a gradient or, in the end, the result


def sizes_of(profile: Profile, rows: Ints) -> str:
    """` (operands 5185×1024 and 1024×1024)`, to end a clause: those that take most time; empty without shapes."""
    trace, sample = profile.trace, profile.sample
    times: dict[str, int] = {}
    asked = np.isin(sample.kernels, rows)
    for row, operator in zip(sample.kernels[asked].tolist(), sample.operators[asked].tolist(), strict=True):
        arguments = sample.known.get(operator)
        name = trace.names[trace.name_codes[operator]]
        if arguments is None or kernel_class("", name) not in _PRODUCTS:
            continue
        if sizes := _operands(name, arguments):
            times[sizes] = times.get(sizes, 0) + int(trace.dur_ns[row])
    return f" (operands {max(times, key=lambda each: times[each])})" if times else ""


def _operands(name: str, arguments: Arguments) -> str:
    matrices = [dims for dims in (arguments.inputs or [])[:_INPUTS] if len(dims) > 1]
    after_another = "add" in name or "backward" in name  # what is added and the gradient come before the operands
    operands = matrices[-2:] if after_another else matrices[:2]
    return " and ".join("×".join(map(str, dims)) for dims in operands) if len(operands) == 2 else ""
