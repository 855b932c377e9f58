import pytest

from tracekit.base.names import sanitize
from tracekit.base.units import bandwidth, count, duration, percent, ratio, size, thousandths


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (None, "–"),
        (0, "0 ns"),
        (950, "950 ns"),
        (999.6, "1.00 µs"),
        (1_240_000, "1.24 ms"),
        (21_800_000_000, "21.8 s"),
        (-770_000, "−770 µs"),
        (123_456_789_000_000, "123,457 s"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(ns, shown):
    assert duration(ns) == shown


def test_a_signed_duration_says_plus_too():
    assert duration(5, signed=True) == "+5 ns"
    assert duration(0, signed=True) == "0 ns"


def test_quantities_of_one_sentence_share_a_unit():
    assert duration(28_000, like=2_580_000) == "0.03 ms"
    assert duration(11, like=12_500_000) == "11 ns"
    assert duration(-11, signed=True, like=12_500_000) == "−11 ns"
    assert duration(0, like=12_500_000) == "0.00 ms"


def test_thousandths_are_read_downwards():
    assert [thousandths(1240), thousandths(-5, signed=True), thousandths(1_234_567)] == ["1.240", "−0.005", "1,234.567"]


@pytest.mark.parametrize(("share", "shown"), [(0.4712, "47.1 %"), (0, "0.0 %"), (0.0001, "<0.1 %"), (None, "–")])
def test_a_share_that_is_not_nothing_never_reads_nothing(share, shown):
    assert percent(share) == shown


def test_other_quantities():
    assert [ratio(1.307), ratio(2.83), ratio(1234.5)] == ["1.31 ×", "2.8 ×", "1,234 ×"]
    assert [size(17.3 * 2**20), size(512), size(None)] == ["17.3 MiB", "512 B", "–"]
    assert [count(12_000), count(2.5), count(sum([0.1] * 10))] == ["12,000", "2.5", "1"]


@pytest.mark.parametrize(
    ("gigabytes", "shown"),
    [(0, "0 GB/s"), (1.74e-05, "17.4 kB/s"), (0.0123, "0.0123 GB/s"), (13.94, "13.9 GB/s"), (1234.5, "1,234 GB/s")],
)
def test_bandwidths(gigabytes, shown):
    assert bandwidth(gigabytes) == shown


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "\x9b31m", "a\x07b", "\u202eevil", "a\nb", "\x7f", "\ud800"])
def test_what_a_terminal_would_obey_is_spelled_out(hostile):
    shown = sanitize(hostile)
    assert shown.isprintable()
    assert shown != hostile


def test_long_text_is_cut_in_the_middle():
    assert sanitize("abcdefghij", 5) == "ab…ij"
    assert sanitize("abcde", 5) == "abcde"
