"""What is selected: Enter narrows, Esc widens, history goes back and forth; nothing changes in place."""

from tracekit.tui.model.selection import History, Selection

HOME = Selection()


def test_a_facet_of_a_kind_replaces_the_one_before_and_stands_last():
    first = HOME.narrowed("steps", (1, 2), "steps 1–2").narrowed("kernel", "gemm", "gemm", "instances")
    again = first.narrowed("steps", (3, 3), "step 3")
    assert [facet.label for facet in again.facets] == ["gemm", "step 3"]
    assert (again.of("steps"), again.of("kernel"), again.of("line")) == ((3, 3), "gemm", None)
    assert [facet.label for facet in first.facets] == ["steps 1–2", "gemm"]


def test_widening_leads_back_to_where_it_was_narrowed():
    deep = HOME.narrowed("bucket", "gpu_compute", "GPU compute", "kernels").narrowed("kernel", "k", "k", "instances")
    assert (deep.pane, deep.widened().pane, deep.widened().widened()) == ("instances", "kernels", HOME)
    assert HOME.at("lines").widened() == HOME


def test_history_goes_back_and_forth_and_forgets_what_was_left():
    one, two, three = (HOME.at(name) for name in ("kernels", "lines", "source"))
    history = History().visited(one).visited(two)
    assert history.visited(two) is history
    assert [history.back().now, history.back().back().now, history.back().back().back().now] == [one, HOME, HOME]
    assert history.back().forth() == history == history.forth()
    assert history.back().visited(three).forth().now == three
