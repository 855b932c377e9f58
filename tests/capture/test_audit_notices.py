"""The emulated GPU: which operators it reports as waits, copies and crashes, and which it does not."""

import pytest

torch = pytest.importorskip("torch")


def seen(watch):
    return sorted((row.kind, row.operator.removeprefix("aten::")) for row in watch.rows())


WAITS = {
    "item": (lambda x: x[0].item(), "_local_scalar_dense"),
    "float": (lambda x: float(x.sum()), "_local_scalar_dense"),
    "truth": (lambda x: bool(x[0]), "_local_scalar_dense"),
    "slice": (lambda x: x[: x.long()[2]], "_local_scalar_dense"),
    "format": (lambda x: f"{x.sum():.3f}", "_local_scalar_dense"),
    "list": (lambda x: x.tolist(), "Tensor.tolist"),
    "mask": (lambda x: x[x > 2], "index"),
    "put by a mask": (lambda x: x.index_put_((x > 2,), x[:3] * 2), "index_put_"),
    "masked select": (lambda x: x.masked_select(x > 2), "masked_select"),
    "nonzero": (lambda x: x.nonzero(), "nonzero"),
    "where": (lambda x: torch.where(x > 1), "nonzero"),
    "unique": (lambda x: x.unique(), "_unique2"),
    "repeat": (lambda x: x.repeat_interleave(x.long()), "repeat_interleave"),
    "count": (lambda x: x.long().bincount(), "bincount"),
    "equal": (lambda x: torch.equal(x, x + 1), "equal"),
    "close": (lambda x: torch.allclose(x, x + 1), "allclose"),
    "fill with a number of the GPU": (lambda x: x.masked_fill(x > 2, x.sum()), "masked_fill"),
    "to CSR": (lambda x: x.view(2, 3).to_sparse_csr(), "_to_sparse_csr"),
    "classes": (lambda x: torch.nn.functional.one_hot(x.long()), "_local_scalar_dense"),
    "cpu": (lambda x: x.cpu(), "_to_copy"),
    "copy over": (lambda x: torch.zeros(6).copy_(x), "copy_"),
    "synchronize": (lambda x: torch.cuda.synchronize(), "torch.cuda.synchronize"),
    "event": (lambda x: torch.cuda.current_stream().record_event().synchronize(), "torch.cuda.Event.synchronize"),
    "inverse": (lambda x: torch.eye(2, device="cuda").inverse(), "_linalg_check_errors"),
}


@pytest.mark.parametrize(("call", "operator"), WAITS.values(), ids=WAITS)
def test_waits(watch, x, call, operator):
    call(x)
    assert seen(watch) == [("sync", operator)]


NO_WAITS = {
    "indices": lambda x: x[torch.tensor([0, 1], device="cuda")],
    "fill": lambda x: x.masked_fill_(x > 2, 0),
    "fill by a mask": lambda x: x.__setitem__(x > 2, 0.0),
    "number in a row": lambda x: x.view(2, 3).__setitem__(1, 1.0),
    "number of the GPU": lambda x: x.__setitem__(3, x.sum()),
    "draw": lambda x: (x + 1).multinomial(2),
    "number in a slice": lambda x: x.__setitem__(slice(2, 5), 1.0),
    "rows at indices": lambda x: x.__setitem__(x.long(), x.sum()),
    "number filled in at indices": lambda x: x.index_fill_(0, x.long(), 1.0),
    "where": lambda x: torch.where(x > 2, x, 0.0),
    "sized repeat": lambda x: x.repeat_interleave(torch.ones_like(x).long(), output_size=6),
    "known classes": lambda x: torch.nn.functional.one_hot(x.long(), 7),
    "there already": lambda x: x.to("cuda"),
    "from pinned": lambda x: torch.ones(3).pin_memory().to("cuda", non_blocking=True),
    "large from pinned": lambda x: torch.ones(3 << 20).pin_memory().to("cuda", non_blocking=True),
    "small from pageable": lambda x: torch.ones(16_384).to("cuda", non_blocking=True),
    "unwaited": lambda x: x.to("cpu", non_blocking=True),
    "on the CPU": lambda x: torch.ones(3)[torch.ones(3) > 0].sum().item(),
    "other dtype": lambda x: x.to(torch.float64).half().long(),
    "clip": lambda x: clip(torch.nn.Linear(2, 2).to("cuda", non_blocking=True)),
    "optimizer": lambda x: train(torch.nn.Linear(2, 2).to("cuda", non_blocking=True), torch.optim.Adam),
    "statistics": lambda x: torch.nn.BatchNorm1d(2).to("cuda", non_blocking=True)(x.view(3, 2)),
    "loss": lambda x: torch.nn.functional.cross_entropy(x.view(2, 3), x.long()[:2], label_smoothing=0.1),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "empty": lambda x: torch.ones(0).to("cuda"),
}


