"""Every figure of an answer is that of `tracekit report --format json`, and its reference leads to events."""

import pytest

from tracekit.agent.answers import rounded
from tracekit.faces.shared.document import as_document
from tracekit.installed import sample_run
from tracekit.profile import open_subject
from tracekit.report import report


@pytest.fixture(scope="module")
def document():
    return as_document(report(open_subject([sample_run()])))


def ns(value):
    return {"value": rounded(value, "ns"), "unit": "ns"}


def test_an_overview_has_the_steps_and_buckets_of_the_report(sample, document):
    shown = sample("overview")["variants"]
    assert [variant["untrusted"]["name"] for variant in shown] == [each["name"] for each in document["variants"]]
    for variant, told in zip(shown, document["variants"], strict=True):
        reference = variant["variant"]
        assert variant["step"] == ns(told["mean"]["wall_ns"]) | {"evidence": f"{reference}.wall"}
        assert variant["unprofiled_step"]["value"] == rounded(told["measured"]["step_ns"], "ns")
        interval = told["measured"]["interval_ns"]
        assert variant["unprofiled_step"].get("interval") == (interval and [rounded(end, "ns") for end in interval])
        for share in variant["buckets"]:
            assert share["step"]["value"] == rounded(told["mean"]["wall"][share["bucket"]], "ns")


def test_findings_have_the_costs_places_and_events_of_the_report(sample, document):
    shown: dict[str, dict[str, object]] = {}
    is_whole = False
    while not is_whole:
        answer = sample("findings", offset=len(shown))
        shown |= {entry["finding"]: entry for entry in answer["findings"]}
        is_whole = all(part["what"] != "findings" for part in answer.get("left_out", []))
    numbers: dict[str, int] = {}
    for told in document["findings"]:
        variant = f"v{[each['name'] for each in document['variants']].index(told['variant']) + 1}"
        numbers[variant] = numbers.get(variant, 0) + 1
        entry = shown.pop(f"{variant}.f{numbers[variant]}")
        assert entry["id"] == told["id"]
        assert entry["cost"]["value"] == rounded(told["cost_ns"], "ns")
        assert entry["untrusted"]["headline"] == told["headline"]
        assert entry["untrusted"].get("line") == told["where"]["line"]
        assert entry["events"] == [f"{variant}.e{event['event']}" for event in told["evidence"][:3]]
    assert not shown


def test_a_comparison_has_the_differences_and_intervals_of_the_report(sample, document):
    shown = sample("compare")["comparisons"]
    for comparison, told in zip(shown, document["comparison"], strict=True):
        assert comparison["difference"]["value"] == rounded(told["delta_ns"], "ns")
        assert comparison["time_ratio"]["value"] == rounded(told["unprofiled"]["ratio"], "ratio")
        assert comparison.get("noise", False) == told["unprofiled"]["noise"]
        for change in comparison["buckets"]:
            key = change["bucket"]
            assert change["difference"]["value"] == rounded(told["wall"][key], "ns")
            assert change["difference"]["interval"] == [rounded(end, "ns") for end in told["interval"][key]]
            assert change.get("noise", False) == (key in told["noise"])


def test_another_baseline_turns_the_difference_round(sample):
    (first, *_), (other, *_) = (sample("compare", baseline=name)["comparisons"] for name in ("v1", "compiled"))
    assert (first["variant"], first["baseline"]) == ("v2", "v1")
    assert (other["variant"], other["baseline"]) == ("v1", "v2")
    assert first["difference"]["value"] == -other["difference"]["value"]


def test_lines_have_the_costs_of_the_report(sample, document):
    (table,) = (
        block
        for section in document["sections"]
        if section["id"] == "lines"
        for block in section["blocks"]
        if block.get("name") == "lines"
    )
    names = [column["name"] for column in table["columns"]]
    shown = sample("lines")["lines"]
    assert len(shown) == len(table["rows"])
    for line, told in zip(shown, table["rows"], strict=True):
        cells = dict(zip(names, told, strict=True))
        assert line["untrusted"]["text"] == cells["line"]
        for k, variant in enumerate(document["variants"], 1):
            cost = line["costs"].get(f"v{k}", {"value": 0})
            assert cost["value"] == rounded(cells[f"{variant['name']}_ns"], "ns")


def test_a_line_is_shown_in_its_source(sample):
    shown = sample("lines", where="gcn_cora.py:forward")["lines"]
    assert [line["untrusted"]["line"] for line in shown] == [43, 44, 45, 46, 47]
    assert "self.first(x, edge_index" in shown[2]["untrusted"]["text"]


def references(value):
    """Every reference that evidence takes, in an answer."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key in ("evidence", "event", "finding") and isinstance(entry, str):
                yield entry
            elif key == "events" and entry and isinstance(entry[0], str):
                yield from entry
            else:
                yield from references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from references(entry)


@pytest.mark.parametrize("tool", ["overview", "findings", "compare"])
def test_every_reference_leads_to_events(sample, tool):
    for reference in dict.fromkeys(references(sample(tool))):
        answer = sample("evidence", of=reference)
        assert answer["of"] == reference
        assert answer.get("events") or answer["time"]["value"] == 0, reference


def test_the_pieces_of_a_bucket_add_up_to_it(sample):
    mean = sample("evidence", of="v1.wall.sync_stall")
    steps = sample("overview")["variants"][0]["steps"]
    parts = [sample("evidence", of=f"v1.s{step}.sync_stall")["time"]["value"] for step in steps]
    assert mean["time"]["value"] == pytest.approx(sum(parts) / len(parts), abs=1)


def test_an_event_is_shown_with_what_launched_it_and_what_is_around(sample):
    (kernel,) = sample(
        "query", sql="select rank - 1 as row from (select *, row_number() over () as rank from events) "
        "where cat = 'kernel' and variant = 'eager' limit 1"
    )["rows"]  # fmt: skip
    events = sample("evidence", of=f"v1.e{kernel['untrusted']['row']}")["events"]
    assert [event.get("relation") for event in events[:2]] == [None, "launched by"]
    assert {event["relation"] for event in events[2:]} == {"inside"}
    lengths = [event["duration"]["value"] for event in events[2:]]
    assert lengths == sorted(lengths)


def test_a_page_says_when_it_is_wrong(sample):
    page = sample("evidence", of="sync_stall")["page"]
    assert "When it is wrong" in [part["heading"] for part in page]


def test_a_query_may_not_take_all_memory(sample):
    limit = "select current_setting('memory_limit') as most, current_setting('threads') as threads from tracks limit 1"
    (row,) = sample("query", sql=limit)["rows"]
    assert row["untrusted"] == {"most": "1.8 GiB", "threads": 2}
