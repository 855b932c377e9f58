"""What `make verify-cuda` runs on the fake GPU: the tests of the fake itself, then a capture in every mode."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODES = ("eager-norm", "compiled-norm", "reduce-overhead:norm_ahead=true")


def main() -> int:
    """Returns 1 if anything failed."""
    # The tests' conftest needs packages that are of no use here.
    alone = ["-c", "/dev/null", "--rootdir", str(ROOT), "--noconftest", "-p", "no:cacheprovider"]
    passed = [_python("-m", "pytest", "-q", *alone, "tests/fakecuda")]
    with tempfile.TemporaryDirectory() as folder:
        passed.append(_captured(Path(folder) / "run.json"))
    print("all passed" if all(passed) else "something failed")
    return int(not all(passed))


def _captured(run: Path) -> bool:
    """Whether a recipe is captured in every mode, and each trace says that its GPU is a fake."""
    recipe = ROOT / "recipes" / "gcn_cora.py"
    options = ["--variants", ",".join(MODES), "--device", "cuda", "--passes", "1", "--steps", "6"]
    if not _python("-m", "tracekit", "capture", str(recipe), *options, "-o", str(run)):
        return False
    captured = json.loads(run.read_text())
    outcomes = {variant["name"]: variant["outcome"] for variant in captured["variants"]}
    names = {gpu["name"] for gpu in captured["environment"]["gpus"]}
    print(outcomes, names)
    if outcomes != dict.fromkeys(MODES, "ok") or names != {"Fake H100"}:
        return False
    return _python("-m", "tracekit", "report", str(run))


def _python(*arguments: str) -> bool:
    print("==", *arguments, flush=True)
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
