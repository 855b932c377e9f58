"""What are the sizes of the operands of matrix products and convolutions? Known where the trace has shapes."""

import numpy as np

from tracekit.intervals import Ints
from tracekit.kernel_class import kernel_class
from tracekit.profile import Profile
from tracekit.trace.rereading.arguments import Arguments

_PRODUCTS = ("matmul", "convolution")
_OPERANDS = 3  # what is added, or a gradient, comes before or after the operands; strides and the like come later


def sizes_of(profile: Profile, rows: Ints) -> str:
    """` (operands 5185×1024 and 1024×1024)`, to end a clause: those that take most time; empty without shapes."""
    trace, sample = profile.trace, profile.sample
    times: dict[str, int] = {}
    asked = np.isin(sample.kernels, rows)
    for row, operator in zip(sample.kernels[asked].tolist(), sample.operators[asked].tolist(), strict=True):
        arguments = sample.known.get(operator)
        if arguments is None or kernel_class("", trace.names[trace.name_codes[operator]]) not in _PRODUCTS:
            continue
        if sizes := _operands(arguments):
            times[sizes] = times.get(sizes, 0) + int(trace.dur_ns[row])
    return f" (operands {max(times, key=lambda each: times[each])})" if times else ""


def _operands(arguments: Arguments) -> str:
    matrices = [dims for dims in (arguments.inputs or [])[:_OPERANDS] if len(dims) > 1][-2:]
    return " and ".join("×".join(map(str, dims)) for dims in matrices) if len(matrices) == 2 else ""
