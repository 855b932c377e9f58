"""What can this machine capture, and how can it be made to capture the rest?"""

import importlib.metadata
import importlib.util
import json
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tracekit.capture import environment, gpu_state, probes
from tracekit.installed import install_command
from tracekit.units import size

Level = Literal["needed", "for a GPU", "for inductor", "for inductor on a GPU", "optional"]
_LEAST_FREE_BYTES = 2 << 30  # a capture of a large model leaves some hundred MiB of traces


@dataclass(frozen=True)
class Found:
    """What a check saw; `ok` is None if there is nothing to check."""

    ok: bool | None
    text: str


@dataclass(frozen=True)
class Check:
    """One thing a capture may need: how to look for it, and what to do if it is missing."""

    name: str
    look: Callable[[], Found]
    advice: str
    level: Level = "optional"
    needs: str | None = None  # the check without which this one is not worth doing


@dataclass(frozen=True)
class Result:
    """One check, done."""

    name: str
    level: Level
    ok: bool | None
    text: str
    advice: str | None


def _python() -> Found:
    return Found(sys.version_info >= (3, 11), platform.python_version())


def _torch() -> Found:
    version = _version("torch")
    if version is None:
        return Found(False, "not installed")
    return Found(tuple(map(int, version.split(".")[:2])) >= (2, 6), version)


def _profiler() -> Found:
    return _probed(probes.profile_cpu)


def _geometric() -> Found:
    return _package("torch-geometric", "torch_geometric")


def _sampler() -> Found:
    samplers = [name for name in ("pyg-lib", "torch-sparse") if _version(name)]
    return Found(
        bool(samplers), ", ".join(f"{name} {_version(name)}" for name in samplers) or "none: recipes use their own"
    )


def _scipy() -> Found:
    return _package("scipy", "scipy")


def _compiler() -> Found:
    missing = environment.missing_compiler("cpu")
    cxx = environment.cpp_compiler()
    return Found(missing is None, shutil.which(cxx) or f"{cxx} not found")


def _headers() -> Found:
    header = Path(sysconfig.get_path("include"), "Python.h")
    return Found(header.is_file(), str(header) if header.is_file() else f"no {header}")


def _inductor() -> Found:
    return _probed(probes.compile_cpu)


def _gpu() -> Found:
    return _probed(probes.name_gpu)


def _driver() -> Found:
    versions = [row["driver_version"] for row in gpu_state.identity() if "driver_version" in row]
    return Found(bool(versions), versions[0] if versions else "nvidia-smi is missing, or gives no answer")


def _cupti() -> Found:
    return _probed(probes.profile_gpu)


def _inductor_on_gpu() -> Found:
    return _probed(probes.compile_gpu)


def _triton() -> Found:
    version = _version("triton") or _version("pytorch-triton") or _version("pytorch-triton-rocm")
    return Found(version is not None, version or "not installed")


def _disk() -> Found:
    free = shutil.disk_usage(".").free
    return Found(free >= _LEAST_FREE_BYTES, f"{size(free)} free here")


