"""Warnings of the profiler's library reach the run and its report; its other messages do not."""

from tracekit.capture import doctor, lost_kernels
from tracekit.capture.harness import Options, capture
from tracekit.cli import main
from tracekit.run import Run

# A message that it would print about a GPU, printed where it would be; on a CPU it prints others.
LOUD = """
import os, sys, torch
def setup(ctx):
    weight = torch.zeros(3, requires_grad=True)
    if os.environ.get("KINETO_LOG_LEVEL") == "2":
        print("WARNING:2026-11-22 00:27:31 7:7 CuptiActivityApi.cpp:9] Lost all of it")
    PRINT
    def step():
        weight.square().sum().backward()
    return step
"""
SAID = "the profiler warned: Lost all of it"


def captured(tmp_path, write_recipe, printed="pass") -> Run:
    text, out = LOUD.replace("PRINT", printed), tmp_path / "run.json"
    return capture(
        Options(write_recipe(text), ["eager"], device="cpu", steps=2, warmup=2, passes=1, out=out, tell=lambda _: None)
    )


def test_a_warning_of_the_profiled_pass_is_kept_and_reported(tmp_path, write_recipe, capsys):
    (variant,) = captured(tmp_path, write_recipe).variants
    assert variant.effective.notes == [SAID]
    assert [each.name for each in tmp_path.glob("run-*/eager/*.log")] == ["profile.log"]
    assert main(["report", str(tmp_path / "run.json"), "--no-cache", "--format", "json"]) == 0
    assert SAID in capsys.readouterr().out


def test_of_what_it_says_at_every_start_nothing_is_left(tmp_path, write_recipe, monkeypatch):
    captured(tmp_path, write_recipe, "print('a word of the recipe')")
    log = next(tmp_path.glob("run-*/eager/profile.log")).read_text()
    assert "a word of the recipe\n" in log
    assert "STAGE:" not in log


def test_a_level_that_was_chosen_stays(monkeypatch):
    monkeypatch.setenv("KINETO_LOG_LEVEL", "5")
    assert lost_kernels.loud() == {"KINETO_LOG_LEVEL": "5"}
    monkeypatch.delenv("KINETO_LOG_LEVEL")
    assert lost_kernels.loud() == {"KINETO_LOG_LEVEL": "2"}


LOG = """
WARNING:2026-07-31 13:43:58 7535:7535 init.cpp:155] function cbapi->getCuptiStatus() failed with error {error}
WARNING:2026-07-31 13:43:58 75:75 init.cpp:156] CUPTI initialization failed - CUDA profiler activities will be missing
INFO:2026-07-31 13:43:58 75:75 init.cpp:158] If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to https://developer
WARNING:2024-12-05 09:59:04 470227:470227 CuptiActivityApi.cpp:174] Requested GPU activity buffer
WARNING:2026-11-22 03:55:38 7:7 GenericActivityProfiler.cpp:261] CPU activity with pid 0 detected. Overriding pid
INFO:2024-12-05 09:59:04 47:47 CuptiActivityProfiler.cpp:340] Record counts: Out-of-range = 7, Other = 0
ERROR:2026-11-24 01:37:47 15005:15005 DeviceProperties.cpp:56] gpuGetDeviceCount failed with code 35
"""


def test_each_warning_is_said_once_and_no_count_of_what_a_warm_up_dropped():
    log = LOG.format(error="CUPTI_ERROR_NOT_INITIALIZED (15)")
    assert lost_kernels.warnings(log + log) == [
        "function cbapi->getCuptiStatus() failed with error CUPTI_ERROR_NOT_INITIALIZED (15) (2 times)",
        "CUPTI initialization failed - CUDA profiler activities will be missing (2 times)",
    ]
    assert lost_kernels.warnings("[W 12:00] not Kineto's") == []


def test_a_driver_that_refuses_is_told_from_one_that_fails():
    refused = LOG.format(error="CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)")
    assert doctor.explained("no row", refused) == "no row (the driver denied access: ERR_NVGPUCTRPERM)"
    failed = LOG.format(error="CUPTI_ERROR_INVALID_DEVICE (2)")
    assert "CUPTI_ERROR_INVALID_DEVICE" in doctor.explained("no row", failed)
    assert doctor.explained("no row", "") == "no row"


def test_warnings_that_differ_only_in_numbers_are_one_with_a_count():
    early = (
        "WARNING:2026-11-22 13:43:58 75:75 a.cpp:9] GPU op timestamp ({a}) < runtime timestamp ({b}) "
        "by {c}us Name: {name} Device: 0 Stream: {c}\n"
    )
    log = "".join(early.format(a=100 + k, b=107 + k, c=7 + k, name=f"gemm_{'ab'[k % 2]}") for k in range(9))
    assert lost_kernels.warnings(log) == ["GPU op timestamp (…) < runtime timestamp (…) by …us (9 times)"]
    older = (
        "WARNING:2026-11-22 13:43:58 7:7 a.cpp:9] GPU op timestamp (100) < runtime timestamp (107) by 7us\n"
        "WARNING:2026-11-22 13:43:58 7:7 a.cpp:9] Name: gemm Device: 0 Stream: 7\n"
    )
    assert lost_kernels.warnings(older) == ["GPU op timestamp (100) < runtime timestamp (107) by 7us"]
    assert lost_kernels.warnings(LOG.format(error=1) + older)[-1] == lost_kernels.warnings(older)[0]
