"""Runs Python on the fake GPU: `python -m tests.fakecuda train.py`, or `-m tracekit capture train.py`.

The first run makes what it needs in a cache folder; README.md says what, and how large it is.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from tests.fakecuda.build import SRC, build

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TORCH, TRITON, PYG = "torch==2.13.0", "triton==3.7.1", "torch-geometric==2.8.1"
HEADERS = ("nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85", "nvidia-cuda-crt==13.0.88")
# What PyTorch, PyG and tracekit import; PyTorch's own list would add 3 GB of CUDA libraries.
OTHERS = "numpy sympy networkx jinja2 filelock typing-extensions fsspec setuptools scipy pandas pyarrow msgspec isal"
OTHERS += " platformdirs rich textual pytest hypothesis psutil tqdm xxhash requests aiohttp pyparsing"


def main() -> None:
    """Replace this process by the Python of the cache folder, with the arguments of the command line."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracekit-fakecuda"
    cache = Path(os.environ.get("FAKECUDA_CACHE") or cache)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        python, include = _packages(cache)
        libraries = _libraries(cache, python, include) / "lib"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": _before(libraries, "LD_LIBRARY_PATH"),
        "PATH": _before(HERE / "bin", "PATH"),
        "PYTHONPATH": _before(ROOT, "PYTHONPATH"),
        "FAKECUDA": str(libraries),
        "TRITON_LIBCUDA_PATH": str(libraries),
    }
    os.execve(python, [str(python), *sys.argv[1:]], environment)


def _packages(cache: Path) -> tuple[Path, Path]:
    """The Python that has PyTorch's CUDA wheel, and the toolkit's headers."""
    python, wheels, headers = cache / "venv/bin/python", cache / "wheels", cache / "headers"
    done = cache / "packages"
    wanted = "\n".join((TORCH, TRITON, PYG, *HEADERS, OTHERS))
    if not done.exists() or done.read_text() != wanted:
        venv.create(cache / "venv", with_pip=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        # A local index often has the wheel for the CPU under the same version: only PyPI's is for CUDA.
        index = {name: text for name, text in os.environ.items() if not name.startswith("PIP_FIND_LINKS")}
        index["PIP_CONFIG_FILE"] = os.devnull
        fetch = [*pip, "download", "--no-deps", "--dest", str(wheels), TORCH, TRITON, *HEADERS]
        subprocess.run(fetch, check=True, env=index)
        subprocess.run([*pip, "install", "-c", str(ROOT / "constraints.txt"), *OTHERS.split()], check=True)
        fetched = [str(wheel) for name in ("torch", "triton") for wheel in wheels.glob(f"{name}-*.whl")]
        subprocess.run([*pip, "install", "--no-deps", *fetched, PYG], check=True)
        for wheel in wheels.glob("nvidia_*.whl"):
            with zipfile.ZipFile(wheel) as files:
                files.extractall(headers, [name for name in files.namelist() if "/include/" in name])
        done.write_text(wanted)
    return python, headers / "nvidia/cu13/include"


def _libraries(cache: Path, python: Path, include: Path) -> Path:
    """The libraries, built anew if their sources have changed."""
    sources = b"".join(path.read_bytes() for path in [*sorted(SRC.iterdir()), HERE / "build.py"])
    built = cache / "build" / hashlib.sha256(sources).hexdigest()[:16]
    if not built.exists():
        (site,) = python.parents[1].glob("lib/python*/site-packages")
        making = built.with_suffix(".unfinished")
        build(site / "torch", include, making)
        making.rename(built)
    return built


def _before(folder: Path, variable: str) -> str:
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get(variable)])])


if __name__ == "__main__":
    main()
