"""The scanner reads no byte that it should not, and nothing otherwise than the general decoder: fuzzed under
AddressSanitizer and UndefinedBehaviorSanitizer for TRACEKIT_FUZZ_SECONDS (half an hour).
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
SOURCE = ROOT / "tracekit" / "trace" / "reading" / "native" / "scan.c"


@pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.skipif(not TRACES.is_dir(), reason=f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
def test_mutated_blocks_under_sanitizers(tmp_path: Path) -> None:
    module = tmp_path / "_scan.so"
    include = sysconfig.get_path("include")
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, f"-I{include}", str(SOURCE), "-o", str(module)], check=True)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has until it ends
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests"))),
    }
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
