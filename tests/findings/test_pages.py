"""Every id that can occur has a page, and every page an id."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracekit.base.pages import Page, as_markdown, as_text
from tracekit.engine.buckets import HOST, WALL
from tracekit.findings import VERDICTS, Finding, FindingPage, rule, unregister
from tracekit.findings.page import FINDING_PAGES, declare, examples
from tracekit.findings.rules.compiling import _CAUSES
from tracekit.findings.rules.habits import _HABITS
from tracekit.findings.rules.long_stretches import CAUSES
from tracekit.findings.rules.slow_host import _TERMS
from tracekit.report.explained import all_pages, finding_ids, pages

ROOT = Path(__file__).resolve().parents[2]
# Where the id of a finding is no text but comes from a table: the ids of that table.
TABLES = {
    "findings/rules/compiling.py": [cause.id for cause in _CAUSES],
    "findings/rules/habits.py": [habit.id for habit in _HABITS],
    "findings/rules/long_stretches.py": [cause.id for cause in CAUSES],
    "findings/rules/slow_host.py": [*_TERMS],
    "findings/verdict.py": [*VERDICTS],
    "findings/__init__.py": [*VERDICTS],
}


def calls_of(*functions: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls of these functions in the source, each with its file."""
    for path in (ROOT / "tracekit").rglob("*.py"):
        source = path.read_text()
        if any(f"{function}(" in source for function in functions):  # what has none takes time to parse
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions:
                    yield str(path.relative_to(ROOT / "tracekit")), node


def written() -> tuple[set[str], set[str]]:
    """The ids that the source constructs findings with, and the files in which an id is no text."""
    ids, tables = set(), set()
    for file, call in calls_of("Finding"):
        first = call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "id")
        if isinstance(first, ast.Constant):
            ids.add(first.value)
        else:
            tables.add(file)
    return ids, tables


def test_every_id_in_the_source_has_a_page_and_every_page_an_id():
    ids, tables = written()
    assert tables == {*TABLES}, "a finding whose id is no text: name the table of its ids above"
    assert len(ids) > 30
    assert ids.union(*TABLES.values()) == {*finding_ids()}


def test_two_pages_of_one_id_are_refused():
    page = FINDING_PAGES["zero_grad"]
    declare(page)  # the same page again, as when a module is imported twice
    other = FindingPage("zero_grad", "Other", "s", "s", "s", "s", ())
    with pytest.raises(ValueError, match="zero_grad"):
        declare(other)


def test_a_rule_of_another_package_brings_its_page():
    page = FindingPage("apes", "There are apes", "Says.", "Slow.", "Costs.", "Limits.", ())

    @rule("apes", pages=(page,))
    def apes(profile):
        yield Finding("apes", "Apes")

    try:
        assert FINDING_PAGES["apes"].page.title == "There are apes"
    finally:
        unregister("apes")
        del FINDING_PAGES["apes"]


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: f"{page.kind} {page.id}")
def test_a_page_is_whole_and_short(page: Page):
    assert page.title
    assert all(part.texts and all(part.texts) for part in page.parts)
    text = as_text(page)
    assert 8 <= len(text.splitlines()) <= 62
    kept = [line for part in page.parts if part.layout == "lines" for line in part.texts]
    wide = [line for line in text.splitlines() if len(line) > 100 and "https://" not in line]
    assert [line for line in wide if line.strip() not in map(str.strip, kept)] == []
    assert "\n\n\n" not in text
    headings = [part.heading for part in page.parts]
    if page.kind == "finding":
        assert headings[:5] == [
            "What it says",
            "Why that is slow",
            "What it costs",
            "When it is wrong",
            "What to change",
        ]
        assert all("Changes: " in text for text in page.parts[4].texts)
    elif page.kind == "law":
        follows = "What follows" if page.title.endswith("(note)") else "What tracekit then does not say"
        assert headings == ["What holds of a sound trace", "What breaks it", follows, "What to do"]


def test_ids_between_backticks_lead_to_their_pages():
    page = next(page for page in all_pages() if page.id == "late_collectives")
    text = as_markdown(page, {"gpu_comm": "../buckets/gpu_comm.md", "late_collectives": "itself.md"})
    assert "[`gpu_comm`](../buckets/gpu_comm.md)" in text
    assert "itself.md" not in text
    assert "<https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html>" in text


def test_most_findings_have_an_example_of_themselves():
    assert {*examples()} <= {*finding_ids()}
    assert len(examples()) >= 30
    assert all(example.lines[0].startswith("1") for example in examples().values())


def test_every_law_and_bucket_has_a_page_and_every_breach_is_of_a_law():
    named = {call.args[0].value for _, call in calls_of("law", "Law") if isinstance(call.args[0], ast.Constant)}
    assert len(named) > 30
    assert named == {*pages("law")}
    assert not [call for _, call in calls_of("Breach") if call.args and isinstance(call.args[0], ast.Constant)]
    assert {*pages("bucket")} == {*WALL, *HOST}
