"""Arrow columns as NumPy arrays."""

import pyarrow as pa
import pytest

from tracekit.trace.schema import values


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.float32(), pa.float64()]
)
def test_numbers_of_every_kind_are_read_as_that_kind_and_without_pandas(kind):
    array = pa.array([1, None, 3, 4], kind)
    assert values(array[1:], null=7).tolist() == [7, 3, 4]
    assert values(array.drop_null()).dtype == array.drop_null().to_numpy().dtype
