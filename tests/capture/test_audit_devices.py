"""The emulated GPU: what a tensor says of itself there, and what is noticed. Values are the CPU's own."""

import copy
import io
import threading

import pytest

torch = pytest.importorskip("torch")

from tracekit.capture.audit.child import emulated  # noqa: E402

GPU = torch.device("cuda", 0)


@pytest.fixture
def watch():
    """Inside of the emulation, counting."""
    with emulated() as emulation:
        emulation.watch.counting, emulation.watch.steps = True, 1
        yield emulation.watch


def seen(watch):
    return sorted((row.kind, row.operator.removeprefix("aten::")) for row in watch.rows())


@pytest.fixture
def x(watch):
    return torch.arange(6.0, device="cuda")


def test_a_device_by_its_number_is_a_gpu(watch):
    first = torch.device(0)
    assert isinstance(first, torch.device)
    assert not isinstance("cuda", torch.device)
    assert (first, torch.device(1), torch.device("cpu")) == (GPU, torch.device("cuda", 1), torch.device(type="cpu"))
    with first:
        assert torch.ones(2).device == GPU


MADE_ON_THE_GPU = {
    "factory": lambda x: torch.zeros(2, device="cuda"),
    "index": lambda x: torch.ones(2, device=0),
    "number of a device": lambda x: torch.ones(2, device=torch.device(0)),
    "number of a device, to which it moves": lambda x: torch.ones(2).to(torch.device(device=0)),
    "copy of a number": lambda x: torch.ones(2, device=copy.deepcopy(torch.device(0))),
    "like": torch.zeros_like,
    "new": lambda x: x.new_ones(3),
    "operator": lambda x: x + 1,
    "view": lambda x: x.view(2, 3)[1:],
    "data": lambda x: x.data,
    "parameter": torch.nn.Parameter,
    "deep copy": lambda x: copy.deepcopy(torch.nn.Linear(2, 2).cuda()).weight,
    "deep copy of a buffer": copy.deepcopy,
    "scalar": lambda x: x.sum() * torch.tensor(2.0),
    "moved to another": lambda x: torch.ones(2).to(x),
    "one hot": lambda x: torch.nn.functional.one_hot(x.long(), 7),
    "sparse": lambda x: torch.sparse_coo_tensor(torch.zeros(1, 6, dtype=torch.long, device="cuda"), x, (3,)),
    "of a module": lambda x: torch.nn.LSTM(2, 2).to("cuda").weight_ih_l0,
    "data replaced": lambda x: replaced_data(torch.nn.Parameter(torch.zeros(6)), x),
    "in a thread": lambda x: in_a_thread(lambda: x * 2),
    "of a module, by number": lambda x: torch.nn.Linear(2, 2).to(0).weight,
    "default": lambda x: in_default(lambda: torch.tensor([1.0])),
    "drawn": lambda x: torch.rand(2, device="cuda", generator=torch.Generator("cuda")),
    "lazy": lambda x: lazy(torch.nn.LazyLinear(2).to("cuda"), x).weight,
    "new, in the old way": lambda x: x.new(3),
    "a GPU's type": lambda x: torch.cuda.FloatTensor([1.0]),
    "a GPU's type of a size": lambda x: torch.cuda.LongTensor(3),
    "type": lambda x: torch.ones(2).type(torch.cuda.HalfTensor),
    "named type": lambda x: torch.ones(2).type("torch.cuda.LongTensor"),
    "type of another": lambda x: torch.ones(2).type_as(x),
    "saved there": lambda x: saved(x, weights_only=True),
    "loaded there": lambda x: saved(x.cpu(), map_location="cuda"),
    "loaded by storage": lambda x: saved(x.cpu(), map_location=lambda storage, where: storage.cuda()),
    "data parallel": lambda x: torch.nn.DataParallel(torch.nn.Linear(6, 2).cuda())(torch.ones(1, 6)),
}


def replaced_data(parameter, x):
    parameter.data = x
    return parameter


def lazy(layer, x):
    layer(x.view(1, 6))
    return layer


def saved(tensor, **options):
    file = io.BytesIO()
    torch.save({"x": tensor}, file)
    file.seek(0)
    return torch.load(file, **options)["x"]


def in_a_thread(make):
    made = []
    thread = threading.Thread(target=lambda: made.append(make()))
    thread.start()
    thread.join()
    return made[0]


def in_default(make):
    with torch.device("cuda"):
        return make()


@pytest.mark.parametrize("make", MADE_ON_THE_GPU.values(), ids=MADE_ON_THE_GPU)
def test_lies_on_the_gpu(x, make):
    made = make(x)
    assert made.is_cuda
    assert made.device == GPU
    assert made.device.type == "cuda"
    assert made.get_device() == 0


ON_THE_CPU = {
    "factory": lambda x: torch.zeros(2),
    "tensor": lambda x: torch.tensor([1.0]),
    "back": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "like": lambda x: torch.zeros_like(x, device="cpu"),
    "copied over": lambda x: torch.zeros(6).copy_(x),
    "pinned": lambda x: torch.zeros(3).pin_memory(),
    "a CPU's type": lambda x: x.type(torch.FloatTensor),
    "saved there, loaded here": lambda x: saved(x, map_location="cpu"),
    "loaded elsewhere by name": lambda x: saved(x, map_location={"cuda:0": "cpu"}),
    "loaded as it is": lambda x: saved(x, map_location=lambda storage, where: storage),
    "sizes of a packed sequence": lambda x: packed(x).batch_sizes,
}


