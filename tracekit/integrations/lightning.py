"""`TracekitCallback` for the Trainer of Lightning, whether it is imported as `lightning` or as `pytorch_lightning`."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tracekit.base.units import many
from tracekit.errors.training import NoFrameworkError
from tracekit.integrations.core import Figures, Loop

_PACKAGES = ("lightning", "pytorch_lightning")


def _callback() -> type[Any]:
    """The base class of the package that the script has imported, or of one that it can."""
    names = [name for name in _PACKAGES if sys.modules.get(name)] or [name for name in _PACKAGES if find_spec(name)]
    if not names:
        raise NoFrameworkError("lightning")
    callback: type[Any] = import_module("lightning.pytorch" if names[0] == "lightning" else names[0]).Callback
    return callback


class TracekitCallback(_callback()):  # type: ignore[misc]
    """`Trainer(callbacks=[TracekitCallback()])` watches each step of `fit` (`tracekit.watch`) and logs its figures.

    A step is a batch after which an optimizer has stepped: with accumulated gradients, batches before it are part of
    it. Steps in which a validation, a checkpoint or the end of an epoch falls are set apart. Every `log_every_n_steps`
    steps, and at the end, the Trainer's loggers are given the figures. Options are those of `tracekit.watch`.
    """

    def __init__(self, folder: str | Path = "watch", **options: Any) -> None:
        self._loop = Loop(folder, options)
        self._global_step = 0

    def on_train_start(self, trainer: Any, pl_module: Any, **_: Any) -> None:
        """The sanity check is over."""

        def log(figures: Figures, step: int) -> None:
            for logger in trainer.loggers:
                logger.log_metrics(figures, step)

        self._global_step = trainer.global_step
        batches = trainer.accumulate_grad_batches
        self._loop.begin(f"a step of Lightning's Trainer, {many(batches, 'batch', 'batches')}", log)

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """It is a step if an optimizer has stepped."""
        if trainer.global_step != self._global_step:
            self._global_step = trainer.global_step
            self._loop.step(_logged_at(trainer), trainer.log_every_n_steps)

    def on_validation_start(self, trainer: Any, pl_module: Any, **_: Any) -> None:
        """Also of the sanity check, before anything is watched."""
        self._loop.apart()

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any], **_: Any) -> None:
        """Nothing of ours is saved."""
        self._loop.apart()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any, **_: Any) -> None:
        """What follows until the first batch of the next epoch is not like other steps."""
        self._loop.apart()

    def on_train_end(self, trainer: Any, pl_module: Any, **_: Any) -> None:
        """The loop is over, and its logs are still open."""
        self._loop.end(_logged_at(trainer))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException, **_: Any) -> None:
        """The training ends with an exception of its own."""
        self._loop.abandon()


def _logged_at(trainer: Any) -> int:
    """The number under which the Trainer itself logs now, as in its own callbacks: several optimizers that step for one
    batch make it one higher, and `global_step` as many."""
    try:
        return int(trainer.fit_loop.epoch_loop._batches_that_stepped)
    except AttributeError:  # it is a private name
        return int(trainer.global_step)
