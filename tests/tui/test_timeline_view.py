"""Which part of each variant is on the screen: always within what was recorded, and locked to one step."""

import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui import timelines
from tracekit.timeline import Index
from tracekit.tui.timeline.view import LEAST, Viewport


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Index]:
    """Two variants, with steps of about 110 µs and of about 160 µs."""
    folder = tmp_path_factory.mktemp("traces")
    short, long = (
        small.training(folder / f"{name}.json", steps=4 - (python > 20), python=python)
        for name, python in (("short", 20), ("long", 70))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACEKIT_CACHE_DIR", str(folder / "cache"))
        return timelines.indexes(short, long)


def test_it_begins_with_the_whole_of_the_longest_step(pair: list[Index]) -> None:
    view = Viewport.of(pair)
    assert view.low < 0
    assert max(view.length(0), view.length(1)) <= view.high <= 1.1 * view.length(1)


def test_variants_are_locked_to_the_offset_into_the_same_step(pair: list[Index]) -> None:
    view = Viewport.of(pair).at_step(1).to(10_000, 60_000)
    begins = [int(index.step_bounds[0][1]) for index in pair]
    assert [view.window(variant) for variant in (0, 1)] == [(begin + 10_000, begin + 60_000) for begin in begins]


def test_locked_by_share_their_steps_are_equally_wide(pair: list[Index]) -> None:
    view = Viewport.of(pair).at_step(1).locked("share")
    whole = view.to(0, view.length(0))
    for variant, index in enumerate(pair):
        assert whole.window(variant) == tuple(int(bound[1]) for bound in index.step_bounds)
        middle = sum(whole.window(variant)) // 2
        assert abs(view.offset(variant, middle) - view.length(0) // 2) <= 1


def test_what_is_under_the_pointer_stays_there(pair: list[Index]) -> None:
    view = Viewport.of(pair).to(0, 100_000)
    zoomed = view.zoomed(4, anchor_share=0.25)
    assert (zoomed.low, zoomed.high) == (18_750, 43_750)
    assert (zoomed.zoomed(0.25, anchor_share=0.25).low, zoomed.zoomed(0.25, anchor_share=0.25).high) == (0, 100_000)


def test_a_variant_without_the_step_has_no_window_and_another_leads(pair: list[Index]) -> None:
    view = Viewport.of(pair).at_step(3)
    assert [view.has_step(variant) for variant in (0, 1)] == [True, False]
    assert view.lead == 0
    turned = Viewport.of(pair[::-1]).at_step(3)
    assert [turned.has_step(variant) for variant in (0, 1)] == [False, True]
    assert turned.lead == 1
    assert turned.at_step(99) == turned


def test_panned_into_another_step_the_variants_are_locked_to_that(pair: list[Index]) -> None:
    view = Viewport.of(pair).at_step(0).to(0, 60_000)
    for _ in range(40):
        view = view.panned(0.5)
    assert view.step > 0
    low, high = view.window(0)
    begins = pair[0].step_bounds[0]
    assert begins[view.step] <= (low + high) // 2
    assert view.step + 1 == len(begins) or (low + high) // 2 < begins[view.step + 1]
    assert view.window(1)[0] - int(pair[1].step_bounds[0][view.step]) == low - int(begins[view.step])


@settings(max_examples=100)
@given(st.data())
def test_no_way_leads_out_of_what_was_recorded(pair: list[Index], data: st.DataObject) -> None:
    view = Viewport.of(pair)
    moves = st.one_of(
        st.tuples(st.just("panned"), st.floats(-3, 3)),
        st.tuples(st.just("zoomed"), st.floats(0.01, 100)),
        st.tuples(st.just("at_step"), st.integers(-2, 6)),
        st.tuples(st.just("locked"), st.sampled_from(["ns", "share"])),
    )
    for name, argument in data.draw(st.lists(moves, max_size=12)):
        view = getattr(view, name)(argument)
        first, last = view.bounds
        assert first <= view.low < view.high <= last
        assert view.span >= LEAST
        assert view.has_step(view.lead)
        for variant in (0, 1):
            if view.has_step(variant):
                low, high = view.window(variant)
                assert high - low >= LEAST
                assert abs(view.offset(variant, low) - view.low) <= 2
