"""Tables as data frames: exact, with categories, units and meanings."""

import pandas as pd
import pyarrow as pa
from small import training

import tracekit
from tracekit.notebook import _frame
from tracekit.trace.schema import LABEL, column


def test_a_frame_says_units_and_keeps_categories(tmp_path):
    data = tracekit.load(training(tmp_path / "eager.json"))
    frame = data.pandas("events")
    assert isinstance(frame["name"].dtype, pd.CategoricalDtype)
    assert frame.attrs["units"]["dur_ns"] == "ns"
    assert frame.attrs["meanings"]["ts_ns"] == "start"
    assert "name" not in frame.attrs["units"]
    assert frame["dur_ns"].tolist() == data["events"]["dur_ns"].to_pylist()


def test_whole_numbers_with_gaps_stay_whole():
    odd = (1 << 60) + 1  # a float would lose the 1
    schema = pa.schema(
        [column("at_ns", pa.int64(), "when", "ns"), column("ok", pa.bool_(), ""), column("what", LABEL, "")]
    )
    table = pa.Table.from_pylist(
        [{"at_ns": odd, "ok": True, "what": "a"}, {"at_ns": None, "ok": None, "what": None}], schema
    )
    frame = _frame(table)
    assert frame["at_ns"].dtype == pd.Int64Dtype()
    assert frame["at_ns"][0] == odd
    assert frame["at_ns"].isna().tolist() == [False, True]
    assert frame["ok"].dtype == pd.BooleanDtype()
    assert frame["what"].tolist()[0] == "a"
    assert _frame(table.slice(0, 1))["at_ns"].dtype == "int64"
