"""Findings are read in three seconds: a short headline that names the culprit, then evidence, then what to do."""

import re

import pytest
from real import trace_names, trace_path

from tracekit.findings import diagnose
from tracekit.findings.finding import Finding
from tracekit.profile import open_subject
from tracekit.vocabulary.kernel_names import short_kernel

_WORDS = 12
# Advice begins with what to do.
_IMPERATIVES = {
    "Accumulate", "Allow", "Begin", "Bring", "Call", "Check", "Combine", "Compare", "Compile", "Construct", "Copy",
    "Decide", "Dispatch", "Do", "Find", "Fuse", "Gather", "Get", "Give", "Keep", "Leave", "Let", "Load", "Look",
    "Make", "Merge", "Move", "Pad", "Pass", "Pin", "Record", "Remove", "Rewrite", "Rule", "Run", "Send", "Skip",
    "Start", "Submit", "Try", "Turn", "Use", "Warm",
}  # fmt: skip


@pytest.fixture(scope="module", params=trace_names() or ["absent"])
def findings(request):
    return [
        finding
        for profile in open_subject([trace_path(request.param)]).profiles
        for finding in diagnose(profile).all_findings
    ]


def test_headlines_are_short_and_name_what_is_to_blame(findings):
    for finding in findings:
        headline = finding.headline
        said = headline.replace(finding.where.at, "").partition(", most of all ")[0]
        said = said.replace(short_kernel(finding.where.kernel or ""), "…")  # names count as one word
        assert len(said.split()) < _WORDS, headline
        assert not headline.endswith("."), headline
        culprits = [finding.where.function, finding.where.operator, finding.where.kernel, finding.where.file]
        if finding.where.file is not None and finding.id != "gpu_bound":
            assert any(str(part).rpartition("/")[2] in headline for part in culprits if part), headline


def test_evidence_is_whole_sentences_and_advice_an_imperative(findings):
    for finding in findings:
        assert finding.why == "" or re.search(r"[.)]$", finding.why), finding.why
        assert finding.do.split()[0].rstrip(":,") in _IMPERATIVES, finding.do


def test_title_and_advice_are_made_of_the_parts():
    finding = Finding(
        "flea", "A flea bites", 1.0, "Scratch.", "It bit twice. It was hungry.", ("Part of it: a louse.",)
    )
    assert finding.title == "A flea bites. It bit twice. It was hungry"
    assert finding.advice == "Scratch. Part of it: a louse."
    document = finding.document()
    assert {name: document[name] for name in ("headline", "why", "do", "also")} == {
        "headline": "A flea bites",
        "why": "It bit twice. It was hungry.",
        "do": "Scratch.",
        "also": ["Part of it: a louse."],
    }
