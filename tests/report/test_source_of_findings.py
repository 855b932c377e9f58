"""A finding that names a line of yours shows that line, with its cost."""

import csv

from small import BEFORE

from tests.faces.formats import FOLDERS, written
from tests.lines.recorded import FILE, recorded, recorded_run
from tracekit.faces import html, markdown
from tracekit.findings import Finding, rule, unregister
from tracekit.findings.finding import Where
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Excerpt


def test_the_line_of_a_finding_stands_beside_it(tmp_path):
    run = recorded_run(recorded(tmp_path / "detail.json"), *BEFORE)

    @rule("planted")
    def look(profile):
        for title in ("One cause", "Another, of the same line"):
            yield Finding("planted", title, cost_ns=9e4, where=Where(file=FILE, line=4))
        yield Finding("planted", "Of a file that the recording lacks", cost_ns=9e4, where=Where(file="/x.py", line=1))
        yield Finding("planted", "Of no line", cost_ns=9e4)

    try:
        made = report(open_subject([run]))
        (section,) = (each for each in made.sections if each.id == "findings")
        excerpts = [block for block in section.blocks if isinstance(block, Excerpt)]
        assert {each.file for each in excerpts} == {FILE}
        (excerpt,) = (each for each in excerpts if each.first == 2)  # two lines above the one that is named
        assert excerpt.lines[-1] == "    return fast(z)"
        assert excerpt.costs["eager"][4] > 0
        assert "return fast(z)" in html.render(made).partition("<h2>Where")[0]
        cards = html.render(made).partition('<ol class="cards">')[2].partition("</ol>")[0].split("</li>")
        (planted,) = (card for card in cards if "One cause" in card)
        assert "<pre>return fast(z)</pre>" in planted  # without the indentation that all lines shown have
        findings = markdown.render(made).partition("## Findings")[2].partition("\n## ")[0]
        assert "<details>" in findings.partition("return fast")[0]
        assert "4      return fast(z)\n```" in findings  # as it is indented in the file
    finally:
        unregister("planted")


def test_tables_have_each_line_of_source_once(tmp_path):
    @rule("planted")
    def look(profile):
        yield Finding("planted", "One cause", cost_ns=9e4, where=Where(file=FILE, line=4))

    try:
        made = report(open_subject([recorded_run(recorded(tmp_path / "detail.json"), *BEFORE)]))
        assert any(
            isinstance(block, Excerpt) for section in made.sections if section.variant for block in section.blocks
        )
        for face in ("xlsx", *FOLDERS):
            written(made, tmp_path, face)
        with (tmp_path / "csv" / "source.csv").open(newline="") as file:
            rows = [(row["variant"], row["file"], row["line"]) for row in csv.DictReader(file)]
        assert ("eager", FILE, "4") in rows
        assert len(rows) == len(set(rows))
    finally:
        unregister("planted")


def test_no_line_of_source_ends_its_fence():
    lines = ("text = (", "```", "````python", "    ")
    drawn = "\n".join(markdown.written(Excerpt("model.py", 1, lines), markdown.Page(True, None, "")))
    assert drawn.startswith("`````python\n")
    assert drawn.endswith("\n`````")
    assert drawn.count("\n`````") == 1
