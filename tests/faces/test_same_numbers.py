"""One set of numbers in every format, read back from what was written."""

import csv
import json
import re

import openpyxl
import pyarrow.parquet as pq
import pytest
from small import training

from tests.faces.formats import READ, written
from tracekit.base.units import thousandths
from tracekit.faces import latex
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.breakdowns import of_view
from tracekit.report.sections.headline import headline

NAMES = ("slow", "fast")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    slow = training(folder / "slow.json", steps=6, python=40)
    fast = training(folder / "fast.json", steps=5, python=10.125)
    return report(open_subject([slow, fast]))


@pytest.fixture(scope="module")
def means(pair):
    """What each bucket takes of a step, in ns, by variant and label, and the whole step."""
    numbers = of_view(pair, "wall")
    labels = {part.key: part.label for part in numbers.parts}
    return {
        name: {label: numbers.means[name][key] for key, label in labels.items()}
        | {"total": sum(numbers.means[name].values())}
        for name in numbers.variants
    }


@pytest.fixture(scope="module")
def keys(pair):
    return {part.label: part.key for part in of_view(pair, "wall").parts} | {"total": "total"}


def test_json(pair, means, keys, tmp_path):
    document = json.loads(written(pair, tmp_path, "json").read_text())
    for variant in document["variants"]:
        for label, value in means[variant["name"]].items():
            read = variant["mean"]["wall_ns"] if label == "total" else variant["mean"]["wall"][keys[label]]
            assert read == pytest.approx(value)


def test_csv(pair, means, keys, tmp_path):
    with (written(pair, tmp_path, "csv") / "wall.csv").open(newline="") as file:
        rows = {(row["variant"], row["bucket"]): row for row in csv.DictReader(file)}
    for name in NAMES:
        for label, value in means[name].items():
            assert float(rows[name, keys[label]]["mean_ns"]) == pytest.approx(value)
    delta = means["fast"]["total"] - means["slow"]["total"]
    assert float(rows["fast", "total"]["delta_ns"]) == pytest.approx(delta)
    assert rows["slow", "total"]["delta_ns"] == ""


def test_workbook(pair, means, tmp_path):
    book = openpyxl.load_workbook(written(pair, tmp_path, "xlsx"))
    head, *rows = [[cell.value for cell in row] for row in book["wall"].iter_rows()]
    shown = {row[0]: row for row in rows if row[0]}
    for name in NAMES:
        for label, value in means[name].items():
            assert shown[label][head.index(name)] == pytest.approx(value)
    difference = shown["total"][head.index("Δ fast against slow")]
    assert difference == pytest.approx(means["fast"]["total"] - means["slow"]["total"])
    assert book["wall"].freeze_panes == "B2"
    assert book["kernels"].freeze_panes == "A2"
    assert len(book["wall"]._charts) == 1
    assert book["wall"]["B2"].number_format.startswith("#,##0.000,,")


def test_parquet(pair, means, keys, tmp_path):
    folder = written(pair, tmp_path, "parquet")
    long = pq.read_table(folder / "attribution.parquet").to_pandas()
    for name in NAMES:
        of_variant = long[(long["variant"] == name) & (long["view"] == "wall")]
        by_bucket = of_variant.groupby("bucket", observed=True)["dur_ns"].sum() / of_variant["step"].nunique()
        for label, value in means[name].items():
            assert (by_bucket.sum() if label == "total" else by_bucket[keys[label]]) == pytest.approx(value)
    variants = pq.read_table(folder / "variants.parquet").to_pandas().set_index("variant")
    assert variants["wall_ns"]["fast"] == pytest.approx(means["fast"]["total"])
    document = json.loads(written(pair, tmp_path, "json").read_text())
    summary = next(a for a in document["answers"] if a["analysis"] == "kernels" and a["variant"] == "slow")
    row = dict(zip([column["name"] for column in summary["columns"]], summary["rows"][0], strict=True))
    kernels = pq.read_table(folder / "kernels.parquet").to_pylist()
    assert row["total_ns"] == sum(k["dur_ns"] for k in kernels if k["variant"] == "slow" and k["name"] == row["name"])


def test_html_holds_them_exactly(pair, means, tmp_path):
    content = written(pair, tmp_path, "html").read_text()
    (parts, *_) = re.findall(r'<table class="parts">(.*?)</table>', content, re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", parts)[1:]
    assert len(rows) == len(means["slow"])
    for row in rows:
        label = re.sub(r"<[^>]*>", "", row.split("</td>")[0])
        slow, fast, delta = (float(value) for value in re.findall(r'data-v="([^"]*)"', row))
        assert (slow, fast) == pytest.approx((means["slow"][label], means["fast"][label]))
        assert delta == pytest.approx(means["fast"][label] - means["slow"][label])


@pytest.mark.parametrize("name", READ)
def test_what_people_read(pair, means, keys, tmp_path, name):
    content = written(pair, tmp_path, name).read_text()
    shown = {"latex": latex.escape}.get(name, str)
    numbers = of_view(pair, "wall")
    for label, key in keys.items():
        row = numbers.cells["" if key == "total" else key]
        lines = [line for line in re.split(r"\n|<tr", content) if label in line]
        for variant in NAMES:
            value = row[variant]
            assert value * numbers.scale_ns / 1000 == pytest.approx(means[variant][label], abs=numbers.scale_ns / 1000)
            assert not value or any(shown(thousandths(value)) in line for line in lines)
    if name != "latex":
        plain = re.sub(r"\s+", " ", re.sub(r"\\|<[^>]*>", "", content))
        for sentence in headline(pair):
            assert re.sub(r"\s+", " ", sentence) in plain
