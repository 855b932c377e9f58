"""`with watch(accelerator):` around a loop of Hugging Face's Accelerate, which belongs to the user.

Accelerate has no callbacks. It knows whether an optimizer has stepped or gradients are still accumulated, when a loader
has come to its end, and when a state is saved; and its `log` reaches all trackers.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakSet

from tracekit.errors.training import NoFrameworkError
from tracekit.integrations.core import Loop, harmless

if find_spec("accelerate") is None:
    raise NoFrameworkError("accelerate")


@contextmanager
def watch(accelerator: Any, folder: str | Path = "watch", **options: Any) -> Iterator[Loop]:
    """Watch each step of the loop inside (`tracekit.watch`); at its end, `accelerator.log` is given the figures.

    A step is one of the first optimizer that was prepared since an earlier such loop, or else of the first one:
    where gradients are accumulated, micro-batches before it are part of it. What follows the last batch of a
    loader, such as an evaluation, is set apart, and so are steps in which `save_state` is called; `apart()` of the
    result sets others apart, and its `summary()` has the figures so far, for the loop's own calls of
    `accelerator.log`. Options are those of `tracekit.watch`.
    """
    loop = _AcceleratedLoop(accelerator, folder, options)
    loop.attach()
    try:
        yield loop
        loop.end(loop.steps)
    finally:
        loop.abandon()


_known: WeakSet[Any] = WeakSet()  # optimizers that were prepared when an earlier loop began


class _AcceleratedLoop(Loop):
    """A loop between whose lines Accelerate and the optimizer call hooks."""

    def __init__(self, accelerator: Any, folder: str | Path, options: dict[str, Any]) -> None:
        super().__init__(folder, options)
        self._accelerator = accelerator
        self._hooks = ExitStack()

    @harmless
    def attach(self) -> None:
        """Put the hooks in, and begin."""
        accelerator, step = self._accelerator, ""
        prepared = [wrapped.optimizer for wrapped in accelerator._optimizers]
        new = [optimizer for optimizer in prepared if optimizer not in _known]  # those of earlier trainings stay there
        for optimizer in (new or prepared)[:1]:
            if hasattr(optimizer, "register_step_post_hook"):  # else it is no optimizer of torch's, as DeepSpeed's
                step = f"a step of {type(optimizer).__name__}, prepared by Accelerate"
                self._hooks.callback(optimizer.register_step_post_hook(self._stepped).remove)
        _known.update(prepared)
        self._hooks.callback(accelerator.register_save_state_pre_hook(lambda *_: self.apart()).remove)
        # Without a number: the loop counts its own steps, and trackers drop what comes with a lower one than before.
        self.begin(step, lambda figures, number: accelerator.log(figures))

    @harmless
    def _stepped(self, *_: Any) -> None:
        self.step(self.steps + 1)
        if self._accelerator.gradient_state.end_of_dataloader:
            self.apart()

    def release(self) -> None:
        """Take the hooks out, too."""
        self._hooks.close()
        super().release()
