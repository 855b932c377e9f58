"""A loop that waits for its batches: what is slow, and what to do about it."""

import pytest

from tests.findings.edits import Tape, slow_loader
from tests.findings.healthy import healthy
from tests.findings.pointing import points_at_events
from tracekit.findings import Finding, diagnose
from tracekit.profile import open_subject

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
ITSELF = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def waiting(tmp_path, put, steps=slice(None)) -> Finding | None:
    """The findings about a healthy loop of six steps of 10 ms that waits in these steps."""
    tape = Tape.read(healthy(tmp_path / "made.json", waits=True))
    tape.plant(tape.idle_moments()[steps], put)
    profile = open_subject([tape.write(tmp_path / "planted.json")]).profiles[0]
    matching = [each for each in diagnose(profile).all_findings if each.id == "dataloader_bound"]
    for each in matching:
        points_at_events(profile, each)
    return matching[0] if matching else None


def waits(name, lasting, *inside):
    """The loop waits for some µs, during which the loading thread does something."""

    def put(tape, at):
        tape.add("user_annotation", name, at, lasting)
        for cat, its_name, start, length in inside:
            tape.add(cat, its_name, at + start, length)
        return lasting

    return put


def test_a_loader_in_the_loops_own_process(tmp_path):
    finding = waiting(tmp_path, slow_loader(4000.0))
    assert "num_workers" in finding.advice
    assert "in the training process itself: 4.00 ms in image::decode_jpeg" in finding.title
    assert finding.where.operator == "image::decode_jpeg"


@pytest.mark.parametrize(
    "inside",
    [
        [("cpu_op", "aten::stack", 3000, 900)],
        [("python_function", "torch/utils/data/_utils/collate.py(131): default_collate", 3000, 900)],
        [("python_function", "torch_geometric/loader/dataloader.py(20): Collater.__call__", 3000, 950),
         ("python_function", "<built-in method sorted>", 3010, 900)],
    ],
)  # fmt: skip
def test_a_batch_that_is_slow_to_put_together(tmp_path, inside):
    finding = waiting(tmp_path, waits(ITSELF, 4000.0, ("cpu_op", "image::decode_jpeg", 1, 2900), *inside))
    assert "collating is 2" in finding.title
    assert "collate fewer" in finding.advice
    assert ".py" not in finding.title
    assert finding.where.operator == "image::decode_jpeg"


def test_nothing_is_said_of_collating_where_something_else_is_slow(tmp_path):
    finding = waiting(tmp_path, slow_loader(4000.0))
    assert "collat" not in finding.title + finding.advice


def test_workers_that_are_too_few(tmp_path):
    finding = waiting(
        tmp_path, waits(WORKERS, 4000.0, ("python_function", "<method 'poll' of 'select.poll' objects>", 1, 3990))
    )
    assert finding.advice.startswith("Use more workers (num_workers)")
    assert "for 1 batch of its workers. Without this wait a step would take 10.1 ms instead of 14.1 ms" in finding.why
    assert "To keep up, one worker more for every 2 would be needed" in finding.why
    assert finding.where.operator == WORKERS
    assert finding.evidence[0].name == WORKERS


@pytest.mark.parametrize(
    ("wait", "needed"),
    [
        (600.0, ""),
        (1500.0, "one worker more for every 6"),
        (9000.0, "one worker more for each"),
        (22_000.0, "4 workers for each one"),
    ],
)
def test_workers_are_whole(tmp_path, wait, needed):
    """A step takes 10.1 ms without the wait."""
    finding = waiting(tmp_path, waits(WORKERS, wait))
    assert "Without this wait a step would take 10.1 ms instead of " in finding.why
    assert finding.why.endswith(f". To keep up, {needed} would be needed, and cores for them." if needed else " ms.")
    assert ("num_workers" in finding.advice) is bool(needed)


def test_workers_that_only_start(tmp_path):
    finding = waiting(tmp_path, waits(WORKERS, 40_000.0), slice(0, 1))
    assert "at its start" in finding.title
    assert "persistent_workers" in finding.advice
    assert "num_workers" not in finding.advice


def test_batches_that_are_there_in_time(tmp_path):
    assert waiting(tmp_path, waits(WORKERS, 20.0)) is None
    assert waiting(tmp_path, lambda tape, at: 0.0) is None


@pytest.mark.parametrize(
    ("until", "said"),
    [
        (2000.0, " at data.py:10 (50.0 %) and at data.py:30 (50.0 %)"),
        (3700.0, " at data.py:10"),
    ],
)
def test_lines_that_share_a_wait_are_all_named(tmp_path, until, said):
    frames = [
        ("python_function", "data.py(10): __getitem__", 0, until),
        ("cpu_op", "image::decode_jpeg", 1, until - 2),
        ("python_function", "data.py(30): join", until, 4000.0 - until),
        ("cpu_op", "aten::stack", until + 1, 3998.0 - until),
    ]
    finding = waiting(tmp_path, waits(ITSELF, 4000.0, *frames))
    assert finding.headline == f"Data loader: the loop waits for its next batch{said}"
    assert (finding.where.file, finding.where.line) == ("data.py", 10)
    first = "Make __getitem__ at data.py:10 cheaper first: it has the largest part of the wait. "
    assert finding.advice.startswith(first)


REBUILDS = "torch/multiprocessing/reductions.py(537): rebuild_storage_fd"


@pytest.mark.parametrize("receiving", [2900.0, 500.0])
def test_more_workers_do_not_make_it_faster_to_receive_a_batch(tmp_path, receiving):
    finding = waiting(tmp_path, waits(WORKERS, 4000.0, ("python_function", REBUILDS, 50, receiving)))
    assert ("Use more workers" in finding.advice) is (receiving < 2000)
    assert ("72.5 % of it to receive batches" in finding.why) is (receiving > 2000)
    assert ("Try num_workers=0" in finding.advice) is (receiving > 2000)


def test_a_batch_that_is_made_sooner_than_sent_needs_no_worker(tmp_path):
    finding = waiting(
        tmp_path, waits(ITSELF, 900.0, ("cpu_op", "aten::stack", 10, 400), ("cpu_op", "aten::cat", 20, 300))
    )
    assert (
        "making a batch takes 900 µs, and a worker would have to send it, which takes about 1.20 ms (est" in finding.do
    )
    assert "Load in other processes" not in finding.do
    tensors = [("cpu_op", "aten::stack", 100 * k, 50) for k in range(6)]
    assert "about 3.60 ms" in waiting(tmp_path, waits(ITSELF, 900.0, *tensors)).do


def test_where_nothing_shows_the_receiving_it_is_estimated(tmp_path):
    finding = waiting(tmp_path, waits(WORKERS, 1150.0))
    assert "takes about 1.20 ms (estimated), which more workers do not shorten" in finding.do
    assert "would be needed" not in finding.why
