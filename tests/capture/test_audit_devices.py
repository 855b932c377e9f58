"""The emulated GPU: where tensors are, and what they report about themselves. Their values are those of the CPU."""

import copy
import io
import threading

import pytest

torch = pytest.importorskip("torch")

from tracekit.capture.audit.child import emulated  # noqa: E402

GPU = torch.device("cuda", 0)


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


def test_a_packed_sequence_has_its_sizes_on_the_cpu(watch, x):
    layer = torch.nn.LSTM(1, 2, batch_first=True).to("cuda", non_blocking=True)
    out, _ = layer(packed(x))
    torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0].sum().backward()
    assert layer.weight_ih_l0.grad.is_cuda
    assert [row for row in watch.rows() if row.kind == "mixed"] == []


def test_what_is_freed_leaves_nothing_behind(watch):
    for _ in range(200):
        torch.ones(1000, device="cuda")
        assert not torch.ones(1000).is_cuda  # perhaps at the same address
    assert torch.cuda.memory_allocated() == 0


def test_classes_of_tensors_tell_devices_apart(x):
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(torch.ones(2), torch.cuda.FloatTensor)
    assert not isinstance(x.long(), torch.cuda.FloatTensor)


def test_a_process_group_of_one(watch, tmp_path):
    torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 2).cuda(), device_ids=[0])
        model(torch.ones(1, 6, device="cuda")).sum().backward()
        assert model.module.weight.grad.is_cuda
    finally:
        torch.distributed.destroy_process_group()


def test_gradients_go_back_where_they_came_from(watch):
    leaf = torch.ones(3, requires_grad=True)
    leaf.to("cuda", non_blocking=True).sum().backward()
    assert not leaf.grad.is_cuda
    on_gpu = torch.ones(3, device="cuda", requires_grad=True)
    (on_gpu * 2).sum().backward()
    assert on_gpu.grad.is_cuda
    assert on_gpu.grad.tolist() == [2, 2, 2]


def test_parameters_stay_who_they_are(watch):
    """An optimizer may be made before its model is moved to the device."""
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
    assert torch.ones(1).cuda().is_cuda  # the fixture's emulation goes on


def test_without_it_torch_is_as_it_was():
    before = {name: getattr(torch.Tensor, name) for name in ("to", "device", "is_cuda", "numpy", "pin_memory")}
    functions = torch.tensor, torch.compile, torch.cuda.is_available, torch.Generator, threading.Thread.run
    with emulated():
        assert torch.cuda.is_available()
    assert {name: getattr(torch.Tensor, name) for name in before} == before
    assert (torch.tensor, torch.compile, torch.cuda.is_available, torch.Generator, threading.Thread.run) == functions
