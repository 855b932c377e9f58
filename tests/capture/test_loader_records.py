"""The workers of real loaders record themselves, however they start, and torch is afterwards as it was before."""

import logging
import multiprocessing
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, dataloader, get_worker_info
from torch.utils.data._utils import worker as torch_worker

from tracekit.capture.child.loaders import RecordedLoaders
from tracekit.loading.record import read_all
from tracekit.loading.recorder import WorkerRecorder
from tracekit.loading.stalls import Loading

SLOW_S = 0.05


class Samples(Dataset):
    def __init__(self, get):
        self.get = get

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return self.get(index)


class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index


class Stream(IterableDataset):
    def __iter__(self):
        for number in range(5):
            time.sleep(0.002)
            yield torch.full((10,), number + 100 * get_worker_info().id)


def slow_in_one_worker(index):
    if get_worker_info().id == 2:
        slow_line()
    return torch.full((4,), index)


def slow_line():
    time.sleep(SLOW_S)  # the planted line
    time.sleep(SLOW_S / 10)


def first_line_of(function):
    return function.__code__.co_firstlineno


def recorded(tmp_path, loader, epochs=1):
    """What comes out of the loader, and its records."""
    with RecordedLoaders(tmp_path / "loader", rank=1):
        batches = [batch for _ in range(epochs) for batch in loader]
    del loader
    return batches, read_all(tmp_path / "loader")


def workers_of(records):
    return {one.facts.worker: one for one in records if one.facts.worker >= 0}


def test_the_slow_line_in_one_worker_is_found(tmp_path):
    loader = DataLoader(Samples(slow_in_one_worker), batch_size=1, num_workers=3)
    batches, records = recorded(tmp_path, loader)
    assert [int(batch[0, 0]) for batch in batches] == [*range(24)]
    loading = Loading(records)
    slow = next(worker for worker in loading.workers.values() if worker.facts.worker == 2)
    lines = slow.lines(slow.batches)
    place, spent_ns = lines.most_common(1)[0]
    assert (place.file.rsplit("/")[-1], place.line) == ("test_loader_records.py", first_line_of(slow_line) + 1)
    assert spent_ns / lines.total() > 0.5  # of eight batches; tests/verify has more
    assert {one.facts.rank for one in records} == {1}


def test_each_request_of_the_loop_is_joined_to_its_batch(tmp_path):
    loader = DataLoader(Samples(slow_in_one_worker), batch_size=2, num_workers=3, persistent_workers=True)
    batches, records = recorded(tmp_path, loader, epochs=2)
    loading = Loading(records)
    assert len(batches) == len(loading.requests) == 24
    for epoch in (loading.requests[:12], loading.requests[12:]):
        assert [request.number for request in epoch] == [*range(12)]
        for request in epoch:
            stall = loading.stall(request)
            assert stall.worker == request.number % 3  # batches are dealt out in turn
            assert stall.batch.number == request.number
            assert stall.batch.made_ns <= request.got_ns
            assert stall.waited_ns == request.returned_ns - request.asked_ns
            assert (stall.batch.size, stall.batch.tensors) == (64, 1)


def test_a_stream_out_of_order_and_its_ends(tmp_path):
    loader = DataLoader(Stream(), batch_size=2, num_workers=2, in_order=False)
    batches, records = recorded(tmp_path, loader)
    assert Counter(len(batch) for batch in batches) == {2: 4, 1: 2}
    workers = workers_of(records)
    assert [len(workers[n].batches) for n in (0, 1)] == [3, 3]  # not what says that a stream has ended
    loading = Loading(records)
    assert all(loading.stall(request).batch for request in loading.requests)
    assert len(loading.requests) == 6


