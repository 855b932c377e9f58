"""How long a capture will still take is told from its second pass on, and true of its later rounds, too."""

import re

import pytest

from tracekit.capture import course as courses
from tracekit.capture.course import Course
from tracekit.capture.options import Options, PlannedVariant
from tracekit.run import Requested


@pytest.fixture
def passed(monkeypatch):
    """Lets seconds pass."""
    now = [0.0]
    monkeypatch.setattr(courses.time, "monotonic", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def planned(*names):
    return [PlannedVariant(name, Requested(compile=name != "eager"), {}) for name in names]


def left(text):
    return float(re.search(r"about ([\d.]+) s left", text)[1])


@pytest.mark.parametrize(
    ("options", "rounds_s"),
    [({}, 60), ({"budget": 20.0}, 20), ({"precision": 0.01}, 600), ({"min_detectable": 0.05}, 600), ({"passes": 1}, 0)],
)
def test_the_rounds_of_a_single_variant_count_as_long_as_they_will_last(passed, options, rounds_s):
    course = Course(planned("eager"), ["measure", "profile", "check"], Options("train.py", **options))
    assert course.begins("eager", "measure") == ""
    passed(10)
    course.measured("eager", 10.0, 0.0)
    assert left(course.begins("eager", "profile")) == pytest.approx(0.9 * 10 + 0.9 * 10 + rounds_s, rel=0.01)


def test_rounds_of_long_passes_last_as_long_as_the_first_ones(passed):
    course = Course(planned("eager", "compiled"), ["measure", "profile"], Options("train.py"))
    course.begins("eager", "measure")
    passed(100)
    course.measured("eager", 100.0, 0.0)
    text = course.begins("compiled", "measure")
    assert left(text) == pytest.approx(100 + 90 + 200, rel=0.01)
    assert text.endswith("left, and compiling)")
    passed(160)
    course.measured("compiled", 160.0, 60.0)
    assert left(course.begins("compiled", "profile")) == pytest.approx(0.9 * 100 + 0.8 * 60 + 260, rel=0.01)
