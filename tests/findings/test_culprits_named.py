"""The first finding names somebody: a line, a function, an operator or a kernel."""

import pytest
from real import trace_names, trace_path

from tests.world.worlds import world
from tracekit.findings import diagnose
from tracekit.profile import open_subject

_WANTED = 0.9  # of the traces


def share_named(paths):
    """Of how many of these recordings of a GPU the first finding names a culprit."""
    profiles = (open_subject([path]).profiles[0] for path in paths)
    first = [diagnose(profile).told[0].where for profile in profiles if profile.trace.device == "gpu"]
    named = [bool(where.file or where.function or where.operator or where.kernel) for where in first]
    return sum(named) / len(named)


@pytest.mark.traces
def test_of_real_traces():
    assert share_named(map(trace_path, trace_names())) >= _WANTED


def test_of_worlds(tmp_path):
    folders = [tmp_path / str(seed) for seed in range(40)]
    for folder in folders:
        folder.mkdir()
    assert share_named(world(int(folder.name)).write(folder) for folder in folders) >= _WANTED
