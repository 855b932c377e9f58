import re
from html import unescape

import pandas as pd
import pyarrow as pa
import pytest
from small import training

import tracekit
from tracekit.errors import TracekitError
from tracekit.faces import html


def test_tables_in_a_notebook(tmp_path):
    data = tracekit.load(training(tmp_path / "eager.json"), training(tmp_path / "compiled.json", python=5))
    assert set(data) >= {"events", "steps", "attribution", "segments", "kernels", "launches", "syncs", "compiles"}
    assert isinstance(data["kernels"], pa.Table)
    frame = data.pandas("attribution")
    assert isinstance(frame, pd.DataFrame)
    assert set(frame["variant"]) == {"eager", "compiled"}
    per_step = frame[frame["view"] == "wall"].groupby(["variant", "step"], observed=True)["dur_ns"].sum()
    assert per_step["eager"].tolist() == data.pandas("steps").query("variant == 'eager'")["wall_ns"].tolist()
    assert "faster than eager" in repr(data)
    assert data.report.comparisons[0].variant == "compiled"
    assert repr(data.report) == repr(data)
    assert "| eager" in data.report._repr_markdown_()
    frame = re.fullmatch(r'<iframe sandbox="allow-scripts" [^>]*srcdoc="([^"]*)"></iframe>', data.report._repr_html_())
    assert unescape(frame[1]) == html.render(data.report)


def test_segments_cover_the_window_without_holes(tmp_path):
    data = tracekit.load(training(tmp_path / "eager.json"))
    for _, view in data.pandas("segments").groupby("view", observed=True):
        ends = view["start_ns"] + view["dur_ns"]
        assert (view["start_ns"].to_numpy()[1:] == ends.to_numpy()[:-1]).all()
        assert (view["dur_ns"] > 0).all()


def test_public_names():
    assert all(getattr(tracekit, name).__doc__ for name in tracekit.__all__)


def test_what_is_asked_wrongly_is_answered_with_what_there_is(tmp_path):
    for given in ((), ([],), (None,), (5,)):
        with pytest.raises(TypeError, match="load takes paths"):
            tracekit.load(*given)
    with pytest.raises(TracekitError, match="File name too long"):
        tracekit.load("x" * 5000)
    data = tracekit.load(training(tmp_path / "eager.json"))
    with pytest.raises(KeyError, match="Available: events"):
        data["nope"]
    assert "nope" not in data


def test_a_file_name_that_is_no_text_is_spelled_out(tmp_path):
    path = training(tmp_path / "t.json", steps=2)
    odd = path.rename(path.with_name(b"caf\xe9.json".decode("utf-8", "surrogateescape")))
    assert tracekit.load(odd).pandas("steps")["variant"].unique().tolist() == [r"caf\xe9"]
