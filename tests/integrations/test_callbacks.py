"""Each callback under a framework made up here, which calls what the real one does and in the same order: what becomes
a step, what is set apart, and what the framework's log is given. The real ones train in tests/verify.
"""

import gc
import importlib
import sys
import weakref
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest
import torch

import tracekit
from tracekit.errors import TracekitError

FIGURES = {"tracekit/step_ms": 2.0}


class Watch:
    path = None

    def __init__(self, folder, step):
        self.folder, self.words, self.calls = folder, step, []

    def step(self):
        self.calls.append("step")

    def apart(self):
        self.calls.append("apart")

    def summary(self):
        return dict(FIGURES)

    def close(self):
        self.calls.append("close")


@pytest.fixture
def watches(monkeypatch):
    made = []

    def watch(folder, *, step):
        made.append(Watch(folder, step))
        return made[-1]

    monkeypatch.setattr(tracekit, "watch", watch, raising=False)
    return made


@pytest.fixture
def integration(monkeypatch):
    """`integration("lightning", Callback=…)`: the module of ours, with these names in the module of the framework."""

    def load(framework, home="", **names):
        for name in {framework, home or framework}:
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            vars(module).update(names)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, f"tracekit.integrations.{framework.replace('pytorch_', '')}", raising=False)
        return importlib.import_module(f"tracekit.integrations.{framework.replace('pytorch_', '')}")

    return load


class Callback:
    """Whatever is not overridden does nothing."""

    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(name)


class LightningTrainer:
    """Two epochs of four batches, two of which make a step; a sanity check, a validation and a checkpoint in each."""

    accumulate_grad_batches, log_every_n_steps = 2, 2

    def __init__(self, callback):
        self.callback, self.global_step, self.logged = callback, 0, []
        self.loggers = [SimpleNamespace(log_metrics=lambda figures, step: self.logged.append((step, figures)))]

    def fit(self, fails=False):
        call = lambda name, *args: getattr(self.callback, name)(self, None, *args)  # noqa: E731
        call("on_validation_start")
        call("on_train_start")
        for _ in range(2):
            for batch in range(4):
                self.global_step += batch % 2
                call("on_train_batch_end", None, None, batch)
                if fails:
                    return call("on_exception", RuntimeError())
            call("on_validation_start")
            call("on_save_checkpoint", {})
            call("on_train_epoch_end")
        call("on_train_end")


@pytest.mark.parametrize(("framework", "home"), [("lightning", "lightning.pytorch"), ("pytorch_lightning", "")])
def test_lightning(watches, integration, monkeypatch, framework, home):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    callback = integration(framework, home, Callback=Callback).TracekitCallback("here")
    assert isinstance(callback, Callback)
    trainer = LightningTrainer(callback)
    trainer.fit()
    (watch,) = watches
    assert watch.calls == ["step", "step", "apart", "apart", "apart"] * 2 + ["close"]
    assert (str(watch.folder), watch.words) == ("here", "a step of Lightning's Trainer, 2 batches")
    assert trainer.logged == [(2, FIGURES), (4, FIGURES), (4, FIGURES)]


def test_lightning_whose_training_fails(watches, integration):
    trainer = LightningTrainer(integration("lightning", "lightning.pytorch", Callback=Callback).TracekitCallback())
    trainer.fit(fails=True)
    assert watches[0].calls == ["close"]
    assert trainer.logged == []


def test_lightning_logs_at_the_step_that_its_trainer_logs_at(watches, integration):
    """Where two optimizers step for each batch, `global_step` counts both, and the loggers' own steps do not."""
    trainer = LightningTrainer(integration("lightning", "lightning.pytorch", Callback=Callback).TracekitCallback())
    batches = SimpleNamespace(_batches_that_stepped=0)
    trainer.fit_loop = SimpleNamespace(epoch_loop=batches)
    trainer.callback.on_train_start(trainer, None)
    for number in range(4):
        batches._batches_that_stepped = number
        trainer.global_step += 2
        trainer.callback.on_train_batch_end(trainer, None, None, None, number)
    batches._batches_that_stepped = 4
    trainer.callback.on_train_end(trainer, None)
    assert [step for step, _ in trainer.logged] == [1, 3, 4]


class Trainer:
    """Of transformers: six micro-batches, two of which make a step; it logs each step, and saves after the second."""

    def __init__(self, callbacks):
        self.callbacks, self.logged = callbacks, []
        self.args = SimpleNamespace(gradient_accumulation_steps=2)
        self.state = SimpleNamespace(global_step=0)

    def log(self, logs):
        self.logged.append((self.state.global_step, logs))
        self.call("on_log", logs=logs)

    def call(self, name, **given):
        for callback in self.callbacks:
            getattr(callback, name)(self.args, self.state, SimpleNamespace(), model=None, **given)

    def train(self):
        self.call("on_train_begin")
        for substep in range(6):
            if substep % 2:
                self.state.global_step += 1
                self.call("on_step_end")
                self.log({"loss": 1.0, "train_runtime": 1.0})  # with include_num_input_tokens_seen
                if self.state.global_step == 2:
                    self.call("on_save")
            else:
                self.call("on_substep_end")
        self.call("on_epoch_end")
        self.log({"train_runtime": 1.0, "train_loss": 1.0})
        self.call("on_train_end")


