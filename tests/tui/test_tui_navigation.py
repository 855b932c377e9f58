"""Where the user is, without a screen: what stays when more arrives, what is remembered, which pane is next."""

from pathlib import Path

import on_screen
import pytest

from tests.tui import made_traces
from tracekit.tui.model.content import Content
from tracekit.tui.model.navigation import Navigation
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import HOME
from tracekit.tui.timeline import Stretch


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> OpenReport:
    return on_screen.opened(made_traces.pair(tmp_path_factory.mktemp("pair")))


@pytest.fixture
def navigation(pair: OpenReport) -> Navigation:
    navigation = Navigation()
    assert navigation.open(pair)
    return navigation


def test_panes_follow_one_another_round_and_round(navigation: Navigation) -> None:
    names = [pane.name for pane in navigation.listed]
    assert (navigation.now.pane, navigation.pane.name) == (HOME, names[0])
    assert navigation.beside(1).pane == names[1]
    assert navigation.beside(-1).pane == names[-1]


def test_only_another_place_has_to_be_asked(navigation: Navigation, pair: OpenReport) -> None:
    assert not navigation.visit(navigation.history.visited(navigation.now))
    assert not navigation.open(pair)
    assert navigation.visit(navigation.history.visited(navigation.now.at("kernels")))
    assert not navigation.is_shown
    navigation.shown = navigation.now
    assert navigation.is_shown


def test_what_is_selected_stays_where_more_arrives_and_its_variants_keep_their_names(
    navigation: Navigation, pair: OpenReport, tmp_path: Path
) -> None:
    navigation.visit(navigation.history.visited(navigation.now.at("kernels")))
    navigation.open(pair.against("compiled"))
    assert navigation.now.pane == "kernels"
    assert navigation.whose_time(160) == "wall time, against compiled"
    navigation.open(on_screen.opened([made_traces.eager(tmp_path / "other.json")]))
    assert navigation.now.pane == HOME
    assert navigation.whose_time(160) == "wall time"


def test_the_cursor_begins_where_it_was_left(navigation: Navigation) -> None:
    content = Content((), begin=(0, 3))
    assert navigation.begin(content) == (0, 3)
    navigation.shown = navigation.now
    navigation.remember((1, 2))
    assert navigation.begin(content) == (1, 2)
    navigation.visit(navigation.history.visited(navigation.now.at("kernels")))
    assert navigation.begin(content) == (0, 3)


def test_an_event_of_the_timeline_takes_the_place_of_the_one_before(navigation: Navigation) -> None:
    navigation.visit(navigation.history.visited(navigation.now.at("timeline")))
    navigation.point_at("eager", 1, Stretch("eager", 0, 1))
    past = navigation.history.past
    navigation.point_at("eager", 2, Stretch("eager", 1, 2))
    assert (navigation.now.of("event"), navigation.history.past) == (("eager", 2), past)
    assert navigation.is_shown
    assert len(navigation.path) == 1