CHECKS = (
    Check("Python", _python, "Install Python 3.11 or later.", "needed"),
    Check("PyTorch", _torch, f"Install 2.6 or later: {install_command('capture')}", "needed"),
    Check("CPU profiler", _profiler, "Install a PyTorch built with Kineto, from pytorch.org.", "needed", "PyTorch"),
    Check("disk space", _disk, "Capture elsewhere: -o /a/larger/disk/run.json"),
    Check("torch-geometric", _geometric, "The recipes need it: pip install torch-geometric"),
    Check("neighbour sampler", _sampler, "For faster sampling: pip install pyg-lib -f https://data.pyg.org/whl/"),
    Check("scipy", _scipy, "Some data sets and transforms need it: pip install scipy"),
    Check("C++ compiler", _compiler, "Install one (g++), or capture with --backend aot_eager.", "for inductor"),
    Check(
        "Python headers", _headers, "Install them (python3-dev), or capture with --backend aot_eager.", "for inductor"
    ),
    Check("torch.compile", _inductor, "Capture with --backend aot_eager.", "for inductor", "PyTorch"),
    Check(
        "GPU",
        _gpu,
        "PyTorch is a CPU build, a driver is missing, or CUDA_VISIBLE_DEVICES hides the GPU.",
        "for a GPU",
        "PyTorch",
    ),
    Check("GPU driver", _driver, "Without nvidia-smi a run does not say which driver it ran on.", "optional", "GPU"),
    Check(
        "GPU kernels in traces",
        _cupti,
        "Allow profiling (driver option NVreg_RestrictProfilingToAdminUsers=0, or the container's --cap-add=SYS_ADMIN) "
        "and stop other profilers (nsys, dcgm).",
        "for a GPU",
        "GPU",
    ),
    Check("Triton", _triton, "Compiling for a GPU needs it: pip install triton", "for inductor on a GPU", "GPU"),
    Check(
        "torch.compile on the GPU",
        _inductor_on_gpu,
        "Capture with --backend aot_eager.",
        "for inductor on a GPU",
        "Triton",
    ),
)


_ABILITIES: tuple[tuple[Level, str], ...] = (
    ("for inductor", "inductor on the CPU"),
    ("for a GPU", "GPU training"),
    ("for inductor on a GPU", "inductor on the GPU"),
)


def examine(checks: Sequence[Check] | None = None) -> list[Result]:
    """Do every check whose needs are met."""
    results: dict[str, Result] = {}
    for check in CHECKS if checks is None else checks:
        met = check.needs is None or results[check.needs].ok
        finding = _look(check) if met else Found(None, f"not checked, because it needs {check.needs}")
        advice = check.advice if finding.ok is False else None
        results[check.name] = Result(check.name, check.level, finding.ok, finding.text, advice)
    return [*results.values()]


def can_capture(results: list[Result]) -> bool:
    """Whether training can be captured at least on the CPU."""
    return all(result.ok for result in results if result.level == "needed")


def as_json(results: list[Result]) -> str:
    """The results as JSON, for programs."""
    document = {"can_capture": can_capture(results), "checks": [asdict(result) for result in results]}
    return json.dumps(document, indent=1)


def as_text(results: list[Result]) -> str:
    """The results as text: a line for each check, and another for what to do about it."""
    width = max(len(result.name) for result in results)
    lines = []
    for result in results:
        sign = {True: "ok", False: "no", None: "–"}[result.ok]
        lines.append(f"{sign:<3} {result.name:<{width}}  {result.text}")
        if result.advice:
            lines.append(f"    {'':<{width}}  → {result.advice}")
    return "\n".join([*lines, "", verdict(results)])


def verdict(results: list[Result]) -> str:
    """One sentence that says what this machine can capture."""
    missing = [result.name for result in results if result.level == "needed" and not result.ok]
    if missing:
        return f"Nothing can be captured here: {', '.join(missing)} missing."
    able = ["CPU training"]
    for level, ability in _ABILITIES:
        looked_for = [result.ok for result in results if result.level == level]
        if looked_for and all(looked_for):
            able.append(ability)
    return f"This machine can capture {' and '.join(filter(None, (', '.join(able[:-1]), able[-1])))}."


def _look(check: Check) -> Found:
    try:
        return check.look()
    except Exception as error:  # a check that cannot be done has failed; the others go on
        return Found(False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


def _probed(probe: Callable[[], str]) -> Found:
    """Run the probe in a separate process, so that it cannot change torch or crash here."""
    ok, text = probes.run(probe.__name__)
    return Found(ok, text)


def _package(name: str, module: str) -> Found:
    version = _version(name)
    is_installed = importlib.util.find_spec(module) is not None
    return Found(is_installed, version or ("there" if is_installed else "not installed"))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
