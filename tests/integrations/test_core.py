"""What all callbacks share, driven by a framework that is made up here; its watch is one that tells what was called."""

import copy
import gc
import logging
import pickle
import weakref

import pytest

import tracekit
from tracekit.errors.training import UnreadableResultsError
from tracekit.integrations import core, results
from tracekit.integrations.core import Loop


class Watch:
    """Notes what is called, and raises where that is planted."""

    def __init__(self, folder, planted):
        self.path = folder / "w.watch"
        self.planted, self.calls = planted, []

    def _called(self, name):
        self.calls.append(name)
        if name == self.planted:
            raise RuntimeError(f"planted in {name}")

    def step(self):
        self._called("step")

    def apart(self):
        self._called("apart")

    def summary(self):
        self._called("summary")
        return {"tracekit/step_ms": 2.0}

    def close(self):
        self._called("close")


@pytest.fixture
def training(monkeypatch, tmp_path):
    """A framework that trains five steps, of which every second is logged; an evaluation falls in the third."""
    monkeypatch.setattr(results, "_handled", [])

    def train(planted="", log=None, **options):
        watches, logged = [], []

        def watch(folder, **given):
            if planted == "watch":
                raise RuntimeError("planted in watch")
            watches.append(Watch(folder, planted))
            watches[-1].given = given
            return watches[-1]

        monkeypatch.setattr(tracekit, "watch", watch, raising=False)
        loop = Loop(tmp_path, options)
        loop.begin("a step", log or (lambda figures, number: logged.append((number, figures))))
        for number in range(1, 6):
            if number == 3:
                loop.apart()
            loop.step(number, log_every=2)
        loop.log(5)
        assert isinstance(loop.summary(), dict)
        loop.end(5)
        return (watches[0] if watches else None), logged

    return train


def test_steps_and_what_is_apart_reach_the_watch_and_figures_the_log(training):
    watch, logged = training()
    steps = [name for name in watch.calls if name != "summary"]
    assert steps == ["step", "step", "apart", "step", "step", "step", "close"]
    assert [number for number, _ in logged] == [2, 4, 5, 5]
    assert logged[-1] == (5, {"tracekit/step_ms": 2.0})
    assert watch.given == {"step": "a step"}


def test_the_shares_of_a_trace_join_the_last_figures(training, monkeypatch, tmp_path):
    (tmp_path / "w-step1-slow.pt.trace.json.gz").touch()
    read = []

    def shares(path):
        read.append(path.name)
        return {"tracekit/share/sync_stall": 0.5}

    monkeypatch.setattr(results, "shares", shares)
    watch, logged = training()
    assert logged[-1][1] == {"tracekit/step_ms": 2.0, "tracekit/share/sync_stall": 0.5}
    assert read == ["w-step1-slow.pt.trace.json.gz"]
    assert watch.calls[-1] == "close"  # it is read once, when the watch is over
    assert all("tracekit/share/sync_stall" not in figures for _, figures in logged[:-1])


@pytest.mark.parametrize("planted", ["watch", "step", "apart", "summary", "close"])
def test_an_exception_of_ours_ends_no_training_and_is_logged_once(training, caplog, planted):
    watch, logged = training(planted)
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1
    assert said[0].name == "tracekit"
    assert f"planted in {planted}" in said[0].getMessage()
    assert "your program goes on without it" in said[0].getMessage()
    if watch is not None:  # what it had put into torch is taken out
        assert watch.calls[-1] == "close"
        assert watch.calls.count(planted) <= 2  # nothing is tried again, but to close it
    assert (logged == []) is (planted in ("watch", "step", "summary"))


@pytest.mark.parametrize("planted", ["rank", "is_captured"])
def test_an_exception_while_it_is_found_out_whether_to_watch(training, caplog, monkeypatch, planted):
    def fail(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr(core, planted, fail)
    watch, logged = training()
    assert (watch, logged, len(caplog.records)) == (None, [], 1)


def test_a_log_that_fails_ends_no_training(training, caplog):
    def log(figures, number):
        raise ConnectionError("the tracker is gone")

    watch, _ = training(log=log)
    assert watch.calls[-1] == "close"
    assert [record.getMessage() for record in caplog.records] == [
        "tracekit's callback failed, and your program goes on without it. ConnectionError: the tracker is gone"
    ]


def test_a_trace_that_cannot_be_read_leaves_the_figures_of_the_watch(training, caplog, monkeypatch, tmp_path):
    (tmp_path / "w-step1-slow.pt.trace.json.gz").write_bytes(b"no trace")

    def shares(path):
        raise UnreadableResultsError(path.name, "it is empty")

    monkeypatch.setattr(results, "shares", shares)
    _, logged = training()
    assert logged[-1] == (5, {"tracekit/step_ms": 2.0})
    (said,) = caplog.records
    assert not said.exc_info  # the sentence says it all
    assert "tracekit report w-step1-slow.pt.trace.json.gz" in said.getMessage()


@pytest.mark.parametrize(
    ("variables", "ranks", "watched"),
    [
        ({"TRACEKIT_OFF": "1"}, "0", False),
        ({"TRACEKIT_OFF": "0"}, "0", True),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "0", False),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "all", True),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "0", True),
    ],
)
def test_it_can_be_switched_off_and_other_ranks_are_left_alone(training, monkeypatch, variables, ranks, watched):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    watch, logged = training(**({} if ranks == "0" else {"ranks": ranks}))
    assert (watch is not None) == bool(logged) == watched


