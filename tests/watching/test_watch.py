"""A training that is watched: its steps are in the record, whatever happens to it."""

import functools
import gc
import logging
import os
import queue
import random
import signal
import threading
import time
import weakref

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import tracekit
from tests.watching.small_training import Numbers, Training, forked_training, record, steps, watch
from tracekit.watched import Flag, Record, registry
from tracekit.watched.reading import read_watch
from tracekit.watching import loop
from tracekit.watching.tally import PlainTally, Tally


def test_steps_end_where_the_optimizer_steps(tmp_path):
    training = Training()
    with watch(tmp_path):
        for _ in range(40):
            training.step()
    assert [step.number for step in steps(tmp_path)] == list(range(40))
    assert all(step.step_ns == step.host_ns > 0 for step in steps(tmp_path))
    facts = record(tmp_path).facts
    assert (facts.process, facts.rank, facts.step, facts.clock) == (os.getpid(), 0, "a step of SGD", "perf_counter")
    (minute,) = record(tmp_path).minutes.entries()
    assert minute.steps == 40
    assert minute.least_ns <= minute.median_ns <= minute.most_ns


@pytest.mark.parametrize("kind", [Tally, PlainTally])
def test_each_fold_is_watched_and_none_is_kept(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(loop, "Tally", kind)
    seen = []
    with watch(tmp_path):
        for _ in range(3):
            training = Training()
            for _ in range(40):
                training.step()
            seen.append(weakref.ref(training.optimizer))
            del training
            gc.collect()
        assert [optimizer() for optimizer in seen] == [None, None, None]
    assert len(steps(tmp_path)) == 120


def test_marks_end_steps_instead_of_optimizers(tmp_path):
    training = Training()
    with watch(tmp_path, step="two batches") as watched:
        for _ in range(10):
            training.step()
            training.step()
            watched.step()
        for _ in range(5):
            tracekit.step()
    assert len(steps(tmp_path)) == 15
    assert record(tmp_path).facts.step == "two batches"


def test_marks_that_begin_later_are_what_a_step_is(tmp_path):
    training = Training()
    with watch(tmp_path):
        for _ in range(3):
            training.step()
            tracekit.step()
    assert len(steps(tmp_path)) == 4
    assert record(tmp_path).facts.step == "a call of step()"


def test_nothing_of_it_is_left_in_torch(tmp_path):
    from torch._dynamo.callback import callback_handler
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    def put_in():
        return (
            *(_BaseDataLoaderIter.__next__, DataLoader.__iter__, torch.serialization._save, torch.optim.SGD.step),
            *(torch.autograd.profiler.profile._prepare_trace, torch.autograd.profiler.profile.__exit__),
            *(len(gc.callbacks), len(callback_handler.start_callbacks), len(callback_handler.end_callbacks)),
            signal.getsignal(signal.SIGUSR2),
        )

    Training().step()
    before = put_in()
    with watch(tmp_path, on_signal=signal.SIGUSR2):
        during = put_in()
    assert put_in() == before
    assert all(now != then for now, then in zip(during, before, strict=True))


def test_what_was_put_over_ours_stays(tmp_path):
    training, calls = Training(), []
    kind = torch.optim.SGD
    before = kind.step
    with watch(tmp_path):
        training.step()
        ours = kind.step

        @functools.wraps(ours)
        def theirs(*args, **kwargs):
            calls.append(None)
            return ours(*args, **kwargs)

        kind.step = theirs
        training.step()
    try:
        assert kind.step is theirs
        training.step()
        assert len(calls) == 2
        assert len(steps(tmp_path)) == 2
        with watch(tmp_path / "again"):
            training.step()
        assert len(calls) == 3
        assert len(steps(tmp_path / "again")) == 1
        assert kind.step is theirs
    finally:
        kind.step = before


def test_waits_for_batches_are_noted(tmp_path):
    training = Training()
    with watch(tmp_path) as watched:
        for batch in DataLoader(Numbers(4, 0.005)):
            training.step(batch)
        for batch in watched.batches(Numbers(2, 0.005)[at] for at in range(2)):
            training.step(batch)
    assert watched.path in tmp_path.iterdir()
    waits = [step.waited_ns for step in steps(tmp_path)]
    assert len(waits) == 6
    assert min(waits) >= 5_000_000
    assert [step.batches for step in steps(tmp_path)] == [1] * 6
    assert all(step.waited_ns <= step.host_ns for step in steps(tmp_path))


def test_a_thread_that_fetches_ahead_is_not_the_loop_that_waits(tmp_path):
    training, ahead = Training(), queue.Queue()
    with watch(tmp_path) as watched:
        batches = watched.batches(DataLoader(Numbers(5, 0.1)))
        thread = threading.Thread(target=lambda: [ahead.put(batch) for batch in batches])
        thread.start()
        for _ in range(5):
            training.step(ahead.get())
        thread.join()
    assert [(step.waited_ns, step.batches) for step in steps(tmp_path)] == [(0, 0)] * 5


def test_workers_are_named_and_write_nothing(tmp_path):
    training = Training()
    with watch(tmp_path):
        for batch in DataLoader(Numbers(12), num_workers=2):
            training.step(batch)
    assert {step.worker for step in steps(tmp_path)[1:]} == {0, 1}  # the first waited longest for the workers to start
    assert len(steps(tmp_path)) == 12
    assert len([*tmp_path.glob("*.watch")]) == 1


class Workers(IterableDataset):
    """The number of each worker, as often as it has samples: the first one has none."""

    def __iter__(self):
        for _ in range(3 * get_worker_info().id):
            time.sleep(0.02)
            yield get_worker_info().id


class SlowFirst(Numbers):
    """The number of the worker, the first one of which is slow to begin."""

    def __getitem__(self, index):
        time.sleep(0.5 if index == 0 else 0.01)
        return get_worker_info().id


@pytest.mark.parametrize("dataset", [Workers(), SlowFirst(8)])
def test_the_worker_is_named_that_made_the_batch(tmp_path, dataset):
    training = Training()
    with watch(tmp_path, step="a batch") as watched:
        made = []
        watched.step()  # the workers begin in the next one, which waits for them longest
        for batch in DataLoader(dataset, num_workers=2, batch_size=None, in_order=False):
            made.append(batch)
            training.step()
            watched.step()
    told = [step.worker for step in steps(tmp_path)]
    assert len(set(made)) == (1 if isinstance(dataset, Workers) else 2)
    assert told[2:] == made[1:]


def test_a_fork_writes_nothing_and_can_be_watched_itself(tmp_path):
    training = Training()
    with watch(tmp_path / "parent"):
        training.step()
        child = os.fork()
        if not child:
            status = 1
            try:
                with watch(tmp_path / "child") as own:
                    for _ in range(20):
                        training.step()
                    status = 0 if own.path else 1
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        training.step()
    assert len(steps(tmp_path / "parent")) == 2
    assert len(steps(tmp_path / "child")) == 20


def test_an_evaluation_and_a_checkpoint_are_apart(tmp_path):
    training = Training()
    with watch(tmp_path):
        training.step()
        for _ in DataLoader(Numbers(3)):
            pass
        training.step()
        for is_zip in (True, False):
            torch.save(training.parameter, tmp_path / "saved.pt", _use_new_zipfile_serialization=is_zip)
            training.step()
        training.step()
    assert [step.flags & Flag.APART for step in steps(tmp_path)] == [0, Flag.APART, Flag.APART, Flag.APART, 0]


def test_a_summary_is_of_the_steps_since_the_last(tmp_path):
    training = Training()
    with watch(tmp_path) as watched:
        assert watched.summary() == {}
        for _ in range(7):
            training.step()
        first = watched.summary()
        training.step()
        second = watched.summary()
    assert (first["tracekit/steps"], second["tracekit/steps"]) == (7, 1)
    assert first["tracekit/step_ms"] <= first["tracekit/longest_step_ms"]
    assert 0 <= first["tracekit/share/waiting"] <= 1


@pytest.mark.parametrize("value", ["1", "yes"])
def test_it_can_be_switched_off(tmp_path, monkeypatch, value):
    monkeypatch.setenv("TRACEKIT_OFF", value)
    training = Training()
    with watch(tmp_path / "watch") as watched:
        training.step()
        watched.step()
        watched.snap()
        assert watched.summary() == {}
        assert [*watched.batches([1, 2])] == [1, 2]
    assert not (tmp_path / "watch").exists()


def test_only_rank_0_is_watched_unless_all_are(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    training = Training()
    for ranks in ("0", "all"):
        with watch(tmp_path / ranks, ranks=ranks):
            training.step()
            training.step()
    assert not [*(tmp_path / "0").iterdir()]
    assert record(tmp_path / "all").facts.rank == 1
    assert len(steps(tmp_path / "all")) == 2


def test_a_second_watch_does_nothing_and_says_so(tmp_path, caplog):
    training = Training()
    with watch(tmp_path / "first"):
        with watch(tmp_path / "second") as second:
            training.step()
            second.step()
        training.step()
    assert len(steps(tmp_path / "first")) == 2
    assert not (tmp_path / "second").exists()
    assert [entry.getMessage() for entry in caplog.records] == [
        f"this process is watched already, into {tmp_path / 'first'}: a second watch does nothing"
    ]


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    training = Training()
    with watch(tmp_path / "file" / "watch"):
        training.step()
        training.step()
    assert [entry.getMessage() for entry in caplog.records] == [
        f"this training is not watched: {tmp_path / 'file' / 'watch'} cannot be written (Not a directory)"
    ]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_a_full_disk_is_told_once_and_training_goes_on(tmp_path, caplog, monkeypatch):
    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "posix_fallocate", full)
    training = Training()
    with watch(tmp_path):
        training.step()
        training.step()
    assert [entry.getMessage() for entry in caplog.records] == [
        f"this training is not watched: {tmp_path} cannot be written (No space left on device)"
    ]
    assert not [*tmp_path.iterdir()]


def test_a_failure_of_ours_is_told_once_and_training_goes_on(tmp_path, caplog, monkeypatch):
    training = Training()
    with watch(tmp_path) as watched:
        training.step()
        monkeypatch.setattr(watched._observation._thread_clock, "passed", lambda host_ns: 1 / 0)
        for _ in range(3):
            training.step()
    assert [entry.getMessage() for entry in caplog.records] == ["tracekit failed, and stops watching this training"]
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("arguments", [{"ranks": "1"}, {"trace_steps": 0}, {"traces_per_hour": -1}])
def test_arguments_that_mean_nothing_are_refused(tmp_path, arguments):
    with pytest.raises(ValueError, match="must be"):
        watch(tmp_path, **arguments)


def test_a_later_watch_in_the_same_folder_leaves_earlier_records_alone(tmp_path):
    training = Training()
    for _ in range(3):
        with watch(tmp_path):
            training.step()
    records = [Record.open(path) for path in sorted(tmp_path.glob("*.watch"))]
    assert [len(found.steps.entries()) for found in records] == [1, 1, 1]


def test_a_watch_lasts_from_its_beginning_also_where_others_began_in_the_same_second(tmp_path):
    training = Training()
    for _ in range(3):
        with watch(tmp_path):
            for _ in range(2):
                time.sleep(0.05)
                training.step()
    for path in tmp_path.glob("*.watch"):
        watched = read_watch(path)
        steps_ns = sum(step.host_ns for step in watched.shown.steps)
        assert watched.lasted_ns == pytest.approx(steps_ns, abs=20_000_000)


def test_a_record_is_readable_after_a_kill_at_any_moment(tmp_path):
    draw = random.Random(0)
    for number in range(6):
        folder = tmp_path / str(number)
        with forked_training(folder) as process:
            time.sleep(draw.uniform(0.0, 0.3))
        found = record(folder)
        assert found.facts.process == process
        numbers = [step.number for step in found.steps.entries()]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else number == 0
        assert all(0 < step.host_ns < 60e9 for step in found.steps.entries())
    assert numbers
    assert registry.running() == []


def test_threads_that_drive_the_steps_may_end(tmp_path, caplog):
    training = Training()

    def epoch():
        for _ in range(3):
            training.step()
            time.sleep(0.003)

    with watch(tmp_path):
        for _ in range(2):
            thread = threading.Thread(target=epoch)
            thread.start()
            thread.join()
            time.sleep(0.02)  # the system takes a moment to forget it
    assert [step.number for step in steps(tmp_path)] == list(range(6))
    assert all(step.processor_ns <= step.host_ns for step in steps(tmp_path))
    assert not caplog.records


def test_a_step_in_another_thread_hides_none(tmp_path):
    training, other = Training(), Training()
    begun, over = threading.Event(), threading.Event()

    def closure():
        begun.set()
        assert over.wait(60)

    with watch(tmp_path):
        training.step()
        thread = threading.Thread(target=other.optimizer.step, args=(closure,))
        thread.start()
        assert begun.wait(60)
        for _ in range(3):
            training.step()
        over.set()
        thread.join()
        training.step()
    assert len(steps(tmp_path)) == 5


def test_the_training_may_change_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    training, elsewhere = Training(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    with watch("watch", trace_steps=1) as watched:
        os.chdir(elsewhere)
        training.step()
        watched.snap()
        for _ in DataLoader(Numbers(3), num_workers=1):
            training.step()
    assert [*elsewhere.iterdir()] == []
    assert sorted(path.suffix for path in (tmp_path / "watch").iterdir()) == ["", ".gz", ".watch"]
