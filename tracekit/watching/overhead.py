"""What does watching cost? Some trainings, watched and not, in turns, measured in this process.

Two things are measured. *In its calls*: how much longer those functions of torch take that the watch puts code around –
optimizers' steps, waits for batches –, apart from what they call. That is all but the garbage collector's and the
compiler's callbacks, and exact to a part of a µs. *Of the step*: how much more processor time the whole step takes for
the thread that drives it, which also shows what the watch costs the code around it, through the caches. Other work on
the machine lengthens steps, but not this; it varies so much from block to block that only short steps show it.

The trainings compute with one thread, so that nothing of a step is computed elsewhere.
"""

import functools
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import cycle, pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import torch
from msgspec import Struct
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tracekit.capture.child import recipe
from tracekit.capture.child.replaced import Replacements
from tracekit.catalogue import located
from tracekit.statistics.uncertainty import half_width_of_mean
from tracekit.watching.loop import watch
from tracekit.watching.observation import STEPS_TOGETHER

CONFIDENCE = 0.95
MOST_US = 20.0  # what watching may cost a step
SECONDS = 20.0  # for each training
FIRST_STEPS = 65  # of a watched block: not counted; with the last, the first ones are judged
FIRST_PLAIN_STEPS = 8
ROUND_STEPS = STEPS_TOGETHER  # in so many, a watch does all that it does
BLOCK_S = 0.3  # of rounds, at least
LEAST_PAIRS = 6
MOST_CALL_NS = 2_000_000  # what takes longer has lost its core to other work
_CALLS: tuple[tuple[Any, str], ...] = (  # what the watch puts code around
    (torch.optim.Adam, "step"),
    (_BaseDataLoaderIter, "__next__"),
    (DataLoader, "__iter__"),
)

_log = logging.getLogger("tracekit")

Step = Callable[[], object]


class Cost(Struct, frozen=True):
    """What watching costs one training. The intervals are at 95 %."""

    training: str
    step_ms: float  # unwatched, of the thread's processor time
    calls_us: float  # in its calls
    calls_half_width_us: float
    step_us: float  # of the step
    step_half_width_us: float
    pairs: int  # of blocks

    @property
    def share(self) -> float:
        """Of a step, in its calls."""
        return self.calls_us / 1e3 / self.step_ms

    @property
    def is_within(self) -> bool:
        """Whether it is not more than it may be, with all of the interval, and the whole step does not contradict."""
        at_most = self.calls_us + self.calls_half_width_us <= MOST_US
        return at_most and self.step_us - self.step_half_width_us <= MOST_US

    def sentence(self) -> str:
        """In words."""
        return (
            f"{self.training}: {self.calls_us:.1f} ± {self.calls_half_width_us:.1f} µs in its calls, {self.share:.2%} "
            f"of a step of {self.step_ms:.2f} ms; the whole step, {self.step_us:.0f} ± {self.step_half_width_us:.0f} "
            f"µs ({self.pairs} pairs of blocks)"
        )


def trainings() -> Iterator[tuple[str, Callable[[], Step]]]:
    """The trainings, by name; the recipes only where PyG is installed."""
    yield "a small MLP", small_mlp
    yield "a DataLoader loop", loader_loop
    yield "an MLP of MNIST's size", mnist_mlp
    if find_spec("torch_geometric") is not None:
        for name in ("hetero_parts", "gcn_cora"):
            yield f"recipes/{name}", functools.partial(of_recipe, name)


def small_mlp() -> Step:
    """Two layers, the same batch at each step."""
    batch, take = torch.randn(256, 64), _stepping(64, 256, 1)
    return lambda: take(batch)


def loader_loop() -> Step:
    """The same layers, fed by a DataLoader without workers."""
    loader = DataLoader(TensorDataset(torch.randn(8192, 64)), batch_size=256, shuffle=True)
    take = _stepping(64, 256, 1)
    batches = iter(batch for epoch in cycle([loader]) for (batch,) in epoch)
    return lambda: take(next(batches))


def mnist_mlp() -> Step:
    """Layers whose parameters and gradients fill the processor's caches at each step."""
    batch, take = torch.randn(256, 784), _stepping(784, 512, 512, 10)
    return lambda: take(batch)