def packed(x):
    return torch.nn.utils.rnn.pack_padded_sequence(x.view(2, 3, 1), torch.tensor([3, 2]), batch_first=True)


@pytest.mark.parametrize("make", ON_THE_CPU.values(), ids=ON_THE_CPU)
def test_lies_on_the_cpu(x, make):
    made = make(x)
    assert not made.is_cuda
    assert made.device == torch.device("cpu")


def test_what_is_freed_leaves_nothing_behind(watch):
    for _ in range(200):
        torch.ones(1000, device="cuda")
        assert not torch.ones(1000).is_cuda  # perhaps at the same address
    assert torch.cuda.memory_allocated() == 0


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
    "equal": (lambda x: torch.equal(x, x), "equal"),
    "classes": (lambda x: torch.nn.functional.one_hot(x.long()), "_local_scalar_dense"),
    "cpu": (lambda x: x.cpu(), "_to_copy"),
    "copy over": (lambda x: torch.zeros(6).copy_(x), "copy_"),
    "synchronize": (lambda x: torch.cuda.synchronize(), "torch.cuda.synchronize"),
    "event": (lambda x: torch.cuda.Event().synchronize(), "torch.cuda.Event.synchronize"),
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
    "where": lambda x: torch.where(x > 2, x, 0.0),
    "sized repeat": lambda x: x.repeat_interleave(torch.ones_like(x).long(), output_size=6),
    "known classes": lambda x: torch.nn.functional.one_hot(x.long(), 7),
    "there already": lambda x: x.to("cuda"),
    "from pinned": lambda x: torch.ones(3).pin_memory().to("cuda", non_blocking=True),
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
    indices = torch.tensor([0, 1])  # what tests make to begin with is none of theirs
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
    "tensor": (lambda x: torch.tensor([1.0, 2.0], device="cuda"), "_to_copy"),
    "new tensor": (lambda x: x.new_tensor([1.0]), "_to_copy"),
    "as tensor": (lambda x: torch.as_tensor(1.0, device="cuda"), "_to_copy"),
    "list of indices": (lambda x: x[[0, 1]], "index"),
    "indices on the CPU": (lambda x: x[torch.tensor([0, 1])], "index"),
    "mask on the CPU": (lambda x: x[torch.ones(6) > 0], "index"),
    "copy over": (lambda x: x.copy_(torch.ones(6)), "copy_"),
}


@pytest.mark.parametrize(("call", "operator"), COPIES.values(), ids=COPIES)
def test_copies(watch, x, call, operator):
    call(x)
    assert seen(watch) == [("copy", operator)]


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


def test_a_packed_sequence_has_its_sizes_on_the_cpu(watch, x):
    layer = torch.nn.LSTM(1, 2, batch_first=True).to("cuda", non_blocking=True)
    out, _ = layer(packed(x))
    torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0].sum().backward()
    assert layer.weight_ih_l0.grad.is_cuda
    assert [row for row in watch.rows() if row.kind == "mixed"] == []


def test_classes_of_tensors_tell_devices_apart(x):
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(torch.ones(2), torch.cuda.FloatTensor)
    assert not isinstance(x.long(), torch.cuda.FloatTensor)


def test_under_a_default_device_nothing_is_counted_twice(watch):
    try:
        torch.set_default_device("cuda")
        torch.ones(2).tolist()
    finally:
        torch.set_default_device(None)
    assert [(row.operator, row.per_step) for row in watch.rows()] == [("Tensor.tolist", 1)]


def test_a_process_group_of_one(watch, tmp_path):
    torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 2).cuda(), device_ids=[0])
        model(torch.ones(1, 6, device="cuda")).sum().backward()
        assert model.module.weight.grad.is_cuda
    finally:
        torch.distributed.destroy_process_group()


def test_the_first_crash_is_told_and_not_what_comes_of_it(watch, x):
    layer = torch.nn.Linear(6, 2)
    optimizer = torch.optim.SGD(layer.parameters())
    for _ in range(2):
        layer(x.view(1, 6)).sum().backward()
        optimizer.step()
    assert [(row.operator, row.per_step) for row in watch.rows()] == [("aten::addmm", 2)]


def test_gradients_go_back_where_they_came_from(watch):
    leaf = torch.ones(3, requires_grad=True)
    leaf.to("cuda", non_blocking=True).sum().backward()
    assert not leaf.grad.is_cuda
    on_gpu = torch.ones(3, device="cuda", requires_grad=True)
    (on_gpu * 2).sum().backward()
    assert on_gpu.grad.is_cuda
    assert on_gpu.grad.tolist() == [2, 2, 2]


def test_parameters_stay_who_they_are(watch):
    """An optimizer may be made before its model is moved."""
    layer = torch.nn.Linear(2, 2)
    weight, before = layer.weight, layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    layer.cuda()
    assert layer.weight is weight
    layer(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    assert torch.equal(weight.cpu(), before - 1)


def test_the_pretence_ends(watch):
    with emulated():
        torch.ones(1, device="cuda")
    assert torch.ones(1).cuda().is_cuda  # that of the fixture goes on


def test_without_it_torch_is_as_it_was():
    before = {name: getattr(torch.Tensor, name) for name in ("to", "device", "is_cuda", "numpy", "pin_memory")}
    functions = torch.tensor, torch.compile, torch.cuda.is_available, torch.Generator, threading.Thread.run
    with emulated():
        assert torch.cuda.is_available()
    assert {name: getattr(torch.Tensor, name) for name in before} == before
    assert (torch.tensor, torch.compile, torch.cuda.is_available, torch.Generator, threading.Thread.run) == functions
