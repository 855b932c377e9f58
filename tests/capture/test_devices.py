"""Which device a capture chooses and why, and which ones it refuses."""

from types import SimpleNamespace

import pytest
import torch

from tracekit.capture import environment, preparation
from tracekit.capture.job import PassResult
from tracekit.capture.options import Options
from tracekit.errors import NoSuchDeviceError, UnsupportedDeviceError


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
    assert environment.why_no_gpu() == f"PyTorch {torch.__version__} is built without CUDA and ROCm"


def test_a_hidden_gpu_is_told_from_a_driver_that_fails(no_gpu, monkeypatch):
    def fail():
        raise RuntimeError("Found no NVIDIA driver on your system.\nMore of it.")

    monkeypatch.setattr(torch.cuda, "init", fail)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert environment.why_no_gpu() == "Found no NVIDIA driver on your system."
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert environment.why_no_gpu() == "CUDA_VISIBLE_DEVICES=-1 hides every GPU"


def test_another_accelerator_is_named(no_gpu, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: SimpleNamespace(type="mps"))
    assert environment.why_no_gpu() == "PyTorch finds mps here, which cannot be measured"
