"""No promised name disappears unless its deprecation has ended, and none stays longer."""

import pytest

from tests.confidential.planted import write_watch
from tests.stability.page import MEANINGS, PAGE, with_lists
from tests.stability.promise import Promise, broken, current_version, listed, promised, renewed
from tests.stability.today import today, typed
from tracekit.base.deprecation import DEPRECATED, Deprecation
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.tables import every_table


@pytest.fixture(scope="module")
def names():
    return today()


def test_every_promise_is_kept(names):
    assert [*broken(promised(), names, DEPRECATED, current_version())] == []


def test_every_name_is_promised(names):
    assert listed(names) - listed(promised().names) == set(), "python -m tests.stability adds what is new"
    assert {name: each.since for name, each in DEPRECATED.items()}.items() <= promised().deprecated.items()


def test_the_page_says_what_is_promised(names):
    page = PAGE.read_text()
    assert {*names} == {*MEANINGS}
    assert page == with_lists(page, promised(), DEPRECATED), "python -m tests.stability writes it"


def test_programs_end_as_they_are_known_to(names):
    assert {code.partition(":")[0] for code in names["exit code"]} == {"0", "1", "2", "3", "130"}


def test_the_columns_of_a_watch_are_promised(names, tmp_path):
    for name, stream in every_table(report(open_subject([write_watch(tmp_path / "watch")]))).items():
        if name.startswith("watch_"):
            assert {*typed(name, stream.schema)} <= {*names["column"]}, name


OLD = "option: report --old"
PROMISE = Promise({"option": ["report --old", "report --new"]})
MARKED = Promise(PROMISE.names, {OLD: "1.1"})
BOTH = PROMISE.names
NEW = {"option": ["report --new"]}
LISTED = {OLD: Deprecation("1.1", "use --new")}


@pytest.mark.parametrize(
    ("promise", "there", "deprecations", "version", "said"),
    [
        (PROMISE, BOTH, {}, "1.1.0", ""),
        (PROMISE, NEW, {}, "1.5.0", f"{OLD} is gone, without a deprecation"),
        (PROMISE, NEW, LISTED, "1.5.0", f"{OLD} is gone, without a deprecation"),  # promised.json never had it
        (MARKED, BOTH, LISTED, "1.1.0", ""),
        (MARKED, BOTH, LISTED, "1.2.9", ""),
        (MARKED, NEW, {}, "1.2.9", f"{OLD} is gone before version 1.3"),
        (MARKED, NEW, {}, "1.3.0", ""),
        (MARKED, NEW, {}, "2.0.0", ""),
        (MARKED, BOTH, LISTED, "1.3.0", f"{OLD} was to go in version 1.3, and is still there"),
        (MARKED, NEW, LISTED, "1.3.0", f"{OLD} is deprecated, and is not there"),
    ],
)
def test_a_name_goes_through_a_deprecation(promise, there, deprecations, version, said):
    sentences = [*broken(promise, there, deprecations, version)]
    assert bool(sentences) == bool(said)
    assert all(each.endswith(".") for each in sentences)
    assert said in "".join(sentences)


@pytest.mark.parametrize(("parameter", "breaks"), [("f(more=)", False), ("f(more)", True), ("g(more)", False)], ids=str)
def test_a_new_parameter_of_what_is_promised_needs_a_default(parameter, breaks):
    promise = Promise({"python": ["f", "f(x)"]})
    there = {"python": ["f", "f(x)", "g", parameter]}
    assert bool([*broken(promise, there, {}, "1.1.0")]) == breaks


def test_what_is_written_next_has_what_is_new_and_forgets_what_is_gone():
    more = {"option": [*BOTH["option"], "report --newest"]}
    assert renewed(PROMISE, more, LISTED) == Promise(more, {OLD: "1.1"})
    assert renewed(MARKED, NEW, {}) == Promise(NEW)
    assert renewed(MARKED, BOTH, {}).deprecated == {OLD: "1.1"}


def test_a_deprecation_is_on_the_page():
    page = with_lists(PAGE.read_text(), promised(), LISTED)
    assert f"| `{OLD}` | 1.1 | 1.3 | use --new |" in page
    assert "Nothing is deprecated" not in page