def test_transformers(watches, integration):
    module = integration("transformers", Trainer=Trainer, TrainerCallback=Callback)
    trainer = Trainer([module.TracekitCallback("here")])
    trainer.train()
    (watch,) = watches
    assert watch.calls == ["step", "step", "apart", "step", "apart", "close"]
    assert watch.words == "a step of the Trainer, 2 micro-batches"
    loss, last = {"loss": 1.0, "train_runtime": 1.0}, {"train_runtime": 1.0, "train_loss": 1.0}
    each = [(step, logs) for step in (1, 2, 3) for logs in (loss, FIGURES)]
    assert trainer.logged == [*each, (3, last), (3, FIGURES)]


class Reporter(Callback):
    """One that closes its run at the end: what it is given later begins another run."""

    def __init__(self):
        self.runs, self.is_open = [], False

    def on_log(self, *_, logs, **__):
        if not self.is_open:
            self.runs.append([])
        self.is_open = True
        self.runs[-1].append(logs)

    def on_train_end(self, *_, **__):
        self.is_open = False


def test_transformers_whose_reporters_are_closed_at_the_end(watches, integration):
    module = integration("transformers", Trainer=Trainer, TrainerCallback=Callback)
    reporter = Reporter()  # the Trainer's own are called before those that it is given
    Trainer([reporter, module.TracekitCallback()]).train()
    (run,) = reporter.runs
    assert run.count(FIGURES) == 4


def test_transformers_whose_log_is_a_subclass_s(watches, integration):
    """It may gather from all ranks, and would wait for ever for those that are not watched."""

    class Gathering(Trainer):
        def log(self, logs):
            assert FIGURES.items() != logs.items()
            super().log(logs)

    module = integration("transformers", Trainer=Trainer, TrainerCallback=Callback)
    trainer = Gathering([module.TracekitCallback()])
    trainer.train()
    assert [logs for _, logs in trainer.logged].count(FIGURES) == 4


def test_transformers_whose_training_is_interrupted(watches, integration):
    """No callback hears of it; what the Trainer holds is freed with it."""
    module = integration("transformers", Trainer=Trainer, TrainerCallback=Callback)
    trainer = Trainer([module.TracekitCallback()])
    trainer.call("on_train_begin")
    trainer.call("on_step_end")
    held = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert held() is None


class Accelerator:
    def __init__(self, optimizers):
        self._optimizers = [SimpleNamespace(optimizer=optimizer) for optimizer in optimizers]
        self.gradient_state = SimpleNamespace(end_of_dataloader=False)
        self.hooks, self.logged = [], []

    def register_save_state_pre_hook(self, hook):
        self.hooks.append(hook)
        return SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def save_state(self):
        for hook in self.hooks:
            hook([], [], "folder")

    def log(self, values):
        self.logged.append(values)


@contextmanager
def accelerated(integration):
    weights = torch.nn.Parameter(torch.ones(2))
    weights.grad = torch.ones(2)
    generator, discriminator = (torch.optim.SGD([weights], lr=0.1) for _ in range(2))
    accelerator = Accelerator([generator, discriminator])
    yield accelerator, generator, discriminator, integration("accelerate").watch
    assert (accelerator.hooks, len(generator._optimizer_step_post_hooks)) == ([], 0)  # all was taken out again


def test_accelerate(watches, integration):
    with accelerated(integration) as (accelerator, generator, discriminator, watch):
        with watch(accelerator, "here") as loop:
            for number in range(4):
                discriminator.step()
                accelerator.gradient_state.end_of_dataloader = number == 1
                generator.step()
                if number == 2:
                    accelerator.save_state()
            assert loop.summary() == FIGURES
            loop.apart()
        assert watches[0].calls == ["step", "step", "apart", "step", "apart", "step", "apart", "close"]
        assert watches[0].words == "a step of SGD, prepared by Accelerate"
        assert accelerator.logged == [FIGURES]


def test_accelerate_in_several_trainings(watches, integration):
    """An Accelerator keeps the optimizers of all of them."""
    with accelerated(integration) as (accelerator, generator, discriminator, watch):
        first, second = accelerator._optimizers
        accelerator._optimizers = [first]
        for optimizer in (generator, generator, discriminator, generator):
            if optimizer is discriminator:
                accelerator._optimizers = [first, second]
            with watch(accelerator):
                optimizer.step()
    assert [made.calls for made in watches] == [["step", "close"]] * 4


def test_accelerate_whose_loop_fails(watches, integration):
    with accelerated(integration) as (accelerator, generator, _, watch):

        def train():
            with watch(accelerator):
                generator.step()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            train()
        assert watches[0].calls == ["step", "close"]
        assert accelerator.logged == []


def test_accelerate_that_is_not_as_it_was(watches, integration, caplog):
    """Private names may change: it says so, and the loop trains."""
    accelerator = SimpleNamespace()
    with integration("accelerate").watch(accelerator) as loop:
        assert loop.summary() == {}
    assert watches == []
    assert len(caplog.records) == 1


@pytest.mark.parametrize("framework", ["lightning", "transformers", "accelerate"])
def test_a_framework_that_is_missing_is_one_sentence(monkeypatch, framework):
    for name in (framework, "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"tracekit.integrations.{framework}", raising=False)
    with pytest.raises(ImportError, match=rf"{framework}, which is not installed here\. Install it: ") as raised:
        importlib.import_module(f"tracekit.integrations.{framework}")
    assert isinstance(raised.value, TracekitError)
