"""Libraries that prepare data in the loop itself, in a run on a GPU."""

import pytest
from small import event

from tests.findings.test_host_compute import listed


def called(*frames):
    return lambda at, end: [event("python_function", name, at + k, end - k) for k, name in enumerate(frames)]


TRAIN, RESIZE = "train.py(20): train", "<built-in function resize>"


@pytest.mark.parametrize(
    ("frame", "headline"),
    [
        ("transformers/image_processing_utils.py(44): preprocess", "preprocess of transformers"),
        ("/venv/lib/python3.11/site-packages/PIL/Image.py(2100): resize", "resize of PIL"),
        ("numpy/core/shape_base.py(210): stack", "stack of numpy"),
        ("torchvision/transforms/functional.py(90): to_tensor", "to_tensor of torchvision"),
    ],
)
def test_a_library_that_prepares_data_in_the_loop(tmp_path, frame, headline):
    findings = listed(tmp_path / "a.json", called(TRAIN, frame, RESIZE))
    found = findings["preprocessing"]
    assert found.headline == f"The GPU waits for {headline} at train.py:20"
    assert found.cost_ns == pytest.approx(2_000_000, rel=0.02)
    assert found.do.startswith("Prepare batches ahead")
    assert not {"python_bound", "dispatch_bound"} & {*findings}


def test_results_are_not_prepared_ahead(tmp_path):
    frame = "transformers/models/owlvit/image_processing_owlvit.py(9): post_process_object_detection"
    assert listed(tmp_path / "a.json", called(TRAIN, frame))["preprocessing"].do.startswith(
        "Leave this until after the loop"
    )


@pytest.mark.parametrize(
    "frames",
    [
        (TRAIN, "model.py(7): preprocess"),
        (TRAIN, "transformers/models/bert/modeling_bert.py(70): forward"),
        (TRAIN, "torchvision/models/resnet.py(70): forward"),
    ],
)
def test_what_is_no_preprocessing(tmp_path, frames):
    findings = listed(tmp_path / "a.json", called(*frames))
    assert "preprocessing" not in findings
    assert "python_bound" in findings


def test_what_a_data_loader_prepares_is_the_loaders(tmp_path):
    def loading(at, end):
        inside = event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, end)
        return [inside, *called(TRAIN, "PIL/Image.py(2100): resize")(at + 1, end - 1)]

    findings = listed(tmp_path / "a.json", loading)
    assert "dataloader_bound" in findings
    assert "preprocessing" not in findings
