"""`TracekitCallback` for the Trainer of Hugging Face's transformers."""

import sys
import weakref
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from tracekit.base.units import many
from tracekit.errors.training import NoFrameworkError
from tracekit.integrations.core import Figures, Loop

if find_spec("transformers") is None:
    raise NoFrameworkError("transformers")

from transformers import Trainer, TrainerCallback


class TracekitCallback(TrainerCallback):  # type: ignore[misc]
    """`Trainer(callbacks=[TracekitCallback()])` watches each step of `train` (`tracekit.watch`) and logs its figures.

    A step is one of the optimizer: with `gradient_accumulation_steps`, it has as many micro-batches. Steps in which an
    evaluation, a checkpoint or the end of an epoch falls are set apart. Whenever the Trainer logs a loss, and at the
    end, `Trainer.log` is given the figures. Options are those of `tracekit.watch`.
    """

    def __init__(self, folder: str | Path = "watch", **options: Any) -> None:
        self._loop = Loop(folder, options)
        self._logs = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """No step has begun yet."""
        caller = _trainer()
        # Nothing is called when a training is interrupted, and then its model would never be freed.
        reference = None if caller is None else weakref.ref(caller)

        def log(figures: Figures, step: int) -> None:
            trainer = None if reference is None else reference()
            self._logs = True
            try:
                if trainer is not None:
                    Trainer.log(trainer, figures)  # a subclass's may gather from all ranks, which do not all call it
            finally:
                self._logs = False

        substeps = args.gradient_accumulation_steps
        self._loop.begin(f"a step of the Trainer, {many(substeps, 'micro-batch', 'micro-batches')}", log)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimizer has stepped; at the end of a micro-batch, `on_substep_end` is called instead."""
        self._loop.step(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """The Trainer logs, because it is due, because its loop is over, or because of what is logged here."""
        if self._logs or logs is None:
            return
        if "loss" in logs:
            self._loop.log(state.global_step)
        elif logs.keys() >= {"train_runtime", "train_loss"}:
            # The last log. At `on_train_end`, reporters, which are called before this callback, are closed already.
            self._loop.end(state.global_step)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """It falls in the step after the one that made it due."""
        self._loop.apart()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """So does a checkpoint."""
        self._loop.apart()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The step that follows includes the begin of another pass over the data."""
        self._loop.apart()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The loop is over, if the Trainer has not logged that."""
        self._loop.end(state.global_step)


def _trainer() -> Any:
    """The Trainer that calls this callback: only `log` reaches every reporter, and a callback is not given it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if issubclass(type(caller), Trainer):  # isinstance would ask a proxy what it stands for, which may raise
            return caller
        frame = frame.f_back
    return None
