"""What does watching cost? Three trainings, watched and not, in turns, measured in this process.

Compared is the processor time of the thread that drives the steps: other work on the machine lengthens steps, but not
this. It computes with one thread, so that nothing of a step is computed elsewhere.
"""

import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import cycle
from types import SimpleNamespace

import msgspec
import torch
from msgspec import Struct
from torch.utils.data import DataLoader, TensorDataset

from tracekit.capture.child import recipe
from tracekit.catalogue import located
from tracekit.statistics.uncertainty import half_width_of_mean
from tracekit.watching.loop import watch
from tracekit.watching.observation import STEPS_TOGETHER

CONFIDENCE = 0.95
MOST_US = 20.0  # what watching may cost a step
SECONDS = 20.0  # for each training
FIRST_STEPS = 64  # of a block: not counted; then steps are judged
LEAST_GROUPS, BLOCK_S = 5, 0.3  # of a block
LEAST_PAIRS = 6

_log = logging.getLogger("tracekit")

Step = Callable[[], object]


class Cost(Struct, frozen=True):
    """What watching costs one training. The interval is at 95 %."""

    training: str
    step_ms: float  # unwatched, of the thread's processor time
    cost_us: float
    half_width_us: float
    pairs: int  # of blocks

    @property
    def share(self) -> float:
        """Of a step."""
        return self.cost_us / 1e3 / self.step_ms

    @property
    def is_within(self) -> bool:
        """Whether it is not more than it may be, with all of the interval."""
        return self.cost_us + self.half_width_us <= MOST_US

    def sentence(self) -> str:
        """In words."""
        return (
            f"{self.training}: {self.cost_us:.1f} ± {self.half_width_us:.1f} µs of a step of {self.step_ms:.2f} ms "
            f"({self.share:.2%}; {self.pairs} pairs of blocks)"
        )


def trainings() -> Iterator[tuple[str, Callable[[], Step]]]:
    """The trainings, by name; the recipe only where PyG is installed."""
    yield "a small MLP", small_mlp
    yield "a DataLoader loop", loader_loop
    if find_spec("torch_geometric") is not None:
        yield "recipes/gcn_cora", gcn_cora


def small_mlp() -> Step:
    """Three layers, the same batch at each step."""
    batch, take = torch.randn(256, 64), _stepping()
    return lambda: take(batch)


def loader_loop() -> Step:
    """The same layers, fed by a DataLoader without workers."""
    loader = DataLoader(TensorDataset(torch.randn(8192, 64)), batch_size=256, shuffle=True)
    take = _stepping()
    batches = iter(batch for epoch in cycle([loader]) for (batch,) in epoch)
    return lambda: take(next(batches))


def gcn_cora() -> Step:
    """The recipe, as its own main block runs it, on a generated graph."""
    module = recipe.load(str(located("gcn_cora")))
    parameters = {**module.PARAMS, "root": ""}
    context = SimpleNamespace(**parameters, device="cpu", seed=0, compile=lambda model: model, note=lambda _: None)
    step: Step = module.setup(context).step
    return step


def _stepping() -> Callable[[torch.Tensor], None]:
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters())

    def take(batch: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return take


def measure(name: str, make: Callable[[], Step], seconds: float) -> Cost:
    """Blocks of steps, watched and not, in pairs of alternating order, for about so many seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    plain_us: list[float] = []
    watched_us: list[float] = []
    try:
        torch.manual_seed(0)
        step = make()
        _block(step)
        until = time.monotonic() + seconds
        with tempfile.TemporaryDirectory(prefix="tracekit-overhead-") as folder:
            while len(watched_us) < LEAST_PAIRS or time.monotonic() < until:
                plain_first = len(watched_us) % 2 == 0
                if plain_first:
                    plain_us.append(_block(step))
                with watch(folder, traces_per_hour=0):
                    watched_us.append(_block(step))
                if not plain_first:
                    plain_us.append(_block(step))
    finally:
        torch.set_num_threads(threads)
    differences = [watched - plain for watched, plain in zip(watched_us, plain_us, strict=True)]
    half_width_us = half_width_of_mean(differences, CONFIDENCE)
    return Cost(name, statistics.fmean(plain_us) / 1e3, statistics.fmean(differences), half_width_us, len(differences))


def _block(step: Step) -> float:
    """The thread's processor time of a step, in µs: the median of groups, because other work lengthens some of them
    through the caches. Each group has all that a watch does, also what it does once for several steps."""
    for _ in range(FIRST_STEPS):
        step()
    times_ns: list[int] = []
    until = time.monotonic() + BLOCK_S
    while len(times_ns) < LEAST_GROUPS or time.monotonic() < until:
        began_ns = time.thread_time_ns()
        for _ in range(STEPS_TOGETHER):
            step()
        times_ns.append(time.thread_time_ns() - began_ns)
    return statistics.median(times_ns) / STEPS_TOGETHER / 1e3


def measured(seconds: float = SECONDS) -> Iterator[Cost]:
    """What each training's steps cost more while they are watched, in about so many seconds each."""
    level = _log.level
    _log.setLevel(logging.ERROR)
    try:
        for name, make in trainings():
            yield measure(name, make, seconds)
    finally:
        _log.setLevel(level)


def verdict(costs: Sequence[Cost]) -> str:
    """One sentence about all of them."""
    beyond = [cost.training for cost in costs if not cost.is_within]
    limit = f"{MOST_US:.0f} µs a step"
    if not beyond:
        return f"Watching costs at most {limit} here."
    return (
        f"Not shown to cost at most {limit} here: {', '.join(beyond)}. Other work on the machine widens the interval; "
        "measure again when there is none."
    )


def as_json(costs: Sequence[Cost]) -> str:
    """The same for programs."""
    return msgspec.json.encode({"schema": "tracekit.overhead/1", "costs": costs}).decode()
