"""The record of a process: readable after a kill, bounded, and hostile where others wrote it."""

import multiprocessing
import os
import signal
import struct
import time

import pytest

from tracekit.base import disclosure
from tracekit.base.rings import KIND_BYTES
from tracekit.confidential import Confidential
from tracekit.loading.record import (
    _LAYOUT,
    _MOST_FILES,
    _PLACES,
    BATCHES,
    ELSEWHERE,
    Batch,
    Facts,
    Place,
    Record,
    Request,
    Sample,
    read_all,
)
from tracekit.loading.recorder import WorkerRecorder, size_of

FACTS = Facts(process=7, began_ns=1_780_000_000_000_000_000, worker=1, workers=3, cores=8)
MINE = Place("/home/me/secret/data.py", 88, "fetch_patients", "radius_graph", "torch_geometric/nn/pool/__init__.py")


def a_batch(number: int) -> Batch:
    return Batch(number, 5, *range(1000 * number + 10, 1000 * number + 16), 100, 2)


def test_what_is_written_is_read(tmp_path):
    record = Record.create(tmp_path, FACTS)
    record.batches.append(a_batch(0))
    record.requests.append(Request(7, 0, 1, 5, 10, 20))
    record.samples.append(Sample(12, record.number_of(MINE)))
    record.samples.append(Sample(13, ELSEWHERE))
    (recorded,) = read_all(tmp_path)
    assert recorded == (FACTS, [a_batch(0)], [Request(7, 0, 1, 5, 10, 20)], [(12, 0), (13, ELSEWHERE)], {0: MINE})


def test_the_oldest_batches_give_way(tmp_path):
    record = Record.create(tmp_path, FACTS)
    for number in range(BATCHES + 5):
        record.batches.append(a_batch(number))
    (recorded,) = read_all(tmp_path)
    assert [batch.number for batch in recorded.batches] == [*range(6, BATCHES + 5)]


def test_there_are_only_so_many_places_and_files(tmp_path):
    record = Record.create(tmp_path, FACTS)
    numbers = [record.number_of(Place("data.py", line, "f")) for line in range(_PLACES + 3)]
    assert numbers == [*range(_PLACES), *[ELSEWHERE] * 3]
    assert record.number_of(Place("data.py", 3, "f")) == 3
    assert record.number_of(Place("x" * 600, 1, "f")) == record.number_of(Place("\udcff", 1, "f")) == ELSEWHERE
    ended = 1 << 30  # no process has this number
    for began in range(_MOST_FILES + 5):
        Record.create(tmp_path, Facts(process=ended, began_ns=began)).close()
    left = read_all(tmp_path)
    assert len(left) == _MOST_FILES
    assert left[-1].facts == FACTS


def at_work():
    time.sleep(0.1)


def killed_at_work(folder):
    recorder = WorkerRecorder(folder, worker=0, workers=1, rank=0)
    indices, results = multiprocessing.Queue(), multiprocessing.Queue()
    recorder.wrap_queues(indices, results)
    for number in range(3):
        indices.put((number, [number]))
        indices.get()
        at_work()
        results.put((number, b"a batch"))
        results.get()
    time.sleep(0.05)  # until it is known that the last one was sent
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_worker_that_is_killed_leaves_its_record(tmp_path, start):
    process = multiprocessing.get_context(start).Process(target=killed_at_work, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    (recorded,) = read_all(tmp_path)
    assert [batch.number for batch in recorded.batches] == [0, 1, 2]
    assert all(batch.made_ns - batch.began_ns >= 20e6 for batch in recorded.batches)
    assert {(place.function, place.line) for place in recorded.places.values()} == {
        ("at_work", at_work.__code__.co_firstlineno + 1)
    }


def test_what_is_no_record_is_left_out(tmp_path):
    good = Record.create(tmp_path, FACTS)
    for name, content in (("1-1", b""), ("2-2", b"tracekit.loading/1"), ("3-3", os.urandom(_LAYOUT.size))):
        (tmp_path / f"{name}.loading").write_bytes(content)
    (tmp_path / "4-4.loading").mkdir()
    Record.create(tmp_path, Facts(process=8, began_ns=5))
    huge = tmp_path / "6-8.loading"
    huge.write_bytes((tmp_path / f"{FACTS.began_ns}-7.loading").read_bytes().replace(b'"worker":1', b'"worker":-9'))
    assert [recorded.facts.process for recorded in read_all(tmp_path)] == [8, 7]
    assert read_all(tmp_path / "absent") == []
    good.close()


def test_facts_that_are_nested_too_deeply_are_left_out(tmp_path):
    Record.create(tmp_path, FACTS).close()
    (path,) = tmp_path.iterdir()
    facts = b'{"process":7,"began_ns":5,"more":' + b"[" * 900
    with open(path, "rb+") as file:
        file.seek(KIND_BYTES)
        file.write(facts)

    def read_below(frames):
        return read_below(frames - 1) if frames else read_all(tmp_path)

    assert read_below(300) == []


def test_numbers_that_cannot_be_are_left_out(tmp_path):
    record = Record.create(tmp_path, FACTS)
    record.batches.append(a_batch(1))
    record.batches.append(a_batch(2)._replace(made_ns=1))
    record.batches.append(a_batch(3)._replace(sent_ns=(1 << 63) - 1))
    record.batches.append(a_batch(-1)._replace(began_ns=-5))
    record.samples.append(Sample(-1, 0))
    record.samples.append(Sample(5, 1 << 40))
    record.requests.append(Request(7, 0, 0, 30, 20, 10))
    struct.pack_into("<Q", record._memory, _LAYOUT.counts_at + 16, (1 << 64) - 1)  # samples
    (recorded,) = read_all(tmp_path)
    assert [batch.number for batch in recorded.batches] == [1]
    assert recorded.requests == []
    assert recorded.places == {}


def test_a_confidential_report_sees_stand_ins(tmp_path):
    record = Record.create(tmp_path, FACTS)
    record.samples.append(Sample(12, record.number_of(MINE)))
    with disclosure.confidential(Confidential()):
        (recorded,) = read_all(tmp_path)
    (place,) = recorded.places.values()
    assert (place.line, place.callee, place.callee_file) == (88, MINE.callee, MINE.callee_file)  # of a public package
    assert "secret" not in place.file
    assert "patients" not in place.function


def test_the_size_of_a_batch():
    class Tensor:
        nbytes = 40

    class Data:
        def __init__(self):
            self._store = {"x": Tensor(), "edges": [Tensor(), "text", 5]}

    assert size_of((Data(), {"y": Tensor()})) == (120, 3)
    looped = []
    looped.append(looped)
    assert size_of(looped) == (0, 0)
    assert size_of([Tensor()] * 10_000)[1] < 300
