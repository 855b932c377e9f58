"""How fast a device gathers rows, measured on the one that is present."""

from tracekit.capture.environment import gather_bytes_per_s


def test_it_is_a_rate_that_memory_can_have():
    assert 1e6 < gather_bytes_per_s("cpu", rows=1 << 12) < 1e13
