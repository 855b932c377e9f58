"""A few steps of a recipe in this process, as capture takes them, and what Dynamo made of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch._dynamo.backends.registry import lookup_backend, register_backend
from torch._dynamo.utils import counters

from tracekit.capture.child import recipe, worker
from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import Job
from tracekit.capture.options import PlannedVariant, plan_variants

RECIPES = Path(__file__).parents[2] / "recipes"
NOWHERE = "/nonexistent"  # so that no recipe finds real data, and each generates its own
BACKEND = "counted_aot_eager"
_graphs: set[str] = set()


@register_backend(name=BACKEND)
def _count_and_compile(graph, inputs, **options):
    """The backend aot_eager, with a counter; a compilation that Dynamo restarts counts once."""
    _graphs.add(str(torch._guards.CompileContext.current_compile_id()))
    return lookup_backend("aot_eager")(graph, inputs, **options)


@contextmanager
def compiled_from_nothing() -> Iterator[CompileRecorder]:
    """Reset Dynamo to its state in a new process; `counts_of` reads what it has compiled since."""
    torch._dynamo.reset()
    counters.clear()
    _graphs.clear()
    with CompileRecorder() as recorder:
        yield recorder


def counts_of(recorder: CompileRecorder) -> str:
    """The counts as `graphs/recompilations/breaks`."""
    return f"{len(_graphs)}/{len(recorder.reasons)}/{sum(counters['graph_break'].values())}"


@dataclass
class Trained:
    losses: list[float]
    counts: str  # graphs/recompiles/breaks
    limits: list[str]
    notes: list[str]
    feed: RecipeStep = field(repr=False)


def plan_of(name: str, variant: str) -> PlannedVariant:
    """The variant as the command line reads it, with the backend that counts."""
    module = load(name)
    return plan_variants([variant], module.PARAMS, getattr(module, "VARIANTS", {}), BACKEND)[0]


def path_of(name: str) -> Path:
    """The path of a recipe or a pathology."""
    return next(RECIPES.rglob(f"{name}.py"))


def load(name: str):
    """The recipe's module; its changes to the interpreter are undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "argv", [*sys.argv])
        return recipe.load(str(path_of(name)))


def train(name: str, variant: str = "eager", steps: int = 3, **params) -> Trained:
    """Train this variant for a number of steps on the CPU."""
    chosen, notes = plan_of(name, variant), []
    declared = load(name).PARAMS
    if "root" in declared:
        params = {"root": NOWHERE, **params}
    job = Job(
        stage="check",
        program=str(path_of(name)),
        params={**params, **chosen.params},
        requested=chosen.requested,
    )
    with pytest.MonkeyPatch.context() as patch, compiled_from_nothing() as recorder:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "argv", [*sys.argv])
        feed = worker._feed(job, notes)
        losses = [float(feed()) for _ in range(steps)]
    return Trained(losses, counts_of(recorder), [hit.setting for hit in recorder.limits], notes, feed)
