"""256 ranks with skewed clocks and planted stragglers: time grows with the ranks, the coordinator's memory hardly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ranks.many_ranks import plant, read_or_die
from tracekit.ranks.readers import Cluster, Lost, read_all

RANKS, LATE = 256, {77: 900, 200: 400}
ROOT = Path(__file__).parents[2]
# In a separate process, because its memory is measured; nothing is cached, so that every trace is read.
COORDINATOR = """
import json, resource, sys, time
from pathlib import Path
from tracekit.ranks.readers import open_ranks
from tracekit.ranks.readers import readers
from tracekit.profile import open_subject
from tracekit.ranks import collectives
from tracekit.report import report

def main():
    paths, workers, cluster = json.loads(sys.argv[1])
    with readers(workers, cluster) as those:
        open_ranks([Path(paths[0])], those, open_subject, watch=lambda done, of: None)  # until the readers have started
        began = time.monotonic()
        subject = open_ranks([Path(each) for each in paths], those, open_subject, watch=lambda done, of: None)
        took = time.monotonic() - began
    made = report(subject)
    ranks, = made.ranks.values()
    matched = collectives(ranks)
    print(json.dumps({
        "ranks": len(ranks), "seconds": took, "late": {rank: matched.caused_ns(rank) for rank in matched.ranks},
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("job") / "ranks", RANKS, steps=4, late=LATE, skew_us=1300, operators=1000)


def coordinate(job, tmp_path, ranks, workers=2, cluster=None):
    paths = [str(job / f"rank{rank}.json") for rank in range(ranks)]
    script = tmp_path / "coordinator.py"
    script.write_text(COORDINATOR)
    ran = subprocess.run(
        [sys.executable, str(script), json.dumps([paths, workers, cluster])],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEKIT_NO_CACHE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


needs_time = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")


@needs_time
def test_256_ranks_are_linear_and_the_stragglers_are_found(job, tmp_path, record_property):
    few, many = coordinate(job, tmp_path, RANKS // 4), coordinate(job, tmp_path, RANKS)
    assert many["ranks"] == RANKS
    # The later of the two makes all others wait; the other one arrives before it, so only the last one is charged.
    assert {int(rank): caused for rank, caused in many["late"].items() if caused} == {77: {"dataload": 4 * 900_000}}
    growth = many["seconds"] / few["seconds"]
    more = many["memory"] - few["memory"]
    record_property("ranks", (f"{RANKS} against {RANKS // 4} ranks, time", f"{growth:.2f} ×"))
    record_property(
        "ranks", (f"{RANKS} against {RANKS // 4} ranks, memory of the coordinator", f"+{more / 1e6:.1f} MB")
    )
    assert growth < 4 * 1.25
    assert more < 32e6


@needs_time
def test_two_dask_workers_take_about_half_of_what_one_takes(job, tmp_path, record_property):
    distributed = pytest.importorskip("distributed")
    os.environ["TRACEKIT_NO_CACHE"] = "1"  # workers inherit it
    seconds = {}
    for workers in (1, 2):
        with distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster:
            answer = coordinate(job, tmp_path, RANKS, cluster=cluster.scheduler_address)
        assert answer["ranks"] == RANKS
        seconds[workers] = answer["seconds"]
    ratio = seconds[1] / seconds[2]
    record_property("ranks", ("2 Dask workers against 1", f"{ratio:.2f} × faster"))
    assert ratio > 1.4


class Deadly(Cluster):
    """A cluster in which the worker that is given rank 2 is killed, and then the one that is given it next."""

    def submit(self, path, infer_steps):
        return self._client.get_executor(pure=False).submit(read_or_die, path, infer_steps)


@needs_time
def test_workers_that_are_killed_cost_one_rank(tmp_path):
    distributed = pytest.importorskip("distributed")
    folder = plant(tmp_path / "ranks", 6)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Deadly(cluster.scheduler_address) as those,
    ):
        read = read_all(those.traces([folder]), those)
    lost = [each for each in read.values() if isinstance(each, Lost)]
    assert [each.path.name for each in lost] == ["rank2.json"]
    assert lost[0].why.startswith("reading it failed")