def of_recipe(name: str) -> Step:
    """The recipe, as its own main block runs it, on a generated graph."""
    module = recipe.load(str(located(name)))
    parameters = {**module.PARAMS, "root": ""}
    device = torch.device("cpu")
    context = SimpleNamespace(**parameters, device=device, seed=0, compile=lambda model: model, note=lambda _: None)
    step: Step = module.setup(context).step
    return step


def _stepping(*sizes: int) -> Callable[[torch.Tensor], None]:
    layers = [layer for pair in pairwise(sizes) for layer in (torch.nn.ReLU(), torch.nn.Linear(*pair))]
    model = torch.nn.Sequential(*layers[1:])
    optimizer = torch.optim.Adam(model.parameters())

    def take(batch: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return take


class _Block(NamedTuple):
    """What a step of it took, in µs."""

    calls_us: float  # in the calls, apart from what they call: the mean, because the watch does some things rarely
    step_us: float  # of the thread's processor time: the median of rounds, because other work lengthens some of them


def measure(name: str, make: Callable[[], Step], seconds: float) -> Cost:
    """Blocks of steps, watched and not, in pairs of alternating order, for about so many seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    plain: list[_Block] = []
    watched: list[_Block] = []
    stopwatch = _Stopwatch()
    torch.optim.Adam([torch.zeros(1)])  # torch puts code of its own around the step of a class at its first optimizer
    try:
        torch.manual_seed(0)
        with stopwatch.stopped_in(), tempfile.TemporaryDirectory(prefix="tracekit-overhead-") as folder:
            step = make()
            _block(step, stopwatch, FIRST_STEPS)
            until = time.monotonic() + seconds
            while len(watched) < LEAST_PAIRS or time.monotonic() < until:
                plain_first = len(watched) % 2 == 0
                if plain_first:
                    plain.append(_block(step, stopwatch, FIRST_PLAIN_STEPS))
                with watch(folder, traces_per_hour=0):
                    watched.append(_block(step, stopwatch, FIRST_STEPS))
                if not plain_first:
                    plain.append(_block(step, stopwatch, FIRST_PLAIN_STEPS))
    finally:
        torch.set_num_threads(threads)
    pairs = [*zip(watched, plain, strict=True)]
    calls = [with_it.calls_us - without.calls_us for with_it, without in pairs]
    steps = [with_it.step_us - without.step_us for with_it, without in pairs]
    return Cost(
        name,
        statistics.fmean(block.step_us for block in plain) / 1e3,
        *(statistics.fmean(calls), half_width_of_mean(calls, CONFIDENCE)),
        *(statistics.fmean(steps), half_width_of_mean(steps, CONFIDENCE)),
        len(pairs),
    )


class _Stopwatch:
    """The time in calls, apart from what they call: it runs while a call is between its outer and its inner end."""

    def __init__(self) -> None:
        self.ns = 0

    @contextmanager
    def stopped_in(self) -> Iterator[None]:
        """What is called."""
        with self._around(-1):
            yield

    @contextmanager
    def running_in(self) -> Iterator[None]:
        """What calls it."""
        with self._around(+1):
            yield

    @contextmanager
    def _around(self, sign: int) -> Iterator[None]:
        def counted(function: Any) -> Any:
            @functools.wraps(function)
            def call(*args: Any) -> Any:
                began_ns = time.perf_counter_ns()
                try:
                    return function(*args)
                finally:
                    self.ns += sign * (time.perf_counter_ns() - began_ns)

            return call

        with Replacements() as replacements:
            for holder, called in _CALLS:
                replacements.put(holder, called, counted(getattr(holder, called)))
            yield


def _block(step: Step, stopwatch: _Stopwatch, first_steps: int) -> _Block:
    calls_ns: list[int] = []
    rounds_ns: list[int] = []
    with stopwatch.running_in():
        for _ in range(first_steps):
            step()
        until = time.monotonic() + BLOCK_S
        while not rounds_ns or time.monotonic() < until:
            began_ns = time.thread_time_ns()
            for _ in range(ROUND_STEPS):
                stopwatch.ns = 0
                step()
                calls_ns.append(min(stopwatch.ns, MOST_CALL_NS))
            rounds_ns.append(time.thread_time_ns() - began_ns)
    return _Block(statistics.fmean(calls_ns) / 1e3, statistics.median(rounds_ns) / ROUND_STEPS / 1e3)


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
