"""The doctor: what is present, what is missing, and what to do about it."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tracekit import run as runs
from tracekit.capture import doctor, environment
from tracekit.capture.doctor import CHECKS, Check, Found, as_json, as_text, can_capture, examine
from tracekit.installed import install_command

ROOT = Path(runs.__file__).parents[2]


def looking(ok, text="so"):
    return lambda: Found(ok, text)


def test_a_missing_thing_comes_with_its_advice_and_what_needs_it_is_not_looked_for():
    results = examine(
        (
            Check("torch", looking(False, "not installed"), "Install it.", "needed"),
            Check("profiler", pytest.fail, "never", "needed", "torch"),
            Check("scipy", looking(True, "1.11"), "never"),
        )
    )
    assert [(each.name, each.ok, each.text, each.advice) for each in results] == [
        ("torch", False, "not installed", "Install it."),
        ("profiler", None, "not checked, because it needs torch", None),
        ("scipy", True, "1.11", None),
    ]
    assert not can_capture(results)
    assert as_text(results) == (
        "no  torch     not installed\n"
        "              → Install it.\n"
        "–   profiler  not checked, because it needs torch\n"
        "ok  scipy     1.11\n"
        "\n"
        "Nothing can be captured here: torch, profiler missing."
    )
    assert json.loads(as_json(results))["can_capture"] is False


def test_a_check_that_raises_has_failed():
    def broken():
        raise OSError("no disk")

    (result,) = examine((Check("disk", broken, "Buy one."),))
    assert (result.ok, result.text, result.advice) == (False, "OSError: no disk", "Buy one.")


def test_the_verdict_names_what_can_be_captured():
    sound = [Check("torch", looking(True), "", "needed"), Check("g++", looking(True), "", "for inductor")]
    assert as_text(examine((*sound, Check("GPU", looking(False), "", "for a GPU")))).endswith(
        "This machine can capture CPU training and inductor on the CPU."
    )


def test_what_a_check_needs_is_declared_before_it():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    for at, check in enumerate(CHECKS):
        assert check.needs is None or check.needs in names[:at]
        assert check.advice.endswith((".", "geometric", "triton", "scipy", "]'", "json", "/whl/"))


def test_this_machine_can_capture(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", [each for each in CHECKS if each.name != "torch.compile"])
    from tracekit.cli import main

    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    by_name = {each["name"]: each for each in answer["checks"]}
    assert answer["can_capture"]
    assert by_name["CPU profiler"]["text"].startswith("works (PyTorch 2.")


def test_without_torch_it_says_so(tmp_path):
    """In a process that cannot find torch and has never imported it."""
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "class No:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] == 'torch': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "import importlib.metadata as m; version = m.version\n"
        "def none(name):\n"
        "    if name == 'torch': raise m.PackageNotFoundError(name)\n"
        "    return version(name)\n"
        "m.version = none\n"
        "from tracekit.cli import main; sys.exit(main(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert install_command("capture") in done.stdout
    assert "Nothing can be captured here: PyTorch, CPU profiler missing." in done.stdout


def test_a_probe_that_dies_or_fails_says_why(monkeypatch):
    assert doctor.run("no such probe") == (False, "KeyError: 'no such probe'")


def test_every_check_that_asks_a_probe_asks_one_that_there_is(monkeypatch):
    monkeypatch.setattr(doctor, "run", lambda name: (name in {probe.__name__ for probe in doctor.PROBES}, name))
    probed = [each for each in CHECKS if each.look.__code__.co_names[:1] == ("_probed",)]
    assert len(probed) == len(doctor.PROBES)
    assert all(each.look().ok for each in probed)


def test_checks_wait_for_what_they_need_only():
    """Two that need nothing of each other are done side by side."""
    both = threading.Barrier(2, timeout=20)

    def meeting():
        both.wait()
        return Found(True, "met")

    checks = (Check("one", meeting, ""), Check("other", meeting, ""), Check("last", looking(True), "", needs="one"))
    assert [each.ok for each in examine(checks)] == [True, True, True]


@pytest.mark.parametrize(
    ("sessions", "said"),
    [
        ([(9, 3), (9, 3), (9, 3)], "recorded, 3 sessions in a row"),
        ([(9, 3), (9, 0), (9, 2)], r"later sessions of a process lose some \(0 of 3\)"),
    ],
)
def test_kernels_of_later_sessions_are_counted(sessions, said):
    assert re.search(said, doctor._verdict(sessions))


@pytest.mark.parametrize(("calls", "said"), [(9, "though not its launch"), (0, "and so is its launch")])
def test_a_kernel_without_a_row_is_a_failure(calls, said):
    with pytest.raises(doctor.ProbeError, match=said):
        doctor._verdict([(calls, 0)])


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert environment.missing_compiler("cpu") == "a C++ compiler (no-such-compiler)"
    (check,) = (each for each in CHECKS if each.name == "C++ compiler")
    assert check.look() == Found(False, "no-such-compiler not found")