def test_a_stream_whose_workers_persist_makes_nothing_between_two_epochs(tmp_path):
    loader = DataLoader(Stream(), batch_size=2, num_workers=2, persistent_workers=True)
    with RecordedLoaders(tmp_path / "loader"):
        for _ in range(2):
            assert len([*loader]) == 6
            time.sleep(0.2)
    del loader
    for worker in workers_of(read_all(tmp_path / "loader")).values():
        assert [batch.tensors for batch in worker.batches] == [1] * 6
        last_ns = worker.batches[2].made_ns
        assert not [sample for sample in worker.samples if last_ns < sample.at_ns < worker.batches[3].began_ns - 10**7]


def started(worker):
    print(f"worker {worker} starts", flush=True)


def test_the_users_own_start_and_failures(tmp_path, capfd):
    def get(index):
        if index == 3:
            raise KeyError("no such sample")
        return np.ones(index + 1)

    loader = DataLoader(Samples(get), batch_size=None, num_workers=1, worker_init_fn=started)
    with pytest.raises(KeyError, match="no such sample"):
        recorded(tmp_path, loader)
    assert "worker 0 starts" in capfd.readouterr().out
    (worker,) = workers_of(read_all(tmp_path / "loader")).values()
    assert [batch.number for batch in worker.batches[:3]] == [0, 1, 2]
    assert 3 not in {batch.number for batch in worker.batches}


def test_graphs_are_cut_out_while_collating(tmp_path):
    from torch_geometric.data import Data
    from torch_geometric.loader import RandomNodeLoader

    graph = Data(x=torch.ones(2000, 8), edge_index=torch.randint(0, 2000, (2, 20_000)))
    batches, records = recorded(tmp_path, RandomNodeLoader(graph, num_parts=8, num_workers=2))
    assert len(batches) == 8
    for worker in workers_of(records).values():
        assert len(worker.batches) == 4
        fetching, collating = (
            [getattr(batch, end) - getattr(batch, begin) for batch in worker.batches]
            for begin, end in (("began_ns", "collating_ns"), ("collating_ns", "made_ns"))
        )
        assert min(collating) > min(fetching)  # each may have to wait for a core
        for batch in worker.batches:
            assert batch.size > 2000 / 8 * 8 * 4  # its features
            assert batch.tensors >= 2


class Lookup:
    """Takes whatever attribute it is asked for from a table, and fails where the table has none."""

    def __init__(self, index):
        self.__dict__["table"] = {"x": torch.full((2,), index)}

    def __getattr__(self, name):
        return self.__dict__["table"][name]

    def __reduce__(self):
        return Lookup, (int(self.x[0]),)


class Indexed(Sequence):
    """Cannot be sliced."""

    def __init__(self, index):
        self.index = index

    def __len__(self):
        return 3

    def __getitem__(self, at):
        return {0: self.index, 1: self.index, 2: self.index}[at]


class Huge:
    """An object that claims to be larger than any memory."""

    nbytes = 1 << 70

    def __init__(self, _=0):
        pass


def first(samples):
    return samples[0]


@pytest.mark.parametrize("kind", [Lookup, Indexed, Huge])
def test_objects_that_cannot_be_asked_for_their_size_end_nothing(tmp_path, kind):
    loader = DataLoader(Samples(kind), batch_size=1, num_workers=1, collate_fn=first)
    batches, records = recorded(tmp_path, loader)
    assert len(batches) == 24
    assert len(workers_of(records)[0].batches) == 24


@pytest.mark.parametrize(("context", "epochs"), [("fork", 2), ("spawn", 1)])
def test_workers_tell_to_which_loader_they_belong(tmp_path, context, epochs):
    loaders = [DataLoader(Numbers(), num_workers=1, multiprocessing_context=context) for _ in range(2)]
    with RecordedLoaders(tmp_path / "loader"):
        for _ in range(epochs):
            assert len([*zip(*loaders, strict=True)]) == 4
    records = [one for one in read_all(tmp_path / "loader") if one.facts.worker >= 0]
    assert sorted(Counter(one.facts.loader for one in records).values()) == [epochs] * 2  # in each the same