def test_options_reach_the_watch(training):
    watch, _ = training(stacks=True)
    assert watch.given == {"step": "a step", "stacks": True}
    watch, _ = training(step="two batches")  # says it better than the framework can
    assert watch.given == {"step": "two batches"}


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """`begun(planted)`: a loop that has begun, its watch, and what holds as much as a framework's trainer."""

    def begin(planted=""):
        watch = Watch(tmp_path, planted)
        monkeypatch.setattr(tracekit, "watch", lambda *_, **__: watch, raising=False)
        loop, trainer = Loop(tmp_path, {"ranks": "all"}), Loop(tmp_path, {})
        loop.begin("a step", lambda figures, number: trainer.steps)
        return loop, watch, weakref.ref(trainer)

    return begin


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda loop: pickle.loads(pickle.dumps(loop))])  # noqa: S301
def test_a_copy_watches_what_is_to_begin(begun, copied, tmp_path):
    """Where a framework spawns processes, it sends its callbacks to them, also after a training in this one."""
    before = copied(Loop(tmp_path, {"ranks": "all"}))
    loop, watch, _ = begun()
    loop.step(1)
    for other in (before, copied(loop)):
        other.step(2)
        other.end(2)
        assert (other.folder, other.options, other.steps) == (tmp_path, {"ranks": "all"}, 0)
    assert watch.calls == ["step"]
    loop.abandon()


@pytest.mark.parametrize("ends", [lambda loop: loop.end(1), Loop.abandon])
def test_a_training_that_is_over_is_not_held_in_memory(begun, ends):
    loop, _, trainer = begun()
    loop.step(1)
    ends(loop)
    gc.collect()
    assert trainer() is None


def test_a_watch_whose_last_figures_cannot_be_had_is_closed(begun, caplog):
    loop, watch, _ = begun("summary")
    loop.step(1)
    loop.end(1)
    assert watch.calls == ["step", "summary", "close"]
    assert len(caplog.records) == 1


def test_a_trace_of_an_earlier_training_says_nothing_of_this_one(training, monkeypatch, tmp_path):
    (tmp_path / "earlier.pt.trace.json.gz").touch()
    monkeypatch.setattr(results, "shares", lambda path: {"tracekit/share/sync_stall": 0.5})
    results.note_trace(tmp_path / "earlier.pt.trace.json.gz")
    _, logged = training()
    assert logged[-1][1] == {"tracekit/step_ms": 2.0}


def test_a_training_that_was_interrupted_gives_way_to_the_next(monkeypatch, tmp_path):
    """A process has one watch at most, and in a notebook no callback hears of an interruption."""
    watches = []
    monkeypatch.setattr(
        tracekit, "watch", lambda *_, **__: watches.append(Watch(tmp_path, "")) or watches[-1], raising=False
    )
    for _ in range(2):
        loop = Loop(tmp_path, {})
        loop.begin("a step", lambda *_: None)
        loop.step(1)
    assert [watch.calls for watch in watches] == [["step", "close"], ["step"]]
    loop.abandon()
    assert watches[1].calls == ["step", "close"]


def test_a_training_that_fails_is_left_even_where_the_watch_fails_too(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(tracekit, "watch", lambda *_, **__: Watch(tmp_path, "close"), raising=False)
    loop = Loop(tmp_path, {})
    loop.begin("a step", lambda *_: None)
    loop.abandon()
    assert len(caplog.records) == 1


def test_ctrl_c_is_the_training_s(training):
    def log(figures, number):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training(log=log)


def test_lines_go_to_the_log_or_where_nobody_reads_it_to_stderr(caplog, capsys):
    core.tell("it is here")
    assert (caplog.messages, capsys.readouterr().err) == ([], "it is here\n")
    with caplog.at_level(logging.INFO, logger="tracekit"):
        core.tell("it is here")
    assert (caplog.messages, capsys.readouterr().err) == (["it is here"], "")


def test_shares_are_of_the_last_variant_that_can_be_answered():
    from tracekit.installed import sample_run

    shares = results.shares(sample_run())
    assert abs(sum(shares.values()) - 1) < 1e-9
    assert all(name.startswith("tracekit/share/") and 0 < share <= 1 for name, share in shares.items())


def test_what_is_no_trace_is_one_sentence(tmp_path):
    (tmp_path / "empty.json").touch()
    with pytest.raises(UnreadableResultsError, match=r"empty\.json could not be read after the loop"):
        results.shares(tmp_path / "empty.json")
