"""How many bytes must an operator that gathers or scatters rows move, judging by the shapes of its inputs?

Each number that it reads or writes counts once, so this is the least: data that no cache holds is moved more often, and
scattering by atomic operations reads what it writes.
"""

import math

from tracekit.trace.rereading.arguments import BYTES_OF_TYPE, Arguments

GATHERS = ("aten::index_select", "aten::gather", "aten::index")
SCATTERS = (
    "aten::scatter_add_",
    "aten::scatter_add",
    "aten::index_add_",
    "aten::scatter_reduce",
    "aten::scatter_reduce_",
    "aten::index_put_",
    "aten::_index_put_impl_",
)
SEGMENTS = (
    "aten::segment_reduce",
    "torch_scatter::segment_sum_csr",
    "torch_scatter::segment_mean_csr",
    "torch_scatter::segment_max_csr",
    "torch_scatter::gather_csr",
    "aten::_sparse_mm",
    "aten::_sparse_mm_reduce_impl",
    "aten::_sparse_addmm",
    "torch_sparse::spmm_sum",
    "torch_sparse::spmm_mean",
    "pyg::segment_matmul",
    "pyg::spmm",
)
_WITH_ROWS = SCATTERS[:5]  # self, dimension, index and the rows


def kind_of(operator: str) -> str:
    """`gather`, `scatter`, or `segment` (along sorted edges); None for an operator that moves no rows."""
    for kind, names in (("gather", GATHERS), ("scatter", SCATTERS), ("segment", SEGMENTS)):
        if operator in names:
            return kind
    return ""


def least_bytes(operator: str, arguments: Arguments) -> int | None:
    """The fewest bytes that the operator must move; None if shapes or types are unknown."""
    inputs, types = arguments.inputs, arguments.types
    if inputs is None or len(inputs) != len(types) or not inputs or not inputs[0]:
        return None
    size = BYTES_OF_TYPE.get(types[0])
    if size is None:
        return None
    if operator == "aten::index_select":
        return _gathered(inputs[0], inputs[2], size, types[2]) if len(inputs) > 2 else None
    if operator == "aten::gather":
        return 2 * math.prod(inputs[2]) * size if len(inputs) > 2 and inputs[2] else None
    if operator in _WITH_ROWS:
        return _scattered(inputs[0], inputs[3], inputs[2], size) if len(inputs) > 3 and inputs[3] else None
    return None


def _gathered(table: tuple[int, ...], index: tuple[int, ...], size: int, kind: str) -> int | None:
    """Rows of a table, read and written once each, and the index."""
    if not index or not table[0]:
        return None
    rows = math.prod(index)
    return 2 * rows * math.prod(table[1:]) * size + rows * BYTES_OF_TYPE.get(kind, 8)


def _scattered(target: tuple[int, ...], source: tuple[int, ...], index: tuple[int, ...], size: int) -> int:
    """Rows that are read once, the target, read and written, and an entry of the index for each row."""
    rows = index[0] if index else 0
    return (math.prod(source) + 2 * math.prod(target)) * size + 8 * rows
