"""Findings as cards: one for equal findings of several variants, in full only the costliest where room is short."""

import io

import pytest
from msgspec.structs import replace
from rich.console import Console
from small import training

from tracekit.faces import Options
from tracekit.faces.markdown import draw_blocks as as_markdown
from tracekit.faces.text import show
from tracekit.findings import Diagnosis, Finding, Verdict, Where
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Card, Cards
from tracekit.report.sections.findings import cards


def finding(cost_ns=1_500_000.0, share=0.5, headline="The host is too slow", **parts):
    usual = {"why": "The GPU idles.", "do": "Compile the model.", "where": Where(file="model.py", line=7)}
    return Finding("launch_bound", headline, cost_ns, share=share, **(usual | parts))


def diagnosed(*findings):
    return Diagnosis(Verdict("launch_bound", "The host is too slow", 0.5), [*findings])


def test_the_parts_of_a_card():
    made = cards(
        {
            "eager": diagnosed(
                finding(then_bound_by="gpu", also=("Up to 1.00 ms of this cost has a cause of its own: gc.",))
            )
        }
    )
    assert made.cards == (
        Card(
            "The host is too slow",
            (("eager", "up to 1.50 ms of 3.00 ms a step (50.0 %)"),),
            "model.py:7",
            "The GPU idles. Without this cause, the GPU's work would bound the step.",
            "Compile the model.",
            ("Up to 1.00 ms of this cost has a cause of its own: gc.",),
            ("model.py", 7),
            "launch_bound",
        ),
    )
    assert not made.several


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"cost_ns": None}, []),
        ({"share": None}, ["up to 1.50 ms a step"]),
        ({"over_steps": 7}, ["up to 10.5 ms of the 21.0 ms recorded (50.0 %)"]),
        ({"over_steps": 7, "once": True}, ["10.5 ms, once"]),
        ({"bound": "exact"}, ["1.50 ms of 3.00 ms a step (50.0 %)"]),
        ({"bound": "lower"}, ["at least 1.50 ms of 3.00 ms a step (50.0 %)"]),
    ],
)
def test_a_cost_says_how_it_is_bounded(parts, said):
    (card,) = cards({"eager": diagnosed(finding(**parts))}).cards
    assert card.cost_phrases(with_names=False) == said


@pytest.mark.parametrize(
    ("name", "bound", "said"),
    [
        ("launch_bound", "host", "The GPU idles. Even without this cause, the host would bound the step."),
        ("sync_stall", "host", "The GPU idles. Without this cause, the host would bound the step."),
        ("launch_bound", "communication", "The GPU idles. Without this cause, communication would bound the step."),
        ("launch_bound", None, "The GPU idles."),
    ],
)
def test_what_then_bounds_the_step(name, bound, said):
    (card,) = cards({"eager": diagnosed(replace(finding(then_bound_by=bound), id=name))}).cards
    assert card.why == said


def test_what_is_inferred_is_marked():
    (card,) = cards({"eager": diagnosed(finding(confidence="inferred", then_bound_by="gpu"))}).cards
    assert card.why == (
        "The GPU idles. This is inferred: the recording does not prove it. Without this cause, the GPU's work would "
        "bound the step."
    )


def test_why_little_of_the_time_blamed_is_saved_is_said():
    (card,) = cards({"eager": diagnosed(finding(400_000.0, claimed_ns=1_500_000.0, then_bound_by="host"))}).cards
    assert card.why.endswith(" the host would bound the step, so removing it saves only 400 µs.")


def test_equal_findings_of_several_variants_are_one_card():
    costlier = finding(2_000_000.0, why="The GPU idles longer.")
    made = cards({"eager": diagnosed(finding()), "padded": diagnosed(costlier), "compiled": diagnosed()})
    card, _ = made.cards  # the other is the verdict on compiled
    assert made.several
    assert card.why == "padded: The GPU idles longer."
    assert card.cost_phrases(with_names=True) == [
        "padded: up to 2.00 ms of 4.00 ms a step (50.0 %)",
        "eager: up to 1.50 ms of 3.00 ms a step (50.0 %)",
    ]


def test_a_variant_without_findings_has_its_verdict_as_a_card():
    graphs = Diagnosis(Verdict("gpu_bound_gemm", "GPU-bound: 98.0 % of 964 µs a step.", 0.98), [])
    made = cards({"eager": diagnosed(finding()), "graphs": graphs, "again": graphs})
    assert made.cards[1:] == (
        Card("GPU-bound", (("graphs", ""), ("again", "")), why="98.0 % of 964 µs a step.", id="gpu_bound_gemm"),
    )
    assert made.lines[1] == graphs.verdict.sentence


def drawn(diagnoses, tmp_path, *, width=100, full=False):
    made = report(open_subject([training(tmp_path / "t.json", steps=4)]))
    (name,) = made.diagnoses
    made.diagnoses[name] = diagnoses
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        show(made, console, Options(full=full))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_cost_stands_at_the_right_if_there_is_room(tmp_path):
    wide, narrow = (drawn(diagnosed(finding()), tmp_path, width=width) for width in (100, 50))
    at = wide.index("Findings") + 1
    cost = "up to 1.50 ms of 3.00 ms a step (50.0 %)"
    assert wide[at : at + 4] == [
        f"1  The host is too slow{cost.rjust(100 - 23)}",
        "   model.py:7",
        "   The GPU idles.",
        "→  Compile the model.",
    ]
    at = narrow.index("Findings") + 1
    assert narrow[at : at + 2] == ["1  The host is too slow", f"   {cost}"]


def test_only_the_costliest_are_told_in_full_where_room_is_short(tmp_path):
    several = [finding(1_000_000.0 / k, headline=f"Cause {k}", do=f"Mend {k}.") for k in range(1, 6)]
    few, all_of_them = (drawn(diagnosed(*several), tmp_path, full=full) for full in (False, True))
    for k in range(1, 6):
        assert any(f"Cause {k}" in line for line in few)
        assert (f"→  Mend {k}." in few) is (k <= 3)
        assert f"→  Mend {k}." in all_of_them


def test_of_several_traces_a_card_names_whose_it_is(tmp_path):
    paths = [training(tmp_path / f"{name}.json", steps=4, python=us) for name, us in (("slow", 600), ("fast", 1))]
    made = report(open_subject(paths))
    made.diagnoses["slow"], made.diagnoses["fast"] = diagnosed(finding()), diagnosed()
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as captured:
        show(made, console, Options())
    text = captured.get()
    assert "slow: up to 1.50 ms of 3.00 ms a step (50.0 %)" in text


def test_names_in_cards_are_hostile(tmp_path):
    hostile = Cards(("",), cards=(Card("<b>*x*</b> [red]y", (("v", "1 ms"),), do="\x1b[31mrun\u202e"),))
    text = as_markdown([hostile])
    assert "<b>" not in text
    assert r"\*x\*" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
