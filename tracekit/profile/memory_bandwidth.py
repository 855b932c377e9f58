"""What is the peak bandwidth of a GPU's memory? The profiler does not say; data sheets do.

GB/s by name, as `deviceProperties` spells it, from the vendors' data sheets and the specifications on the products'
pages (nvidia.com/en-us/data-center, nvidia.com/en-us/geforce, amd.com/en/products/accelerators/instinct), with the
white papers of Volta, Ampere, Hopper, Ada, Blackwell and CDNA 1 to 4. The first pattern that matches decides; where
none does, the bandwidth is unknown.
"""

import re

from tracekit.trace import Trace

_GB = 1_000_000_000
_PEAKS = [
    (re.compile(pattern), peak * _GB)
    for pattern, peak in (
        (r"\bB[23]00\b", 8000.0),
        (r"\bGH200.*144|\bGH200.*HBM3e", 4900.0),
        (r"\bGH200", 4000.0),
        (r"\bH200", 4800.0),
        (r"\bH20\b", 4000.0),
        (r"\bH100 NVL", 3938.0),
        (r"\bH100 PCIe", 2039.0),
        (r"\b[Hh][18]00\b", 3350.0),
        (r"\bA[18]00-SXM\d*-80GB|\bA[18]00-SXM-80GB", 2039.0),
        (r"\bA[18]00 80GB PCIe", 1935.0),
        (r"\bA[18]00-(SXM4|PCIE)-40GB|\bA100-PG509", 1555.0),
        (r"\bV100S", 1134.0),
        (r"\bV100", 900.0),
        (r"\bP100-PCIE-12GB", 549.0),
        (r"\bP100", 732.0),
        (r"\bT4\b", 320.0),
        (r"\bL4\b", 300.0),
        (r"\bL40S?\b", 864.0),
        (r"\bL20\b", 864.0),
        (r"\bA10G?\b", 600.0),
        (r"\bA30\b", 933.0),
        (r"\bA40\b", 696.0),
        (r"\bA2\b", 200.0),
        (r"\bRTX 6000 Ada", 960.0),
        (r"\bRTX A6000", 768.0),
        (r"\bRTX A5000", 768.0),
        (r"\bRTX A4000", 448.0),
        (r"\bQuadro RTX [68]000", 672.0),
        (r"\bTITAN RTX", 672.0),
        (r"\bTITAN V", 653.0),
        (r"\bRTX 5090", 1792.0),
        (r"\bRTX 5080", 960.0),
        (r"\bRTX 5070 Ti", 896.0),
        (r"\bRTX 5070", 672.0),
        (r"\bRTX 5060", 448.0),
        (r"\bRTX 4090", 1008.0),
        (r"\bRTX 4080 SUPER", 736.0),
        (r"\bRTX 4080", 717.0),
        (r"\bRTX 4070 Ti SUPER", 672.0),
        (r"\bRTX 4070", 504.0),
        (r"\bRTX 4060 Ti", 288.0),
        (r"\bRTX 4060", 272.0),
        (r"\bRTX 3090 Ti", 1008.0),
        (r"\bRTX 3090", 936.0),
        (r"\bRTX 3080 Ti", 912.0),
        (r"\bRTX 3080", 760.0),
        (r"\bRTX 3070 Ti", 608.0),
        (r"\bRTX 3070", 448.0),
        (r"\bRTX 3060 Ti", 448.0),
        (r"\bRTX 3060", 360.0),
        (r"\bRTX 2080 Ti", 616.0),
        (r"\bMI355X|\bMI350X", 8000.0),
        (r"\bMI325X", 6000.0),
        (r"\bMI300[AX]", 5300.0),
        (r"\bMI250X?|\bMI210", 1638.0),  # of each of the two dies, which are devices of their own
        (r"\bMI100", 1229.0),
    )
]
_NOT_THE_SAME = re.compile(r"\b(?:Laptop|Mobile|Max-Q|MIG)\b")  # variants that are slower than the model of that name


def memory_bandwidth(trace: Trace) -> tuple[str, float] | None:
    """The GPU of a trace and its memory bandwidth, bytes a second; None if it is not known, or GPUs differ."""
    names = {str(gpu["name"]) for gpu in trace.gpus if "name" in gpu}
    if len(names) != 1 or _NOT_THE_SAME.search(name := names.pop()):
        return None
    peak = next((peak for pattern, peak in _PEAKS if pattern.search(name)), None)
    return (name, peak) if peak is not None else None
