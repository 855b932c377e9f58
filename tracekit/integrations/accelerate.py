"""`with watch(accelerator):` around a loop of Hugging Face's Accelerate, which belongs to the user.

Accelerate has no callbacks. It knows whether an optimizer has stepped or gradients are still accumulated, when a loader
has come to its end, and when a state is saved; and its `log` reaches all trackers.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tracekit.errors.training import NoFrameworkError
from tracekit.integrations.core import Loop

if find_spec("accelerate") is None:
    raise NoFrameworkError("accelerate")


@contextmanager
def watch(accelerator: Any, folder: str | Path = "watch", **options: Any) -> Iterator[Loop]:
    """Watch each step of the loop inside (`tracekit.watch`); at its end, `accelerator.log` is given the figures.

    A step is one of the first optimizer that was prepared: where gradients are accumulated, micro-batches before it are
    part of it. What follows the last batch of a loader, such as an evaluation, is set apart, and so are steps in which
    `save_state` is called; `apart()` of the result sets others apart, and its `summary()` has the figures so far, for
    the loop's own calls of `accelerator.log`. Options are those of `tracekit.watch`.
    """
    loop = Loop(folder, options)

    def stepped(*_: Any) -> None:
        loop.step(loop.steps + 1)
        if accelerator.gradient_state.end_of_dataloader:
            loop.apart()

    step = ""  # where no optimizer was prepared, the watch itself finds steps
    with ExitStack() as hooks:
        for optimizer in accelerator._optimizers[:1]:
            step = f"a step of {type(optimizer.optimizer).__name__}, prepared by Accelerate"
            hooks.callback(optimizer.optimizer.register_step_post_hook(stepped).remove)
        hooks.callback(accelerator.register_save_state_pre_hook(lambda *_: loop.apart()).remove)
        hooks.callback(loop.abandon)  # where the loop ends with an exception
        # Without a step: the loop counts its own when it logs, and trackers drop what comes with a lower one.
        loop.begin(step, lambda figures, step: accelerator.log(figures))
        yield loop
        loop.end(loop.steps)
