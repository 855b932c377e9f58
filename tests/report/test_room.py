"""What fits on two screens, and in which order sections get room."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Excerpt, Sentences
from tracekit.report.outline import TITLE, RoomRequest, allotted_lines, height, outline

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "run.json"


def wish(worth, sentences, *excerpts):
    blocks = [Sentences(("said",) * sentences), *(Excerpt("a.py", 1, ("x",) * lines) for lines in excerpts)]
    return RoomRequest(worth, [(blocks, 3)])


def cost(wishes, shown):
    of = [
        sum(height(each.entries[at][0][k], 3) for at, k in blocks) for each, blocks in zip(wishes, shown, strict=True)
    ]
    return sum(TITLE + lines for lines, blocks in zip(of, shown, strict=True) if blocks)


def test_the_most_valuable_comes_whole_and_of_the_others_sentences_come_first():
    wishes = [wish(0.2, 1, 4), wish(0.9, 1, 4), wish(0.5, 1, 4)]
    # The second takes 10, the sentences of the others 3 each, a further excerpt 7.
    assert allotted_lines(wishes, 10) == [set(), {(0, 0), (0, 1)}, set()]
    assert allotted_lines(wishes, 16) == [{(0, 0)}, {(0, 0), (0, 1)}, {(0, 0)}]
    assert allotted_lines(wishes, 23) == [{(0, 0)}, {(0, 0), (0, 1)}, {(0, 0), (0, 1)}]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 5), st.lists(st.integers(1, 9), max_size=3)), max_size=6),
    st.integers(0, 80),
)
def test_never_more_than_there_is_room_for(sections, lines):
    wishes = [wish(worth, sentences, *excerpts) for worth, sentences, excerpts in sections]
    assert cost(wishes, allotted_lines(wishes, lines)) <= lines


def test_what_is_left_out_is_named_and_asked_for_it_is_there():
    of_sample = report(open_subject([SAMPLE]))
    short, whole = outline(of_sample), outline(of_sample, full=True)
    left_out = set(short.left_out)
    assert left_out
    assert left_out <= {chapter.title for chapter in whole.chapters}
    assert not left_out & {chapter.title for chapter in short.chapters}
    assert not whole.left_out
    assert not outline(of_sample, rows=5).left_out
