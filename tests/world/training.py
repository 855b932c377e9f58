"""The training script that a world runs: a network of a few layers, in which nothing is wrong by itself.

Causes put their own nodes at its sites: before the forward pass, between layers, in the loss, in the optimizer, at the
end of the step.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.world.program import Activity, Busy, Handover, Node, Nodes, Span, Submit

TRAIN, MODEL = "train.py", "model.py"
_FLOPS_A_NS = 2.4e5  # of dense bfloat16 products
_BYTES_A_NS = 1300  # of large elementwise kernels
_WIDTH = 1024


@dataclass(frozen=True)
class Site:
    """Where and when something may be put into a step."""

    place: str  # data, forward, loss, optimizer, end
    step: int
    layer: int = 0


@dataclass(frozen=True)
class Script:
    """The size and the kind of the training."""

    seed: int
    layers: int = 4
    kernel_ns: int = 120_000  # of a product
    dispatch_ns: int = 6_000  # of an operator
    backward: bool = True
    graphed: bool = False  # a whole pass is replayed as a CUDA graph
    compiled: bool = False

    def around(self, ns: float, *what: object) -> int:
        """The duration with the scatter of real ones: the same in every run of the world."""
        drawn = zlib.crc32(repr((self.seed, *what)).encode()) / 2**32
        return max(int(ns * (0.94 + 0.12 * drawn)), 0)

    def step(self, number: int, at: Callable[[Site], Nodes]) -> Nodes:
        """One step; `at` says what the causes put where."""
        forward: list[tuple[Nodes, Nodes]] = []
        for layer in range(self.layers):
            forward.append((self._layer(number, layer), at(Site("forward", number, layer))))
        parts: Nodes = at(Site("data", number))
        parts += (_in_model(tuple(self._pass(forward))),)
        parts += tuple(self._pass([((self._loss(number),), at(Site("loss", number)))]))
        if self.backward:
            parts += self._backward(number, at)
            parts += (_frame(f"{TRAIN}(71): update", at(Site("optimizer", number)) or self._optimizer(number)),)
        parts += at(Site("end", number))
        body = (_frame(f"{TRAIN}(40): train_step", (Busy(self.around(9_000, "python", number)), *parts)),)
        return body

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

    def _layer(self, step: int, layer: int) -> Nodes:
        linear = self._product("aten::linear", "aten::addmm", step, layer, "forward", layer * 2)
        relu = self._elementwise("aten::relu", step, layer, "relu", layer * 2 + 1)
        inside = (_frame("torch/nn/modules/linear.py(117): forward", (Busy(1_500), linear)),)
        module = Span("python_function", f"nn.Module: Linear_{layer}", inside)
        return (Busy(self.around(2_500, "between", step, layer)), module, relu)

    def _loss(self, step: int) -> Node:
        return self._elementwise("aten::cross_entropy_loss", step, 0, "loss", self.layers * 2)

    def _backward(self, step: int, at: Callable[[Site], Nodes]) -> Nodes:
        nodes: list[tuple[Nodes, Nodes]] = [
            (
                (
                    self._node(
                        "NllLossBackward0",
                        self.layers * 2,
                        self._elementwise_parts("aten::nll_loss_backward", step, 0, "nll"),
                    ),
                ),
                (),
            )
        ]
        for layer in reversed(range(self.layers)):
            relu = self._elementwise_parts("aten::threshold_backward", step, layer, "threshold")
            gradients = tuple(self._product_parts("aten::mm", step, layer, f"gradient{k}") for k in range(2))
            nodes.append(
                (
                    (
                        self._node("ReluBackward0", layer * 2 + 1, relu),
                        self._node("AddmmBackward0", layer * 2, *gradients),
                    ),
                    at(Site("backward", step, layer)),
                )
            )
        if self.graphed:
            return tuple(self._pass(nodes))
        work: Nodes = (Handover(tuple(self._pass(nodes))),)
        engine = Span(
            "python_function", "<built-in method run_backward of torch._C._EngineBase object at 0x7f00>", work
        )
        called = _frame("torch/autograd/__init__.py(243): backward", (engine,))
        return (_frame("torch/_tensor.py(428): backward", (called,)),)

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
