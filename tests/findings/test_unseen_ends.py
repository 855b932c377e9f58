"""Before the first recorded work of the GPU and after the last, nothing says that it idles: nothing is to blame."""

import pytest
from small import event, kernel, launch, op, step, training, write

from tracekit.analyses import summary
from tracekit.cli import main
from tracekit.findings import diagnose
from tracekit.profile import open_subject


def opened(path, *events):
    return open_subject([write(path, *events)]).profiles[0]


def recording(start=5000.0, kernels=20, name="kernel"):
    """Python for a while; then kernels that keep the GPU busy, whose names never repeat; then Python again."""
    begin = [event("python_function", "train.py(1): <module>", 0, 2 * start + 1000 * kernels), op("aten::zeros", 0, 5)]
    made = []
    for k in range(kernels):
        at = start + 1000 * k
        made += [op(f"aten::op{k}", at, at + 20), launch(at + 5, at + 10, k + 1)]
        made.append(kernel(f"{name}{k}", at + 15, at + 1015, k + 1))
    return [*begin, *made]


def test_what_a_recording_without_steps_begins_and_ends_with(tmp_path, capsys):
    profile = opened(tmp_path / "t.json", *recording())
    assert profile.unseen.total() == pytest.approx(10_000_000, rel=0.01)
    diagnosis = diagnose(profile)
    assert diagnosis.verdict.id == "gpu_bound_other"
    assert diagnosis.verdict.share == 1
    assert "100.0 % of 20.0 ms in all, without 10.0 ms in which the GPU's side is unknown" in diagnosis.verdict.sentence
    assert not diagnosis.findings
    assert summary(profile, "gaps").sentence == "The GPU never idles in the recording."
    assert main(["report", str(tmp_path / "t.json"), "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "For 10.0 ms of the 30.0 ms recorded, it is unknown what the GPU did" in said
    # The table has no row for what is unknown: it says of which rows that is a part.
    assert (
        "For 10.0 ms in all, it is unknown what the GPU did: the table has what the host did then, 9.98 ms Python"
        in said
    )


def test_a_first_call_before_it_is_told_nevertheless(tmp_path):
    profile = opened(tmp_path / "t.json", launch(10, 4500, 0, "cudaStreamCreateWithFlags"), *recording())
    (finding,) = (each for each in diagnose(profile).findings if each.id == "cold_start")
    assert finding.why.startswith("First calls take 4.49 ms")  # not: keep the GPU idle


def test_in_an_annotated_step_the_host_is_to_blame(tmp_path):
    profile = opened(tmp_path / "t.json", step(0, 0, 30_000), *recording())
    assert not profile.unseen.total()
    assert "python_bound" in {each.id for each in diagnose(profile).findings}


def test_unless_the_recording_of_the_gpu_began_later(tmp_path):
    lost = [launch(100 + 10 * k, 105 + 10 * k, 500 + k) for k in range(5)]
    profile = opened(tmp_path / "t.json", step(0, 0, 30_000), *lost, *recording())
    assert (profile.unseen.starts.tolist(), profile.unseen.ends.tolist()) == ([0], [5_015_000])
    late = [step(0, 0, 40_000), launch(100, 105, 1000), kernel("first", 4000, 4500, 1000)]
    profile = opened(tmp_path / "u.json", *late, *recording())
    assert profile.unseen.ends.tolist() == [4_000_000]
    assert not [each for each in diagnose(profile).all_findings if each.id == "queued_not_started"]


def test_a_gpu_that_always_begins_so_late_was_not_busy_before(tmp_path):
    """Where each idle GPU takes 300 µs to begin, the first kernel says nothing of earlier work."""
    steps = [step(k, 10_000 * k, 10_000 * (k + 1)) for k in range(4)]
    calls = [launch(10_000 * k + 4000, 10_000 * k + 4010, k + 1) for k in range(4)]
    kernels = [kernel("work", 10_000 * k + 4310, 10_000 * k + 9000, k + 1) for k in range(4)]
    assert not opened(tmp_path / "t.json", *steps, *calls, *kernels).unseen.total()
    kernels[0] = kernel("work", 6000, 9000, 1)
    assert opened(tmp_path / "u.json", *steps, *calls, *kernels).unseen.ends.tolist() == [6_000_000]


def test_unless_it_ended_earlier(tmp_path):
    lost = [launch(26_000 + 10 * k, 26_005 + 10 * k, 500 + k) for k in range(5)]
    profile = opened(tmp_path / "t.json", step(0, 0, 30_000), *recording(), *lost)
    assert profile.unseen.starts.tolist() == [25_015_000]


def test_a_healthy_recording_has_no_such_time(tmp_path):
    assert not open_subject([training(tmp_path / "t.json")]).profiles[0].unseen.total()


def test_a_wait_for_a_batch_before_it_is_not_to_blame(tmp_path):
    """In an annotated step, it is: the GPU has nothing to do."""
    asked = event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20, 4900)
    for marks, blamed in ((), False), ((step(0, 0, 30_000),), True):
        profile = opened(tmp_path / f"{blamed}.json", asked, *marks, *recording())
        assert ("dataloader_bound" in {each.id for each in diagnose(profile).findings}) is blamed