def clip(layer):
    layer(torch.ones(3, 2, device="cuda")).sum().backward()
    torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)


def train(layer, kind):
    optimizer = kind(layer.parameters())
    layer(torch.ones(3, 2, device="cuda")).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("call", NO_WAITS.values(), ids=NO_WAITS)
def test_waits_for_nothing(watch, call):
    x = torch.arange(6, device="cuda", dtype=torch.float)
    indices = torch.tensor([0, 1])  # tensors that a test makes beforehand do not count
    watch.begin()
    if call is NO_WAITS["indices"]:
        indices = indices.to("cuda", non_blocking=True)
        x[indices]
    else:
        call(x)
    assert seen(watch) == []


COPIES = {
    "to": (lambda x: torch.ones(3).to("cuda"), "_to_copy"),
    "cuda": (lambda x: torch.ones(3).cuda(), "_to_copy"),
    "pinned, and waited for": (lambda x: torch.ones(3).pin_memory().to("cuda"), "_to_copy"),
    "large from pageable": (lambda x: torch.ones(16_385).to("cuda", non_blocking=True), "_to_copy"),
    "large from pageable, over": (
        lambda x: torch.empty(16_385, device="cuda").copy_(torch.ones(16_385), non_blocking=True),
        "copy_",
    ),
    "tensor": (lambda x: torch.tensor([1.0, 2.0], device="cuda"), "_to_copy"),
    "new tensor": (lambda x: x.new_tensor([1.0]), "_to_copy"),
    "as tensor": (lambda x: torch.as_tensor(1.0, device="cuda"), "_to_copy"),
    "list of indices": (lambda x: x[[0, 1]], "index"),
    "indices on the CPU": (lambda x: x[torch.tensor([0, 1])], "index"),
    "mask on the CPU": (lambda x: x[torch.ones(6) > 0], "index"),
    "copy over": (lambda x: x.copy_(torch.ones(6)), "copy_"),
    "number in a place": (lambda x: x.__setitem__(3, 1.0), "copy_"),
    "number in a place of a matrix": (lambda x: x.view(2, 3).__setitem__((1, 1), 1.0), "copy_"),
    "number over all": (lambda x: x.copy_(torch.tensor(1.0)), "copy_"),
    "number at indices": (lambda x: x.__setitem__(x.long(), 1.0), "index_put_"),
    "number put at indices": (lambda x: x.index_put((x.long(),), torch.tensor(1.0)), "index_put"),
}
FILLED = [COPIES[name][0] for name in ("number in a place", "number in a place of a matrix", "number at indices")]


def fills_numbers():
    """Whether setting an element to a number fills it, as in newer versions, and does not copy the number."""
    with torch.autograd.profiler.profile() as recording:
        torch.zeros(2)[1] = 1.0
    return not any(event.name == "aten::copy_" for event in recording.function_events)


@pytest.mark.parametrize(("call", "operator"), COPIES.values(), ids=COPIES)
def test_copies(watch, x, call, operator):
    call(x)
    is_filled = call in FILLED and fills_numbers()
    assert seen(watch) == ([] if is_filled else [("copy", operator)])


def test_compiled_code_has_its_numbers_on_the_gpu(watch, x):
    torch.compile(lambda x: (x.__setitem__(x.long(), 1.0), x.__setitem__(3, 1.0), x.masked_fill(x > 2, x.sum())))(x)
    assert seen(watch) == []


MIXES = {
    "add": (lambda x: x + torch.ones(6), "add"),
    "scalar of the GPU": (lambda x: torch.ones(6) * x.sum(), "mul"),
    "weights forgotten": (lambda x: torch.nn.functional.linear(x, torch.ones(2, 6)), "mm"),
    "index": (lambda x: torch.ones(6)[x.long()], "index"),
    "concatenate": (lambda x: torch.cat([x, torch.ones(1)]), "cat"),
    "numpy": (lambda x: x.numpy(), "Tensor.numpy"),
    "scatter": (lambda x: torch.zeros(6).scatter_add_(0, x.long(), x), "scatter_add_"),
}


@pytest.mark.parametrize(("call", "operator"), MIXES.values(), ids=MIXES)
def test_crashes(watch, x, call, operator):
    call(x)
    assert seen(watch) == [("mixed", operator)]


def test_under_a_default_device_nothing_is_counted_twice(watch):
    try:
        torch.set_default_device("cuda")
        torch.ones(2).tolist()
    finally:
        torch.set_default_device(None)
    assert [(row.operator, row.per_step) for row in watch.rows()] == [("Tensor.tolist", 1)]


def test_the_first_crash_is_told_and_not_what_comes_of_it(watch, x):
    layer = torch.nn.Linear(6, 2)
    optimizer = torch.optim.SGD(layer.parameters())
    for _ in range(2):
        layer(x.view(1, 6)).sum().backward()
        optimizer.step()
    assert [(row.operator, row.per_step) for row in watch.rows()] == [("aten::addmm", 2)]
