"""The output of nvidia-smi, imitated by a script that knows the fields of one driver or another."""

import os
import stat
import sys
from types import SimpleNamespace

import pytest

from tests.capture.pretended_gpu import gpu
from tracekit.capture import environment
from tracekit.capture.child import measure, timing

VALUES = {
    "name": "NVIDIA H200",
    "uuid": "GPU-0000",
    "driver_version": "570.86",
    "clocks.sm": "1980 MHz",
    "clocks.max.sm": "1980 MHz",
    "clocks.mem": "3201 MHz",
    "power.draw": "[N/A]",
    "power.limit": "700.00 W",
    "clocks_event_reasons.active": "0x0000000000000024",
    "clocks_throttle_reasons.active": "0x0000000000000024",
}
H200 = SimpleNamespace(name="H200", uuid="0000", total_memory=1, major=9, minor=0, multi_processor_count=132)
SMI = """#!{python}
import sys, time
known = {known!r}
if any("compute-apps" in each for each in sys.argv):
    sys.exit(print({pids!r}) if {pids!r} else "Query is not supported.")
fields = next(each for each in sys.argv if each.startswith("--query-gpu=")).partition("=")[2].split(",")
for field in fields:
    if field not in known:
        sys.exit(f'Field "{{field}}" is not a valid field to query.')
time.sleep({seconds})
print(", ".join(known[field] for field in fields))
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Put an nvidia-smi on the path that knows all fields except these."""

    def install(*unknown, seconds=0.0, pids=""):
        path = tmp_path / "nvidia-smi"
        known = {field: value for field, value in VALUES.items() if field not in unknown}
        path.write_text(SMI.format(python=sys.executable, known=known, seconds=seconds, pids=pids))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return install


@pytest.mark.parametrize("unknown", ["clocks_throttle_reasons.active", "clocks_event_reasons.active"])
def test_each_drivers_fields_are_found_and_reasons_read(driver, unknown):
    driver(unknown)
    (row,) = environment.under_load()
    assert row["clocks.sm"] == "1980 MHz"
    assert "power.draw" not in row  # this driver does not report it
    assert environment.throttled_by(row) == ["power cap", "heat"]


def test_without_it_there_is_nothing_to_say(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.identity() == []
    assert environment.throttled_by({"clocks_event_reasons.active": "nonsense"}) == []


def test_the_gpu_works_on_while_it_is_asked(driver):
    driver(seconds=0.3)
    steps = []
    with gpu() as calls:
        state = timing.run_steps(measure.sample("cuda"), lambda: steps.append(1))
    assert state["clocks.sm"] == "1980 MHz"
    assert state["throttled_by"] == ["power cap", "heat"]
    assert len(steps) > 1
    assert calls[-1] == "synchronize"


@pytest.mark.parametrize(
    ("pids", "processes"), [("101\n205\n9", 3), ("101", 1), ("", None), ("No running processes", None)]
)
def test_who_computes_on_the_gpu_is_counted(driver, pids, processes):
    driver(pids=pids)
    assert environment.processes_on("GPU-0000") == processes
    each = SimpleNamespace(uuid="0000")
    with gpu(get_device_properties=each):
        state = timing.run_steps(measure.sample("cuda"), lambda: None)
    assert state.get("processes") == processes


def test_a_cpu_is_not_asked(driver):
    driver()
    assert timing.run_steps(measure.sample("cpu"), pytest.fail) == {}


def test_a_run_says_which_gpu_and_driver_it_was(driver):
    driver()
    with gpu(get_device_properties=H200):
        (state,) = environment.gather()["gpus"]
    assert (state["uuid"], state["driver_version"], state["power.limit"]) == ("GPU-0000", "570.86", "700.00 W")
    assert state["capability"] == "9.0"


def test_the_version_of_the_profilers_library_is_part_of_the_run(monkeypatch):
    there = [
        SimpleNamespace(metadata={"Name": name, "Version": "12.8.90"}) for name in ("numpy", "nvidia-cuda-cupti-cu12")
    ]
    monkeypatch.setattr(environment, "versions", dict)  # which reads metadata, too
    for distributions, version in ((there, "12.8.90"), (there[:1], None)):
        monkeypatch.setattr(environment.importlib.metadata, "distributions", lambda found=distributions: found)
        assert environment.gather()["cupti"] == version


def test_a_cudnn_that_does_not_fit_ends_nothing(monkeypatch):
    def refuse():
        raise RuntimeError("cuDNN version incompatibility")

    monkeypatch.setattr("torch.backends.cudnn.version", refuse)
    with gpu(get_device_properties=H200):
        assert environment.gather()["cudnn"] is None
