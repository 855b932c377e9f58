"""Loads and sets up a recipe in the child process; one call is one training step."""

import importlib.util
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from tracekit.capture.child.graph_log import GraphLog, as_declared

if TYPE_CHECKING:
    from tracekit.capture.job import Job
    from tracekit.run import Requested, Workload


def load(path: str) -> ModuleType:
    """Import the file as Python runs a script, with its folder first on the path; only `__name__` differs."""
    file = Path(path).resolve()
    sys.path.insert(0, str(file.parent))
    sys.argv = [str(file)]
    name = file.stem if file.stem not in sys.modules else f"recipe_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        from tracekit.errors.capturing import NotARecipeError

        raise NotARecipeError(path, "not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # DataLoader workers look up classes by the name of their module
    spec.loader.exec_module(module)
    return module


def seed_all(seed: int) -> None:
    """Seed every generator a recipe is likely to draw from."""
    random.seed(seed)
    torch.manual_seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)


def make_context(module: ModuleType, job: "Job", notes: list[str]) -> SimpleNamespace:
    """The `ctx` a recipe's setup receives."""
    declared = dict(getattr(module, "PARAMS", {}))

    def compile_module(module: Any = None, **arguments: Any) -> Any:
        """torch.compile with this variant's settings; where it has none, the recipe's own arguments apply."""
        if job.requested.compile:
            return torch.compile(module, **compile_arguments(job.requested, arguments))
        return module if module is not None else (lambda decorated: decorated)

    return SimpleNamespace(
        **{**declared, **job.params},
        device=torch.device(job.device),
        seed=job.seed,
        compile=compile_module,
        note=lambda text: notes.append(str(text)),
    )


class RecipeStep:
    """One call is one step: of training, on the next batch if the recipe has batches, or of inference."""

    def __init__(
        self,
        module: ModuleType,
        context: SimpleNamespace,
        mark_loading: bool = False,
        workload: "Workload" = "training",
    ) -> None:
        self.graphs = GraphLog()
        prepared = module.setup(context)
        self._step: Callable[..., Any] | None = prepared if callable(prepared) else getattr(prepared, "step", None)
        if not callable(self._step):
            from tracekit.errors.capturing import NotARecipeError

            raise NotARecipeError(module.__file__, "its setup returns no step")
        self._batches: Any = getattr(prepared, "batches", None)
        self._left: Iterator[Any] = iter(())
        is_marked = mark_loading and not isinstance(self._batches, torch.utils.data.DataLoader)  # which marks itself
        self._next_batch = self._marked_batch if is_marked else self._plain_batch
        self._graph_size: Callable[..., Mapping[str, int]] | None = getattr(prepared, "graph_size", None)
        self.infer: Callable[[], Any] | None = getattr(prepared, "infer", None)
        self.evaluate: Callable[[], Any] | None = getattr(prepared, "evaluate", None)
        self._trains = workload == "training"
        if not self._trains:
            if self.infer is None:
                from tracekit.errors.capturing import NoInferenceError

                raise NoInferenceError(module.__file__)
            self._step, self._batches, self.infer, self._graph_size = self.infer, None, None, None

    def __call__(self) -> Any:
        """One step; in training it returns the recipe's loss."""
        assert self._step is not None
        arguments = () if self._batches is None else (self._next_batch(),)
        loss = self._step(*arguments)
        if self._graph_size is not None:
            self.graphs.add(as_declared(self._graph_size(*arguments)))
        else:
            self.graphs.saw(*arguments)
        self.graphs.step_ended()
        return loss

    @property
    def epoch_steps(self) -> int | None:
        """The steps of an epoch: as many as there are batches, or one; None if the batches have no length."""
        if self._batches is None:
            return 1 if self._trains else None
        try:
            return len(self._batches) or None
        except TypeError:
            return None

    def epoch(self) -> tuple[int, Any]:
        """Train one epoch, from the first batch to the last; returns its number of steps, and the last loss."""
        steps = 1
        if self._batches is None:
            return steps, self()
        self._left = iter(self._batches)
        loss = self()
        for batch in self._left:
            assert self._step is not None
            loss, steps = self._step(batch), steps + 1
        return steps, loss

    def _plain_batch(self) -> Any:
        for batch in self._left:
            return batch
        self._left = iter(self._batches)
        for batch in self._left:
            return batch
        raise ValueError("the recipe's batches are empty, or can be iterated only once")

    def _marked_batch(self) -> Any:
        with torch.profiler.record_function("enumerate(DataLoader)#batches.__next__"):
            return self._plain_batch()


def compile_arguments(requested: "Requested", arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments for torch.compile: those requested and, for the others, those of the caller."""
    settings = {
        "mode": requested.mode if requested.backend == "inductor" else None,
        "dynamic": requested.dynamic,
        "fullgraph": requested.fullgraph or None,
        "backend": requested.backend,
        "options": requested.options or None,
    }
    overrides = {name: value for name, value in settings.items() if value is not None}
    if "mode" in overrides or "options" in overrides:  # torch accepts only one of the two
        arguments = {name: value for name, value in arguments.items() if name not in ("mode", "options")}
    return {**arguments, **overrides}
