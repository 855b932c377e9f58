"""The figures of how the package is cut, for a package that is small enough to count by hand."""

from tests.house import figures, modules

ONE = """\
import math
from pkg.two import root


def area(each, width):
    height = _inner(width)
    return _twice(height) + _twice(each)


def _inner(width):
    return root(width)


def _twice(of):
    return math.tau * of
"""
TWO = "def root(number):\n    return number**0.5\n"


def test_of_a_package_counted_by_hand(tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    for name, text in (("__init__", ""), ("one", ONE), ("two", TWO)):
        (package / f"{name}.py").write_text(text)
    table = figures(modules(package))
    assert list(table.values()) == [
        "3",
        "17",
        "2",
        "15",
        "25%",  # _inner, of four
        "11.8%",
        "1 (2 lines)",  # two
        "33.3%",  # each and of, beside width (twice), height and number
    ]
