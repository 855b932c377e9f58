"""Which device a capture chooses and why, and which ones it refuses; one file knows what GPUs are called."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tracekit.capture import device, preparation
from tracekit.capture.job import PassResult
from tracekit.capture.options import Options
from tracekit.errors.capturing import NoSuchDeviceError, UnsupportedDeviceError


def choose(device, result):
    said = []
    return preparation._choose_device(Options("r.py", device=device, tell=said.append), result), said


@pytest.fixture
def no_gpu(monkeypatch):
    """A PyTorch built for CUDA, on a machine without a GPU that responds."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", "12.8")


def test_the_gpu_is_chosen_without_a_word():
    assert choose("auto", PassResult(devices=["cuda", "cuda:0", "cpu"], accelerator="cuda")) == ("cuda", [])


def test_that_there_is_none_is_said_with_the_reason():
    device, said = choose("auto", PassResult(devices=["cpu"], why_no_gpu="CUDA_VISIBLE_DEVICES= hides every GPU"))
    assert (device, said) == ("cpu", ["No GPU: CUDA_VISIBLE_DEVICES= hides every GPU. Training on the CPU."])
    assert choose("cpu", PassResult(devices=["cpu"], why_no_gpu="none")) == ("cpu", [])


@pytest.mark.parametrize(
    ("wanted", "accelerator", "error"),
    [
        ("mps", "mps", UnsupportedDeviceError),
        ("xpu:1", "xpu", UnsupportedDeviceError),
        ("mps", None, NoSuchDeviceError),
        ("cuda:7", "cuda", NoSuchDeviceError),
    ],
)
def test_an_accelerator_that_cannot_be_measured_is_refused_as_such(wanted, accelerator, error):
    with pytest.raises(error, match=f"^{wanted}: "):
        choose(wanted, PassResult(devices=["cpu"], accelerator=accelerator))


def test_a_build_for_the_cpu_says_so(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert device.why_no_gpu() == f"PyTorch {torch.__version__} is built without CUDA and ROCm"


def test_a_hidden_gpu_is_told_from_a_driver_that_fails(no_gpu, monkeypatch):
    def fail():
        raise RuntimeError("Found no NVIDIA driver on your system.\nMore of it.")

    monkeypatch.setattr(torch.cuda, "init", fail)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert device.why_no_gpu() == "Found no NVIDIA driver on your system."
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert device.why_no_gpu() == "CUDA_VISIBLE_DEVICES=-1 hides every GPU"


def test_another_accelerator_is_named(no_gpu, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: SimpleNamespace(type="mps"))
    assert device.why_no_gpu() == "PyTorch finds mps here, which cannot be measured"


def test_only_one_file_of_a_capture_knows_what_pytorch_calls_a_gpu():
    folder = Path(device.__file__).parent
    files = [path for path in folder.rglob("*.py") if path.name != "device.py" and path.parent.name != "audit"]
    assert len(files) > 30
    assert [name for path in files for name in _names_of_gpus(path)] == []


def _names_of_gpus(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "cuda" and ast.unparse(node.value) == "torch":
            yield f"{path.name}:{node.lineno} torch.cuda"
        inputs = [*node.args] if isinstance(node, ast.Call) else []
        inputs += [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        for part in inputs:
            if isinstance(part, ast.Constant) and str(part.value).partition(":")[0] == "cuda":
                yield f"{path.name}:{node.lineno} {part.value}"
