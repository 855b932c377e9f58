"""The audit in the child process: a few steps of a recipe or a script on the emulated GPU.

What a script saves from a GPU, it can load onto one, which torch does by the device that a file names for each storage.
For scripts that ask for several GPUs or processes, there is one of each.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch._dynamo  # on import it lists torch's functions, so it must see the real ones
from msgspec.structs import replace
from torch.nn.parallel import scatter_gather
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tracekit.capture.audit import cuda, tensors
from tracekit.capture.audit.emulation import GPU, Devices, Emulation, normalized
from tracekit.capture.audit.watch import Regions, Watch, loading
from tracekit.capture.child import recipe, script, timing
from tracekit.capture.child.failures import failure
from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.child.replaced import Replacements
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.job import Audit, Job, PassResult
from tracekit.capture.options import parse_all, plan_variants
from tracekit.errors.capturing import NotARecipeError
from tracekit.run import Requested

_BEFORE_THE_CPUS = 5  # lower than the CPU's priority, 10, which is the first among torch's own ways to save a storage


def audit(job: Job, notes: list[str]) -> PassResult:
    """Run the steps; what was seen, also if the training fails."""
    with emulated() as emulation:
        watch = emulation.watch
        losses: list[float] = []
        try:
            if job.is_script:
                unchanged = replace(job, requested=Requested(compile=False), device="cuda")
                with CompileRecorder() as recorder:
                    result = script.run(unchanged, lambda _: _steps(watch, job.steps), recorder)
            else:
                result = _of_recipe(job, emulation, notes, losses)
        except (Exception, SystemExit) as error:
            result = failure(error)
        with watch.silenced():
            used = emulation.devices.used
            left_open = []
            if not used:
                left_open.append(
                    "no tensor was put on the GPU: does the script choose its device with torch.cuda.is_available()?"
                )
            if not watch.steps:
                left_open.append("it ended within its first step, which is not counted: no step was audited")
            if emulation.foreign:
                operators = ", ".join(sorted(emulation.foreign))
                left_open.append(f"whether these operators wait on a GPU is unknown: {operators}")
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                left_open.append("what several processes send each other is not emulated")
            notes = [*left_open, *watch.notes]
            audited = Audit(steps=watch.steps, rows=watch.rows(), losses=losses, notes=notes, used=used)
            return replace(result, audit=audited)


@contextmanager
def emulated() -> Iterator[Emulation]:
    """A context in which tensors can be on a GPU that does not exist."""
    watch = Watch()
    regions = Regions(watch)
    emulation = Emulation(Devices(), watch, regions)
    run_thread = threading.Thread.run

    def running(thread: threading.Thread) -> None:
        with Emulation(emulation.devices, watch, regions):  # in every thread, because a mode sees only its own
            run_thread(thread)

    torch.jit._state.disable()  # scripted code would fuse operators unseen
    with ExitStack() as stack:
        replacements = stack.enter_context(Replacements())
        cuda.replace(replacements, emulation.devices, watch)
        tensors.replace(replacements, emulation)
        replace_saving(replacements, emulation.devices)
        replace_processes(replacements)
        replacements.put_all(torch, compile=regions.compile)
        replacements.put_all(torch.nn.Module, __call__=regions.call_module(torch.nn.Module.__call__))
        following = _BaseDataLoaderIter.__next__
        replacements.put_all(_BaseDataLoaderIter, __next__=loading(watch, following), next=loading(watch, following))
        replacements.put_all(threading.Thread, run=running)
        stack.enter_context(emulation)
        yield emulation


def _steps(watch: Watch, steps: int) -> timing.Steps[PassResult]:
    """Run the steps. The first one, which sets up what the others use, is run but not counted."""
    watch.begin()
    try:
        yield
        watch.counting = True
        for _ in range(steps):
            yield
            watch.steps += 1
    except timing.EndedError:  # the script ended earlier: what was seen until then remains valid
        pass
    finally:
        watch.counting = False
    return PassResult()


def _of_recipe(job: Job, emulation: Emulation, notes: list[str], losses: list[float]) -> PassResult:
    module = recipe.load(job.program)
    if not hasattr(module, "setup"):
        raise NotARecipeError(job.program, "it has no setup(ctx)")
    declared = dict(getattr(module, "PARAMS", {}))
    overrides = parse_all(job.params, declared)
    variant = plan_variants([job.label], {**declared, **overrides}, getattr(module, "VARIANTS", {}), "inductor")[0]
    context = recipe.make_context(module, replace(job, params={**overrides, **variant.params}, device=str(GPU)), notes)
    context.compile = lambda model=None, **options: emulation.regions.compile(model, **options)
    if hasattr(module, "prepare"):
        module.prepare(context)
    recipe.seed_all(job.seed)
    feed = RecipeStep(module, context)
    recipe.seed_all(job.seed)

    def take_step() -> None:
        loss = feed()
        with emulation.watch.silenced():
            losses.append(float(loss))

    result = timing.run_steps(_steps(emulation.watch, job.steps), take_step)
    for pass_function in filter(None, (feed.infer, feed.evaluate)):
        pass_function()
    return result


def replace_saving(replacements: Replacements, devices: Devices) -> None:
    """Make torch.save and torch.load distinguish storages on a GPU from others, whatever `map_location` is."""
    serialization: Any = torch.serialization

    def tag(storage: Any) -> str | None:
        return str(GPU) if devices.of_storage(_untyped(storage)) == GPU else None

    def restore(storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return None
        devices.put_storage(_untyped(storage), GPU)
        return storage

    def cuda(storage: Any, *_: Any, **__: Any) -> Any:
        """Replaces `storage.cuda()`, which a `map_location` may call."""
        if devices.of_storage(_untyped(storage)) == GPU:
            return storage
        clone = storage.clone()
        devices.put_storage(_untyped(clone), GPU)
        return clone

    ways = [(_BEFORE_THE_CPUS, tag, restore), *serialization._package_registry]
    replacements.put_all(serialization, _package_registry=ways)
    replacements.put_all(torch.UntypedStorage, cuda=cuda)
    replacements.put_all(torch.storage.TypedStorage, cuda=cuda)


def _untyped(storage: Any) -> torch.UntypedStorage:
    return storage if isinstance(storage, torch.UntypedStorage) else storage._untyped_storage


def replace_processes(replacements: Replacements) -> None:
    """Give DataParallel one GPU, and torch.distributed a backend for it."""
    replacements.put_all(scatter_gather, Scatter=_Scatter)
    if torch.distributed.is_available():
        distributed: Any = torch.distributed
        begin = distributed.init_process_group

        def beginning(backend: str | None = None, *args: Any, device_id: Any = None, **options: Any) -> None:
            # CPU builds lack "nccl".
            begin(None if backend is None else "gloo" if "nccl" in backend else backend, *args, **options)

        replacements.put_all(distributed, init_process_group=beginning, is_nccl_available=lambda: True)


class _Scatter:
    """Replaces the function that gives each GPU its part of a batch: the only GPU gets all of it."""

    @staticmethod
    def apply(devices: list[Any], sizes: Any, dim: int, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As an autograd function is called."""
        return (tensor.to(normalized(devices[0]), non_blocking=True),)
