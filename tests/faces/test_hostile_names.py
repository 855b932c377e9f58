"""Names from a trace may contain anything; they take effect in no format, and no output grows beyond bounds."""

import csv
import gzip
import json
import os
import re

import openpyxl
import pyarrow.parquet as pq
import pytest
from small import event, kernel, launch, op, step, write

from tests.faces.formats import TEXTS, written
from tests.faces.test_html import Page
from tests.faces.typesetting import typeset, with_pdflatex
from tracekit.faces.perfetto import export, free_pid
from tracekit.faces.shared.explain import explain
from tracekit.plots import plot
from tracekit.profile import open_subject
from tracekit.report import report

HOSTILE = "evil\x1b[31m<script>alert(1)</script>|`[x](y)\"' onload=x \u202e\x07"
FORMULA = '=HYPERLINK("http://evil","x")'
TEX = "\\input{secret}%$#_&^~{}\\end{document} 日本 --"
LONG = "long" * (2_500_000 if os.environ.get("TRACEKIT_VERIFY") else 250_000)  # 10 MB, or 1 MB if time is short
CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    events = [step(1, 0, 100), event("cuda_runtime", "cudaStreamSynchronize", 85, 95)]
    for k, name in enumerate((HOSTILE, FORMULA, TEX, LONG)):
        events += [op(name, 20 * k, 20 * k + 15), launch(20 * k + 1, 20 * k + 5, k + 1)]
        events.append(kernel(name, 20 * k + 6, 20 * k + 18, k + 1))
    path = write(tmp_path_factory.mktemp("hostile") / f"{FORMULA.replace('/', '')}<b>.json", *events)
    return report(open_subject([path]))


def test_facts_and_charts_stay_short(hostile):
    assert len(explain(hostile, 10**9)) < 100_000
    for kind in ("attribution", "steps"):
        assert len(plot(hostile, kind).content("svg")) < 1_000_000


def test_perfetto_shows_names_cut_short_and_keeps_the_events_as_they_were(hostile, tmp_path):
    export(hostile, hostile.profiles[0], tmp_path / "x.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "x.json.gz").read_bytes()))["traceEvents"]
    pid = free_pid(hostile.profiles[0])
    ours = [each for each in events if each.get("pid") == pid]
    assert len(ours) > 10
    assert max(len(json.dumps(each)) for each in ours) < 10_000
    assert LONG in {each.get("name") for each in events}


@pytest.mark.parametrize("name", TEXTS)
def test_text_obeys_nothing(hostile, tmp_path, name):
    content = written(hostile, tmp_path, name).read_text()
    assert not re.search(CONTROLS, content)
    assert len(content) < 1_000_000 or name == "json"  # data formats preserve what was read
    if name == "markdown":
        assert "<script>" not in content
        assert "[x](y)" not in content
    if name == "html":
        page = Page(content)
        assert [tag for tag, _ in page.tags].count("script") == 1  # the page's own
        assert all("onload" not in attributes for _, attributes in page.tags)
        assert "<script>alert(1)</script>" in page.text
    if name == "json":
        kernels = next(each for each in json.loads(content)["answers"] if each["analysis"] == "kernels")
        names = [row[0] for row in kernels["rows"]]
        assert {HOSTILE, FORMULA, TEX, LONG} <= set(names)


def test_no_cell_is_a_formula(hostile, tmp_path):
    book = openpyxl.load_workbook(written(hostile, tmp_path, "xlsx"))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} <= {"s", "n", "b"}
    assert any(cell.value == FORMULA for cell in cells)
    assert not any(cell.hyperlink for cell in cells)
    for path in written(hostile, tmp_path, "csv").glob("*.csv"):
        csv.field_size_limit(1 << 25)
        with path.open(newline="", encoding="utf-8") as file:
            texts = [text for row in csv.reader(file) for text in row]
        assert not [
            text for text in texts if (text[:1] in "=+@|%" and text) or (text.startswith("-") and not _number(text))
        ]
        assert not any(re.search(CONTROLS, text) for text in texts)


def _number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_parquet_keeps_names_as_they_are(hostile, tmp_path):
    names = pq.read_table(written(hostile, tmp_path, "parquet") / "kernels.parquet")["name"].to_pylist()
    assert {HOSTILE, FORMULA, TEX, LONG} == set(names)


def test_tex_sets_them_as_they_stand(hostile, tmp_path):
    content = written(hostile, tmp_path, "latex").read_text()
    assert "\\input" not in content
    assert "\\end{document}" not in content


@with_pdflatex
def test_tex_compiles(hostile, tmp_path):
    written(hostile, tmp_path, "latex")
    typeset(tmp_path, "report.latex")
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
