"""The options of a capture: what to capture, and how thoroughly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracekit.capture import messages
from tracekit.run import Workload


@dataclass(frozen=True)
class Options:
    """The options of one capture. All but the program have defaults."""

    program: str | Path  # a recipe or a script
    variants: Sequence[str] = ()  # none: eager, compiled and the recipe's own
    params: Mapping[str, Any] = field(default_factory=dict)  # text is read as the default's type
    device: str = "auto"  # cuda if there is one
    backend: str = "inductor"
    steps: int = 20  # in the steady trace
    warmup: int = 10  # at least; more while something still compiles
    seed: int = 0
    timeout: float = 1800  # seconds a pass may take
    passes: int = 100  # unprofiled ones of a variant, at most
    budget: float | None = None  # seconds for the later passes of all variants; None: depends on their number
    precision: float | None = None  # to which the ratios must be known, as a share; None: 2 %, if the budget lasts
    min_detectable: float | None = None  # passes are taken until a check of two such captures would see it; a share
    epochs: int = 0  # of trainings of a recipe to its end, to see how well it trains; 0: none
    seeds: int = 3  # to train each variant with, from `seed` on
    arguments: Sequence[str] = ()  # of a script that is not a recipe
    step_every: int = 1  # ends of steps that make a step of a script
    step_at: str = ""  # where a step of a script ends: optimizer, call, or FILE:LINE; "" means that the script shows it
    is_script: bool = False  # a script, even if it looks like a recipe
    in_place: bool = False  # what a script writes in its passes is not undone
    module: bool = False  # `program` names a module, as for python -m
    workload: Workload = "training"  # of a recipe: what a step is
    threads: int = 0  # of PyTorch's operators; 0: as many as it chooses, usually one per core
    nproc: int = 1  # ranks that run a script together, as under torchrun
    python: str = ""  # the interpreter that runs the passes; "" is this one
    out: str | Path = "run.json"
    tell: Callable[[str], None] = messages.on_stderr
