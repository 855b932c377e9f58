"""The settings of a capture, each of them once: its name, its type, its default, its meaning; and what each backend of
torch.compile can change.

The command line, a sweep file, the request to a child process and the child itself share these. What is decoded from a
file or a pipe is checked against the types.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from tracekit.run.model import Workload

Count = Annotated[int, msgspec.Meta(ge=1)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0)]  # 0 stands for none
Seconds = Annotated[float, msgspec.Meta(gt=0)]
TIMEOUT_S = 1800.0  # that a pass may take
BACKEND = DEFAULT = "inductor"  # of torch.compile


class StepSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a step is, and how many of them are run; a sweep file may set these for all of its cells."""

    steps: Count = 20  # in the steady trace
    warmup: CountOrNone = 10  # at least; more while something still compiles
    epochs: CountOrNone = 0  # of trainings of a recipe to its end, to see how well it trains
    threads: CountOrNone = 0  # of PyTorch's operators; 0: as many as it chooses, usually one per core
    step_every: Count = 1  # ends of steps that make a step of a script
    step_at: str = ""  # where a step of a script ends: a Boundary's name, call, or FILE:LINE; "": the script shows it


class Settings(StepSettings, frozen=True, kw_only=True):
    """How a program is run in every pass."""

    params: Mapping[str, Any] = {}  # of a recipe; text is read as the default's type
    seed: int = 0
    workload: Workload = "training"  # of a recipe: a step trains, or calls infer()
    python: str = ""  # the interpreter that runs the passes; "" is this one
    is_script: bool = False  # a script, even if it looks like a recipe: its optimizer shows where steps end
    arguments: Sequence[str] = ()  # of a script
    module: bool = False  # the program is the name of a module, as for python -m
    in_place: bool = False  # what a script writes in its passes is not undone
    ranks: Count = 1  # processes that run a script together, as under torchrun


def values_of(settings: StepSettings, kind: type[StepSettings]) -> dict[str, Any]:
    """The settings that a class declares or inherits, by name, of one that may have more."""
    return {name: getattr(settings, name) for name in kind.__struct_fields__}


class Backend(Struct, frozen=True):
    """What compiling with a backend can do to a step, beside running less Python."""

    name: str
    fuses: bool  # it generates kernels that do the work of several operators
    cuda_graphs: bool  # it can record CUDA graphs, always or in some modes


BACKENDS = {
    DEFAULT: Backend(DEFAULT, fuses=True, cuda_graphs=True),
    "cudagraphs": Backend("cudagraphs", fuses=False, cuda_graphs=True),
    **{
        name: Backend(name, fuses=False, cuda_graphs=False)
        for name in ("eager", "eager_debug", "eager_noexcept", "aot_eager", "aot_eager_default_partitioner")
    },
}
