"""The training script that a world runs: a network of a few layers, in which nothing is wrong by itself.

Causes put their own nodes at its sites: before the forward pass, between layers, in the loss, in the optimizer, at the
end of the step.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.world.program import Activity, Busy, Handover, Join, Node, Nodes, Span, Submit

TRAIN, MODEL = "train.py", "model.py"
_FLOPS_A_NS = 2.4e5  # of dense bfloat16 products
_BYTES_A_NS = 1300  # of large elementwise kernels
_WIDTH = 1024
COMM = 20  # the stream of communication
_COLLECTIVE = {"est. achieved occupancy %": 5, "blocks per SM": 0.2, "warps per SM": 4.0}


@dataclass(frozen=True)
class Site:
    """Where and when something may be put into a step."""

    place: str  # data, before, forward, loss, backward, optimizer, end
    step: int
    layer: int = 0
    rank: int = 0


@dataclass(frozen=True)
class Script:
    """The size and the kind of the training."""

    seed: int
    layers: int = 4
    kernel_ns: int = 120_000  # of a product
    dispatch_ns: int = 6_000  # of an operator
    backward: bool = True
    graphed: bool = False  # a whole pass is replayed as a CUDA graph
    compiled: bool = False  # the forward pass is a compiled region
    ranks: int = 1  # of which each reduces the gradients of a layer while the next are computed
    reduce_ns: int = 0  # that this takes
    prefetches: bool = False  # batches are copied from pinned memory by a stream of their own

    def around(self, ns: float, *what: object) -> int:
        """The duration with the scatter of real ones: the same in every run of the world."""
        drawn = zlib.crc32(repr((self.seed, *what)).encode()) / 2**32
        return max(int(ns * (0.94 + 0.12 * drawn)), 0)

    def step(self, number: int, rank: int, at: Callable[[Site], Nodes]) -> Nodes:
        """One step of a rank; `at` says what the causes put where."""

        def put(place: str, layer: int = 0) -> Nodes:
            return at(Site(place, number, layer, rank))

        body: Nodes = (Busy(self.around(9_000, "python", number)), *self._prefetch(number), *put("data"))
        forward = [(self._layer(number, layer), put("forward", layer)) for layer in range(self.layers)]
        body += (*put("before"), _in_model(tuple(self._pass(forward))))
        body += tuple(self._pass([((self._loss(number),), put("loss"))]))
        if self.backward:
            body += self._backward(number, put)
            body += (_frame(f"{TRAIN}(71): update", put("optimizer") or self._optimizer(number)),)
        return (_frame(f"{TRAIN}(40): train_step", body + put("end")),)

    def _pass(self, parts: list[tuple[Nodes, Nodes]]) -> Iterator[Node]:
        """The parts one after the other; replayed as graphs, with what causes put between them."""
        pending: Nodes = ()
        for own, put in parts:
            pending += own
            if put:
                yield from self._submitted(pending)
                yield from put
                pending = ()
        yield from self._submitted(pending)

    def _submitted(self, nodes: Nodes) -> Nodes:
        if not self.graphed or not nodes:
            return nodes
        replay = Submit("cudaGraphLaunch", tuple(_activities(nodes)), ns=12_000)
        return (_frame("torch/cuda/graphs.py(88): replay", (replay,)),)

    def _prefetch(self, step: int) -> Nodes:
        if not self.prefetches:
            return ()
        ns = self.around(self.kernel_ns, "prefetch", step)
        copy = Activity("Memcpy HtoD (Pinned -> Device)", ns, "copy", "gpu_memcpy", {"bytes": ns * 20})
        call: Nodes = (Submit("cudaMemcpyAsync", (copy,), 5_000, stream=13),)
        for name in ("aten::copy_", "aten::_to_copy", "aten::to"):
            call = (Span("cpu_op", name, (Busy(1_500, "dispatch"), *call)),)
        return (*call, Join(7, 13)) if step == 0 else call

    def _layer(self, step: int, layer: int) -> Nodes:
        if self.compiled:
            return self._compiled_layer(step, layer)
        linear = self._product("aten::linear", "aten::addmm", step, layer, "forward", layer * 2)
        relu = self._elementwise("aten::relu", step, layer, "relu", layer * 2 + 1)
        inside = (_frame("torch/nn/modules/linear.py(117): forward", (Busy(1_500), linear)),)
        module = Span("python_function", f"nn.Module: Linear_{layer}", inside)
        return (Busy(self.around(2_500, "between", step, layer)), module, relu)

    def _compiled_layer(self, step: int, layer: int) -> Nodes:
        product = self._product_parts("aten::mm", step, layer, "forward")
        fused = Activity(
            f"triton_poi_fused_addmm_relu_{layer}",
            self.around(max(self.kernel_ns / 14, 2_000), "fused", step, layer),
            args={"est. achieved occupancy %": 80, "blocks per SM": 10.0, "warps per SM": 40.0},
        )
        launch = Submit("cuLaunchKernel", (fused,), 3_000, cat="cuda_driver")
        generated = Span("cpu_op", fused.name, (Busy(1_000, "dispatch"), launch))
        graph = Span("cpu_op", "## Call CompiledFxGraph fabc0123 ##", (Busy(2_000, "dispatch"), product, generated))
        sequence = {"Sequence number": layer * 2 + 1, "Fwd thread id": 0}
        function = Span("cpu_op", "CompiledFunction", (Busy(4_000, "dispatch"), graph), sequence)
        lookup = Span(
            "cpu_op", "TorchDynamo Cache Lookup", (Busy(self.around(9_000, "guards", step, layer), "dispatch"),)
        )
        return (lookup, Span("cpu_op", f"Torch-Compiled Region: {layer}/0", (Busy(3_000, "dispatch"), function)))

    def _loss(self, step: int) -> Node:
        return self._elementwise("aten::cross_entropy_loss", step, 0, "loss", self.layers * 2)

    def _backward(self, step: int, put: Callable[..., Nodes]) -> Nodes:
        loss = self._elementwise_parts("aten::nll_loss_backward", step, 0, "nll")
        nodes: list[tuple[Nodes, Nodes]] = [((self._node("NllLossBackward0", self.layers * 2, loss),), ())]
        for layer in reversed(range(self.layers)):
            relu = self._elementwise_parts("aten::threshold_backward", step, layer, "threshold")
            gradients = tuple(self._product_parts("aten::mm", step, layer, f"gradient{k}") for k in range(2))
            of_layer = (
                self._node("ReluBackward0", layer * 2 + 1, relu),
                self._node("AddmmBackward0", layer * 2, *gradients, *self._reduce(step, layer)),
            )
            nodes.append((of_layer, put("backward", layer)))
        joined: Nodes = (Join(7, COMM),) if self.ranks > 1 else ()
        if self.graphed:
            return (*self._pass(nodes), *joined)
        work: Nodes = (Handover(tuple(self._pass(nodes))),)
        engine = Span(
            "python_function", "<built-in method run_backward of torch._C._EngineBase object at 0x7f00>", work
        )
        called = _frame("torch/autograd/__init__.py(243): backward", (engine,))
        return (_frame("torch/_tensor.py(428): backward", (called,)), *joined)

    def _reduce(self, step: int, layer: int) -> Nodes:
        if self.ranks == 1:
            return ()
        return self.collective(
            "all_reduce", "AllReduce_Sum_bf16_RING_LL", self.around(self.reduce_ns, "reduce", step, layer)
        )

    def collective(self, name: str, kernel: str, ns: int) -> Nodes:
        """A collective on the stream of communication, after what the stream of computation was given so far."""
        work = Activity(f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)", ns, "comm", args=_COLLECTIVE)
        launch = Submit("cudaLaunchKernelExC", (work,), 6_000, stream=COMM)
        inside = Span("user_annotation", f"nccl:{name}", (Join(COMM, 7), launch))
        return (Span("cpu_op", f"c10d::{name.replace('_', '')}_", (Busy(8_000, "dispatch"), inside)),)

    def _node(self, name: str, sequence: int, *operators: Span) -> Span:
        args = {"Sequence number": sequence, "Fwd thread id": 1}
        inner = Span("cpu_op", name, operators, args)
        return Span("cpu_op", f"autograd::engine::evaluate_function: {name}", (Busy(1_500, "dispatch"), inner), args)

    def _optimizer(self, step: int) -> Nodes:
        update = self._elementwise_parts("aten::_fused_adamw_", step, 0, "adam")
        return (Span("user_annotation", "Optimizer.step#AdamW.step", (Busy(4_000), *self._submitted((update,)))),)

    def _product(self, name: str, inner: str, step: int, layer: int, what: str, sequence: int) -> Span:
        args = {"Sequence number": sequence, "Fwd thread id": 0}
        parts = self._product_parts(inner, step, layer, what)
        return Span(
            "cpu_op", name, (Busy(1_000, "dispatch"), Span("cpu_op", inner, parts.body, parts.args | args)), args
        )

    def _product_parts(self, name: str, step: int, layer: int, what: str) -> Span:
        ns = self.around(self.kernel_ns, what, step, layer)
        rows = max(int(ns * _FLOPS_A_NS / (2 * _WIDTH * _WIDTH)) // 64 * 64, 64)
        dims = [[rows, _WIDTH], [_WIDTH, _WIDTH]]
        dims = [[_WIDTH], *dims] if name.endswith("addmm") else dims
        product = Activity(
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_kernel",
            ns,
            args={"est. achieved occupancy %": 19, "blocks per SM": 6.5, "warps per SM": 26.0},
        )
        return self.operator(name, product, dims, what, step, layer)

    def _elementwise(self, name: str, step: int, layer: int, what: str, sequence: int) -> Span:
        span = self._elementwise_parts(name, step, layer, what)
        return Span(span.cat, span.name, span.body, span.args | {"Sequence number": sequence, "Fwd thread id": 0})

    def _elementwise_parts(self, name: str, step: int, layer: int, what: str) -> Span:
        ns = self.around(max(self.kernel_ns / 12, 2_000), what, step, layer)
        dims = [[max(int(ns * _BYTES_A_NS / 4 / _WIDTH), 1), _WIDTH]]
        functor = name.rpartition("::")[2].strip("_")
        work = Activity(
            f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}_kernel, std::array<char*, 2ul> >",
            ns,
            args={"est. achieved occupancy %": 85, "blocks per SM": 12.0, "warps per SM": 48.0},
        )
        return self.operator(name, work, dims, what, step, layer)

    def operator(
        self, name: str, work: Activity, dims: list[list[int]] | None = None, *what: object, stream: int = 7
    ) -> Span:
        """An operator that launches one kernel."""
        ns = self.around(self.dispatch_ns, name, *what)
        args = {"Input Dims": dims, "Input type": ["c10::BFloat16"] * len(dims)} if dims else {}
        launch = Submit("cudaLaunchKernel", (work,), ns=self.around(3_800, "launch", name, *what), stream=stream)
        return Span("cpu_op", name, (Busy(ns * 2 // 3, "dispatch"), launch, Busy(ns - ns * 2 // 3, "dispatch")), args)


def _frame(name: str, body: Nodes) -> Span:
    return Span("python_function", name, body)


def _in_model(nodes: Nodes) -> Span:
    return Span("python_function", "nn.Module: GCN_0", (_frame(f"{MODEL}(18): forward", nodes),))


def _activities(nodes: Nodes) -> Iterator[Activity]:
    for node in nodes:
        if isinstance(node, Submit):
            yield from node.work
        elif isinstance(node, Span | Handover):
            yield from _activities(node.body)
