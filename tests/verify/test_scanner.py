"""What is written in C under AddressSanitizer and UndefinedBehaviorSanitizer: the scanner reads no byte that it should
not, and nothing otherwise than the general decoder, fuzzed for TRACEKIT_FUZZ_SECONDS (half an hour); the other modules
keep their tests.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from real import ROOT, TRACES

SECONDS = os.environ.get("TRACEKIT_FUZZ_SECONDS", "1800")
BLOCKS = 10_000  # at least
SCANNER = ROOT / "tracekit" / "trace" / "reading" / "native" / "scan.c"
TESTED = {  # what of tracekit/native, by which tests
    "loops": ["tests/native", "tests/base/test_intervals.py", "tests/engine/test_replay.py"],
    "levels": ["tests/watched"],
    "steps": [
        "tests/watching/test_tally_twin.py",
        "tests/watching/test_tally_clock.py",
        "tests/watching/test_watch.py",
    ],
}
PRELOADED = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("tracekit.native.{name}", {module!r})
sys.modules[spec.name] = module = module_from_spec(spec)
spec.loader.exec_module(module)
"""
pytestmark = [
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc"),
]


def built(source: Path, module: Path) -> dict[str, str]:
    """Build a module with sanitizers. Returns the environment in which it can be imported."""
    include = sysconfig.get_path("include")
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, f"-I{include}", str(source), "-o", str(module)], check=True)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has until it ends
        "PYTHONPATH": os.pathsep.join(map(str, (module.parent, ROOT, ROOT / "tests"))),
    }


@pytest.mark.parametrize("source", TESTED)
def test_modules_under_sanitizers(tmp_path: Path, source: str) -> None:
    name, tests = f"_{source}", TESTED[source]
    environment = built(ROOT / "tracekit" / "native" / f"{source}.c", module := tmp_path / f"{name}.so")
    (tmp_path / "sitecustomize.py").write_text(PRELOADED.format(name=name, module=str(module)))
    code = f"from tracekit.native import {name} as module; print(module.__file__)"
    which = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert which.stdout.strip() == str(module)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
def test_mutated_blocks_under_sanitizers(tmp_path: Path) -> None:
    environment = built(SCANNER, module := tmp_path / "_scan.so")
    done = subprocess.run(
        [sys.executable, "-m", "tests.verify.scanner", str(module), SECONDS],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout) >= BLOCKS
