"""Tests captures with several versions of PyTorch, each in an environment of its own: `python -m tests.torch_versions
2.6 2.15 [-- ARGUMENTS OF PYTEST]`, or `make verify-torch VERSIONS="2.6 2.15"`.

PyTorch comes from PyPI without NVIDIA's packages: `stubs.py` makes what it links to, and everything runs on the CPU.
Environments stay in a cache folder, 1 to 2 GB each. By default the tests are all of `tests/capture` and those scripts
of `tests/scripts` whose graphs, recompilations and graph breaks are compared with PyTorch's own log in every test run.
"""

import argparse
import os
import re
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

from tests.torch_versions import stubs

ROOT = Path(__file__).parents[2]
VERSIONS = ("2.6", "2.8", "2.10", "2.13", "2.15")
TESTS = ("tests/capture", "tests/verify/test_scripts.py")
# Tests that an older version cannot pass, with the first one that can, and why.
_LATER = {
    "tests/capture/test_foreign_operators.py::test_the_operator_is_named_in_the_summary_and_in_the_report": (
        "2.8",
        "Dynamo says it in other words",
    ),
    "tests/capture/test_ledger.py::test_a_change_of_shape_is_one_recompilation_with_its_guard": (
        "2.8",
        "guards are worded differently",
    ),
    "tests/capture/test_ledger.py::test_a_graph_break_is_said_with_its_line_each_time_it_is_compiled": (
        "2.8",
        "a function that breaks at every call is not compiled again",
    ),
    "tests/capture/test_ledger.py::test_the_recompile_limit_is_recorded_and_turns_into_a_note": (
        "2.8",
        "a function at its limit is logged otherwise",
    ),
    "tests/capture/test_gcn_cora.py::test_inductor_loses_as_eager_does_dropout_included": (
        "2.8",
        "Inductor draws other random numbers for dropout",
    ),
    **dict.fromkeys(
        (
            "tests/capture/test_ledger.py::test_every_compilation_of_the_trace_is_in_the_ledger_with_its_id_and_thread",
            "tests/capture/test_ledger.py::test_ledger_and_trace_share_a_clock",
            "tests/capture/test_ledger.py::test_compilation_is_nearly_all_of_the_first_step",
            "tests/capture/test_gcn_cora.py::test_compilation_is_nearly_all_of_the_first_step_and_in_the_ledger",
        ),
        ("2.11", "a compilation has no id in the trace"),
    ),
    **dict.fromkeys(
        (
            "tests/capture/test_as_plain.py::test_python_looks_where_it_would_without_us",
            "tests/verify/test_scripts.py::test_the_fastest_of_them[mnist]",
        ),
        ("2.11", "PyTorch adds a folder with a random name to Python's path"),
    ),
    **dict.fromkeys(
        (
            "tests/capture/test_emulated.py::test_the_captures_own_wait_stands_in_the_last_step_under_a_name_of_its_own",
            "tests/capture/test_emulated.py::test_one_window_can_be_taken_alone_at_its_own_steps",
            "tests/capture/test_scripts_on_gpus.py::test_no_pace_is_told_of_steps_that_nobody_waited_for",
        ),
        ("2.11", "a pretended GPU on CUDA libraries that are not there ends the process"),
    ),
}
_NOT_ON_A_CPU = re.compile(r"nvidia|triton|cuda|tracekit|torch\b")
_SUMMARY = re.compile(r"\d+ (?:passed|failed|skipped|errors?)\b.* in [\d.]+s")


def main() -> int:
    """Test each version. Returns 1 if a test failed in any."""
    parser = argparse.ArgumentParser(prog="python -m tests.torch_versions", description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help=f"default: {' '.join(VERSIONS)}")
    own, tests = sys.argv[1:], []
    if "--" in own:
        own, tests = own[: own.index("--")], own[own.index("--") + 1 :]
    rows, failed = [], False
    for version in parser.parse_args(own).versions:
        python, libraries = _environment(version)
        began = time.monotonic()
        failed |= (code := _tested(python, libraries, tests or [*TESTS, "-n2"], rows, version)) != 0
        rows[-1] += f" · {time.monotonic() - began:.0f} s · {'failed' if code else 'passed'}"
    print("\n".join(rows))
    return int(failed)


def _environment(version: str) -> tuple[Path, Path]:
    """The interpreter that has this version of PyTorch and what our tests need, and the folder of the stubs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracekit-torch" / version
    python, done = cache / "venv/bin/python", cache / "done"
    project = (ROOT / "pyproject.toml").read_bytes()
    if not done.exists() or done.read_bytes() != project:
        venv.create(cache / "venv", with_pip=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        # A local index may have a build for the CPU under the same version, and then no stubs are needed.
        subprocess.run([*pip, "--no-deps", f"torch=={version}.*", "torch-geometric>=2.6"], check=True)
        subprocess.run([*pip, *_requirements_of_torch(python)], check=True)
        subprocess.run([*pip, *_requirements_of_tests(tomllib.loads(project.decode()))], check=True)
        subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
        (site,) = (cache / "venv").glob("lib/python*/site-packages")
        stubs.build(site / "torch", cache / "lib")
        done.write_bytes(project)
    return python, cache / "lib"


def _requirements_of_torch(python: Path) -> list[str]:
    code = (
        "from importlib.metadata import requires; print(*(requires('torch') + requires('torch-geometric')), sep='\\n')"
    )
    listed = subprocess.run([str(python), "-c", code], check=True, text=True, stdout=subprocess.PIPE).stdout
    return [line for line in listed.splitlines() if "extra ==" not in line and not _NOT_ON_A_CPU.match(line)]


def _requirements_of_tests(pyproject: dict[str, dict[str, object]]) -> list[str]:
    project = pyproject["project"]
    extras = project["optional-dependencies"]
    assert isinstance(project["dependencies"], list)
    assert isinstance(extras, dict)
    names = ("capture", "excel", "dask", "plot", "sql", "dev")
    wanted = project["dependencies"] + [requirement for name in names for requirement in extras[name]]
    return [requirement for requirement in wanted if not _NOT_ON_A_CPU.match(requirement)]


def _tested(python: Path, libraries: Path, tests: list[str], rows: list[str], version: str) -> int:
    """Run the tests and add a row of what they came to. Returns the exit status of pytest."""
    environment = {**os.environ, "LD_LIBRARY_PATH": _before(libraries, "LD_LIBRARY_PATH")}
    number = tuple(map(int, version.split(".")))
    too_early = [test for test, (first, _) in _LATER.items() if number < tuple(map(int, first.split(".")))]
    skipped = [option for test in too_early for option in ("--deselect", test)]
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *skipped, *tests]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last = found[0] if (found := _SUMMARY.search(line)) else last
    left_out = f", {len(too_early)} left out that this version cannot pass" if too_early else ""
    rows.append(f"PyTorch {version}: {last}{left_out}")
    return running.returncode


def _before(path: Path, name: str) -> str:
    return os.pathsep.join(filter(None, (str(path), os.environ.get(name))))


if __name__ == "__main__":
    sys.exit(main())
