"""What a line of source costs, as written in the margin beside it."""

from tracekit.report.blocks import Excerpt
from tracekit.units import duration


def margins(block: Excerpt, number: int) -> list[str]:
    """For each variant, `65.4 ms`, `+ 31.5 ms` in kernels shared with other lines, both, or nothing."""
    return [
        _margin(line_costs.get(number), block.fused.get(name, {}).get(number))
        for name, line_costs in block.costs.items()
    ]


def _margin(alone: float | None, fused: float | None) -> str:
    parts = [duration(alone) if alone is not None else "", f"+ {duration(fused)}" if fused is not None else ""]
    return " ".join(filter(None, parts))
