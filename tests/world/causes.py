"""What can be wrong with a step. Each cause is a knob: what it puts into the step, and what stands there without it.

`ids` are the findings that may speak of it; `named` is what such a finding must name as the culprit, if the recording
has stacks, and without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tests.world.machine import kernel
from tests.world.program import Activity, Busy, Call, Fetch, Join, Node, Nodes, Overhead, Span, Submit, Sync
from tests.world.training import COMM, MODEL, TRAIN, Script, Site

HOST = ("python_bound", "dispatch_bound", "launch_bound")


@dataclass(frozen=True)
class Cause:
    """One cause; `ns` is its size: of a call, a wait, a kernel."""

    ns: int
    times: int = 1
    ids: ClassVar[tuple[str, ...]] = ()
    named: ClassVar[tuple[str, ...]] = ()  # what the recording shows of it: with stacks
    plain: ClassVar[tuple[str, ...]] = ()  # without stacks; nothing can be named where this is empty
    kernels: ClassVar[tuple[str, ...]] = ()  # that are at fault
    once: ClassVar[bool] = False  # it is part of the first step only, and of no other

    def at(self, site: Site, script: Script) -> Nodes:
        """What the cause puts there."""
        return ()

    def without(self, site: Site, script: Script) -> Nodes:
        """What stands there if the cause is removed."""
        return ()

    def script(self, script: Script) -> Script:
        """The script without the cause, for causes that are a way of running all of it."""
        return script


def frame(name: str, *body: Node) -> Span:
    """A Python function."""
    return Span("python_function", name, body)


@dataclass(frozen=True)
class SlowPython(Cause):
    """Python computes something between the layers."""

    ids = ("python_bound", "host_freeze", "idle_unexplained")
    named = ("build_mask",)

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.layer >= self.times:
            return ()
        return (frame(f"{MODEL}(57): build_mask", Busy(script.around(self.ns, "mask", site))),)


@dataclass(frozen=True)
class ManySmallOperators(Cause):
    """A loop over rows, where one operator would do."""

    ids = ("operator_loop", *HOST, "tiny_kernels", "unfused_elementwise")
    named = ("per_row", "aten::add_")
    plain = ("aten::add_",)

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.layer != 0:
            return ()
        work = kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >", self.ns)
        loop = [
            node
            for k in range(self.times)
            for node in (Busy(script.around(1_200, "row", k, site)), script.operator("aten::add_", work, None, k, site))
        ]
        return (frame(f"{MODEL}(80): per_row", *loop),)

    def without(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.layer != 0:
            return ()
        work = kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >", self.ns)
        return (frame(f"{MODEL}(80): per_row", script.operator("aten::add_", work, None, 0, site)),)


@dataclass(frozen=True)
class EmptyKernel(Cause):
    """A kernel of a few blocks, which leaves most of the GPU empty."""

    ids = ("low_occupancy",)
    kernels = ("cumsum", "scan")

    def at(self, site: Site, script: Script) -> Nodes:
        return self._put(site, script, self.ns, 0.04)

    def without(self, site: Site, script: Script) -> Nodes:
        return self._put(site, script, self.ns // 20, 8.0)

    def _put(self, site: Site, script: Script, ns: int, blocks: float) -> Nodes:
        if site.place != "forward" or site.layer != script.layers - 1:
            return ()
        filled = {
            "est. achieved occupancy %": min(int(blocks * 9), 75),
            "blocks per SM": blocks,
            "warps per SM": blocks * 8,
        }
        work = kernel("void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >", ns, **filled)
        return (frame(f"{MODEL}(92): positions", script.operator("aten::cumsum", work, None, site)),)


@dataclass(frozen=True)
class ReadBack(Cause):
    """`.item()`: a copy of four bytes to the host, which waits for it."""

    ids = ("sync_stall",)
    named = ("aten::item", "aten::_local_scalar_dense", "log_loss")
    plain = ("aten::item", "aten::_local_scalar_dense")

    def at(self, site: Site, script: Script) -> Nodes:
        return self.read(site, script) * self._reads(site, script)

    def _reads(self, site: Site, script: Script) -> int:
        layers = script.layers if self.times > 1 else 1
        if site.place != ("forward" if self.times > 1 else "loss"):
            return 0
        return self.times // layers + (site.layer < self.times % layers)

    def read(self, site: Site, script: Script) -> Nodes:
        """One of the reads."""
        copy = Activity("Memcpy DtoH (Device -> Pageable)", 1_300, "copy", "gpu_memcpy", {"bytes": 4})
        body = (Busy(1_200, "dispatch"), Submit("cudaMemcpyAsync", (copy,), 5_000), Sync(), Busy(600, "dispatch"))
        inner = Span("cpu_op", "aten::_local_scalar_dense", body)
        item = Span("cpu_op", "aten::item", (Busy(500, "dispatch"), inner))
        built_in = frame("<built-in method item of Tensor object at 0x7f10>", item)
        return (frame(f"{TRAIN}(90): log_loss", Busy(1_000), built_in),)


@dataclass(frozen=True)
class PageableCopy(Cause):
    """The batch is copied from pageable memory, which holds up the host; from pinned memory it does not."""

    ids = ("h2d_pageable_copy",)
    named = ("aten::to", "aten::_to_copy", "aten::copy_", "to_device")
    plain = ("aten::to", "aten::_to_copy", "aten::copy_")

    def at(self, site: Site, script: Script) -> Nodes:
        return self._put(site, "Pageable", script.around(self.ns, "copy", site), True)

    def without(self, site: Site, script: Script) -> Nodes:
        return self._put(site, "Pinned", script.around(self.ns // 4, "copy", site), False)

    def _put(self, site: Site, memory: str, ns: int, waits: bool) -> Nodes:
        if site.place != "data":
            return ()
        args = {"bytes": self.ns * 6}
        copy = Activity(f"Memcpy HtoD ({memory} -> Device)", ns, "copy", "gpu_memcpy", args)
        call: Nodes = (Submit("cudaMemcpyAsync", (copy,), 6_000, waits=waits),)
        for name in ("aten::copy_", "aten::_to_copy", "aten::to"):
            call = (Span("cpu_op", name, (Busy(1_500, "dispatch"), *call)),)
        return (frame(f"{TRAIN}(33): to_device", *call),)


@dataclass(frozen=True)
class SlowLoader(Cause):
    """The loop waits for its loader: in its own process (`times` of 0), or for so many workers."""

    ids = ("dataloader_bound",)

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "data":
            return ()
        if self.times:
            return self._next("_MultiProcessingDataLoaderIter", Fetch(self.times, self.ns * self.times))
        decoding = Span("cpu_op", "aten::stack", (Busy(script.around(self.ns * 0.3, "stack", site), "data"),))
        return self._next(
            "_SingleProcessDataLoaderIter", Busy(script.around(self.ns * 0.7, "load", site), "data"), decoding
        )

    def without(self, site: Site, script: Script) -> Nodes:
        if site.place != "data":
            return ()
        return self._next("_MultiProcessingDataLoaderIter", Busy(25_000, "data"))

    def _next(self, kind: str, *body: Node) -> Nodes:
        inside = frame(
            "torch/utils/data/dataloader.py(732): __next__",
            Span("user_annotation", f"enumerate(DataLoader)#{kind}.__next__", body),
        )
        return (inside,)


@dataclass(frozen=True)
class OptimizerLoop(Cause):
    """The optimizer updates each parameter by operators of its own."""

    ids = ("optimizer_loop", *HOST)
    named = ("Optimizer.step", "aten::addcdiv_", "aten::mul_", "aten::addcmul_", "optim", "update", "step")
    plain = ("Optimizer.step", "aten::addcdiv_", "aten::mul_", "aten::addcmul_", "step")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "optimizer":
            return ()
        loop: list[Node] = []
        for k in range(self.times):
            loop.append(Busy(script.around(2_000, "parameter", k, site)))
            for name in ("aten::mul_", "aten::addcmul_", "aten::addcdiv_"):
                functor = f"void at::native::vectorized_elementwise_kernel<4, at::native::{name[6:-1]}_functor<float> >"
                loop.append(script.operator(name, kernel(functor, self.ns), None, k, site))
        body = frame("torch/optim/adamw.py(312): _single_tensor_adamw", *loop)
        return (Span("user_annotation", "Optimizer.step#AdamW.step", (Busy(4_000), body)),)


@dataclass(frozen=True)
class SmallModel(Cause):
    """All kernels are small, so the host, which submits them one by one, is slower than the GPU; replaying them as a
    CUDA graph is the cure."""

    ids = HOST

    def script(self, script: Script) -> Script:
        return replace(script, graphed=True)


@dataclass(frozen=True)
class Garbage(Cause):
    """Python collects garbage in the middle of a step."""

    ids = ("garbage_collection",)
    named = ("train_step",)

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "loss":
            return ()
        return (Span("python_function", "Python GC", (Busy(script.around(self.ns, "gc", site)),)),)


@dataclass(frozen=True)
class Allocation(Cause):
    """Device memory is freed and allocated anew, instead of being cached."""

    ids = ("allocator",)
    named = ("cudaFree", "cudaMalloc", "empty_cache", "aten::empty")
    plain = ("cudaFree", "cudaMalloc", "empty_cache", "aten::empty")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.layer >= self.times:
            return ()
        calls = (Sync("cudaFree", None, "alloc"), Call("cudaFree", self.ns // 2), Call("cudaMalloc", self.ns))
        return (Span("cpu_op", "aten::empty", (Busy(2_000, "dispatch"), *calls)),)


@dataclass(frozen=True)
class Recompiled(Cause):
    """Dynamo compiles the function anew, in some steps."""

    ids = ("recompiles", "compile_in_steps")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.layer != 0 or site.step % 3 != 1:
            return ()
        data = Span(
            "user_annotation",
            f"dynamo_data: fn_name=forward, compile_id=0/{1 + site.step // 3}",
            (Busy(9_000, "compile"),),
        )
        inner = Span("cpu_op", "entire_frame_compile", (Busy(self.ns, "compile"),))
        return (
            Span("cpu_op", "TorchDynamo Cache Lookup", (Busy(22_000, "compile"),)),
            Span("cpu_op", "dynamo", (data, inner)),
        )


@dataclass(frozen=True)
class ModuleLoading(Cause):
    """Kernels are loaded at their first use, in the first step."""

    ids = ("cold_start",)
    once = True

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.step or site.layer >= self.times:
            return ()
        work = kernel("void at::native::elementwise_kernel<128, 2, at::native::pow_tensor_scalar>", 4_000)
        load = Overhead("Lazy Function Loading", self.ns, "start-up")
        launch = Submit("cudaLaunchKernel", (work,))
        return (Span("cpu_op", "aten::pow", (Busy(3_000, "dispatch"), load, launch)),)


@dataclass(frozen=True)
class SharedGpu(Cause):
    """Another process uses the GPU for `ns` out of every `times` times that."""

    ids = ("queued_not_started",)

    def windows(self, until: int) -> list[tuple[int, int]]:
        """When it has the GPU: not at first, because nobody can tell what a GPU does before its first recorded work."""
        return [(start, start + self.ns) for start in range(self.ns, until, self.ns * self.times)]


@dataclass(frozen=True)
class HostComputing(Cause):
    """Random numbers are made on the CPU, in a run on a GPU."""

    ids = ("cpu_compute", "dispatch_bound", "host_freeze", "python_bound", "host_compute")
    named = ("aten::normal_", "noise")
    plain = ("aten::normal_",)

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.layer != 0:
            return ()
        drawn = Span("cpu_op", "aten::normal_", (Busy(script.around(self.ns, "normal", site), "cpu"),))
        return (frame(f"{MODEL}(101): noise", Busy(1_000), drawn),)


@dataclass(frozen=True)
class CountRows(ReadBack):
    """A boolean mask selects rows, so the host reads back how many there are; the cure keeps the shape."""

    named = ("aten::nonzero", "aten::index", "select_nodes")
    plain = ("aten::nonzero", "aten::index")

    def read(self, site: Site, script: Script) -> Nodes:
        count = kernel("void at_cuda_detail::cub::DeviceReduceSingleTileKernel<bool, int>", 2_500)
        copy = Activity("Memcpy DtoH (Device -> Pinned)", 1_200, "copy", "gpu_memcpy", {"bytes": 4})
        rows = kernel("void at_cuda_detail::cub::DeviceSelectSweepKernel<long, bool>", 4_000)
        counting = Submit("cudaMemcpyAsync", (copy,), 5_000)
        body = (Busy(2_500, "dispatch"), Submit("cudaLaunchKernel", (count,)), counting, Sync())
        selecting = Submit("cudaLaunchKernel", (rows,))
        nonzero = Span("cpu_op", "aten::nonzero", (*body, Busy(2_000, "dispatch"), selecting))
        indexed = Span("cpu_op", "aten::index", (Busy(2_000, "dispatch"), nonzero))
        return (frame(f"{MODEL}(64): select_nodes", Busy(800), indexed),)

    def without(self, site: Site, script: Script) -> Nodes:
        """The shape is kept: `torch.where` writes all rows, and nothing is counted."""
        rows = kernel("void at::native::elementwise_kernel<128, 2, at::native::where_kernel>", 4_000)
        kept = script.operator("aten::where", rows, None, "where", site)
        return (frame(f"{MODEL}(64): select_nodes", Busy(800), kept),) * self._reads(site, script)


@dataclass(frozen=True)
class Synchronize(ReadBack):
    """The loop calls torch.cuda.synchronize(), to time something."""

    named = ("timed", "synchronize", "cudaDeviceSynchronize", "hipDeviceSynchronize")
    plain = ("cudaDeviceSynchronize", "hipDeviceSynchronize")

    def read(self, site: Site, script: Script) -> Nodes:
        call = frame("torch/cuda/__init__.py(1040): synchronize", Busy(1_500), Sync("cudaDeviceSynchronize", None))
        return (frame(f"{TRAIN}(95): timed", call),)


@dataclass(frozen=True)
class CopyBack(Cause):
    """The output is copied to the host in every step, and waited for."""

    ids = ("sync_stall", "d2h_copy")
    named = ("aten::to", "aten::_to_copy", "aten::copy_", "keep_output", "aten::cpu")
    plain = ("aten::to", "aten::_to_copy", "aten::copy_", "aten::cpu")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "loss":
            return ()
        args = {"bytes": self.ns * 6}
        copy = Activity("Memcpy DtoH (Device -> Pageable)", script.around(self.ns, site), "copy", "gpu_memcpy", args)
        call: Nodes = (Submit("cudaMemcpyAsync", (copy,), 6_000, waits=True), Sync())
        for name in ("aten::copy_", "aten::_to_copy", "aten::to"):
            call = (Span("cpu_op", name, (Busy(1_500, "dispatch"), *call)),)
        return (frame(f"{TRAIN}(99): keep_output", *call),)


@dataclass(frozen=True)
class ZeroLoop(Cause):
    """Gradients are set to zero one by one."""

    ids = ("zero_grad", *HOST)
    named = ("zero_grad", "aten::zero_")
    plain = ("zero_grad", "aten::zero_")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "before":
            return ()
        fill = kernel("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >", self.ns)
        loop: list[Node] = []
        for k in range(self.times):
            loop += [
                Busy(script.around(1_500, "gradient", k, site)),
                script.operator("aten::zero_", fill, None, k, site),
            ]
        zeroing = Span("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", (Busy(3_000), *loop))
        return (frame("torch/optim/optimizer.py(952): zero_grad", zeroing),)


@dataclass(frozen=True)
class FirstCall(Cause):
    """A library is initialised by the first operator that needs it."""

    ids = ("cold_start",)
    once = True
    named = ("cudaFree", "hipFree")
    plain = ("cudaFree", "hipFree")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "forward" or site.step or site.layer:
            return ()
        work = kernel("void at::native::elementwise_kernel<128, 2, at::native::exp_kernel>", 4_000)
        call = Call("cudaFree", self.ns, "start-up")
        launch = Submit("cudaLaunchKernel", (work,))
        return (Span("cpu_op", "aten::exp", (Busy(3_000, "dispatch"), call, launch)),)

    def without(self, site: Site, script: Script) -> Nodes:
        return replace(self, ns=500).at(site, script)


@dataclass(frozen=True)
class Preprocessing(Cause):
    """A library prepares the batch in the loop, outside of any loader."""

    ids = ("python_bound", "host_freeze", "preprocessing", "idle_unexplained")
    named = ("preprocess", "resize", "prepare")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "data":
            return ()
        resized = frame("<built-in function resize>", Busy(script.around(self.ns * 0.8, "resize", site)))
        called = frame("transformers/image_processing_utils.py(44): preprocess", Busy(self.ns // 5), resized)
        return (frame(f"{TRAIN}(27): prepare", called),)


@dataclass(frozen=True)
class LateRank(Cause):
    """One rank of two prepares its batch more slowly, and the other waits for it in the next collective."""

    ids = ("late_rank", "exposed_comm")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "data" or site.rank == 0:
            return ()
        return (frame(f"{TRAIN}(21): augment", Busy(script.around(self.ns, "augment", site))),)


@dataclass(frozen=True)
class SlowNetwork(Cause):
    """Gradients take longer to reduce than the layers before take to compute; `ns` is what a fast network needs."""

    ids = ("exposed_comm",)
    named = ("nccl", "all_reduce", "AllReduce")
    plain = ("nccl", "all_reduce", "AllReduce")

    def script(self, script: Script) -> Script:
        return replace(script, reduce_ns=self.ns)


@dataclass(frozen=True)
class BufferBroadcast(Cause):
    """DDP broadcasts the buffers before each forward pass, and nothing can run meanwhile."""

    ids = ("exposed_comm", "buffer_broadcast")
    named = ("nccl", "roadcast", "DistributedDataParallel.forward")
    plain = ("nccl", "roadcast", "DistributedDataParallel.forward")

    def at(self, site: Site, script: Script) -> Nodes:
        if site.place != "before":
            return ()
        sent = script.collective("broadcast", "Broadcast_RING_LL", script.around(self.ns, "broadcast", site))
        body = (Busy(20_000), *sent, Join(7, COMM))
        return (Span("user_annotation", "DistributedDataParallel.forward", body),)