class Drawn:
    """A sampler that takes its batches of indices from another loader, which has more workers."""

    def __iter__(self):
        return (indices.tolist() for indices in DataLoader(Numbers(), num_workers=2))


def test_a_sampler_may_draw_from_a_loader_of_its_own(tmp_path, caplog):
    loader = DataLoader(Samples(torch.tensor), batch_sampler=Drawn(), num_workers=1)
    batches, records = recorded(tmp_path, loader)
    assert (len(batches), caplog.text) == (4, "")
    outer, *_ = (one for one in records if one.facts.workers == 1)
    requests = [one for each in records for one in each.requests]
    assert [one.number for one in requests if one.process == outer.facts.process] == [0, 1, 2, 3]
    assert len(requests) == 8


def test_what_a_fork_of_the_loop_loads_is_no_request_of_the_loop(tmp_path):
    with RecordedLoaders(tmp_path / "loader"):
        assert len([*DataLoader(Numbers(), num_workers=1)]) == 4
        fork = multiprocessing.get_context("fork").Process(target=lambda: [*DataLoader(Numbers(), num_workers=1)])
        fork.start()
        fork.join(60)
        assert fork.exitcode == 0
    assert sum(len(one.requests) for one in read_all(tmp_path / "loader")) == 4


def test_the_last_batch_is_recorded_although_the_loop_has_it_and_ends_the_worker(tmp_path, monkeypatch):
    noted_at_once = WorkerRecorder._sent

    def noted_late(recorder):
        time.sleep(0.01)
        noted_at_once(recorder)

    monkeypatch.setattr(WorkerRecorder, "_sent", noted_late)
    _, records = recorded(tmp_path, DataLoader(Samples(torch.tensor), num_workers=1))
    assert len(workers_of(records)[0].batches) == 24


def test_a_loader_with_a_way_of_its_own_to_the_next_batch_ends_nothing(tmp_path, monkeypatch):
    own = dataloader._MultiProcessingDataLoaderIter._next_data
    loader = DataLoader(Samples(torch.tensor), num_workers=1)
    with RecordedLoaders(tmp_path / "loader"):
        monkeypatch.setattr(dataloader._MultiProcessingDataLoaderIter, "_next_data", own)  # as a subclass could
        batches = []
        thread = threading.Thread(target=lambda: batches.extend(loader))  # in which nothing was asked for before
        thread.start()
        thread.join()
        monkeypatch.undo()
    assert len(batches) == 24


def test_torch_is_as_it_was(tmp_path):
    iterator = dataloader._MultiProcessingDataLoaderIter
    before = {**vars(iterator)}, torch_worker._worker_loop
    with RecordedLoaders(tmp_path / "loader"):
        assert torch_worker._worker_loop is not before[1]
    assert ({**vars(iterator)}, torch_worker._worker_loop) == before


def test_a_folder_that_cannot_be_written_ends_nothing(tmp_path, caplog):
    (tmp_path / "loader").write_text("a file")
    batches, records = recorded(tmp_path, DataLoader(Samples(torch.tensor), num_workers=1))
    assert (len(batches), records) == (24, [])
    assert "not recorded" in caplog.text


def test_a_folder_that_is_lost_is_told_once_in_a_training(tmp_path, capfd, caplog, monkeypatch):
    (handler,) = (one for one in logging.getLogger().handlers if one is caplog.handler)
    monkeypatch.setattr(handler, "stream", sys.stderr)  # which workers write to as well
    with RecordedLoaders(tmp_path / "loader"):
        for epoch in range(3):
            assert len([*DataLoader(Samples(torch.tensor), batch_size=8, num_workers=2)]) == 3
            if not epoch:
                shutil.rmtree(tmp_path / "loader")
                (tmp_path / "loader").write_text("a file")
    assert capfd.readouterr().err.count("what a worker of the data loader does is not recorded: [Errno 17]") == 1
