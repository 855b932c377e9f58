"""What can this machine capture, and how can it be made to capture the rest?

It is found out by small experiments, each in a separate process: a machine may fail at what it seems to support.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from tracekit.base.units import size
from tracekit.capture import environment, lost_kernels
from tracekit.capture.device import CPU, GPU, activities, build, has_gpu, is_gpu, properties
from tracekit.installed import install_command, package_command, python_path

Level = Literal["needed", "for a GPU", "for inductor", "for inductor on a GPU", "optional"]
_LEAST_FREE_BYTES = 2 << 30  # a capture of a large model leaves some hundred MiB of traces
_ABILITIES: tuple[tuple[Level, str], ...] = (
    ("for inductor", "inductor on the CPU"),
    ("for a GPU", "GPU training"),
    ("for inductor on a GPU", "inductor on the GPU"),
)
_SESSIONS = 3
_MAX_DIVERGENCE = 1e-3
_SECONDS = 180  # a first compilation on a slow machine takes a minute


class Found(Struct, frozen=True):
    """What a check saw; `ok` is None if there is nothing to check."""

    ok: bool | None
    text: str


class Check(Struct, frozen=True):
    """One thing a capture may need: how to look for it, and what to do if it is missing."""

    name: str
    look: Callable[[], Found]
    advice: str
    level: Level = "optional"
    needs: str | None = None  # the check without which this one is not worth doing


class Result(Struct, frozen=True):
    """One check, done."""

    name: str
    level: Level
    ok: bool | None
    text: str
    advice: str | None


def _torch() -> Found:
    version = _version("torch")
    if version is None:
        return Found(False, "not installed")
    return Found(tuple(map(int, version.split(".")[:2])) >= (2, 6), version)


def _sampler() -> Found:
    samplers = [name for name in ("pyg-lib", "torch-sparse") if _version(name)]
    return Found(
        bool(samplers), ", ".join(f"{name} {_version(name)}" for name in samplers) or "none: recipes use their own"
    )


def _compiler() -> Found:
    missing = environment.missing_compiler("cpu")
    cxx = environment.cpp_compiler()
    return Found(missing is None, shutil.which(cxx) or f"{cxx} not found")


def _headers() -> Found:
    header = Path(sysconfig.get_path("include"), "Python.h")
    return Found(header.is_file(), str(header) if header.is_file() else f"no {header}")


def _driver() -> Found:
    versions = [row["driver_version"] for row in environment.identity() if "driver_version" in row]
    return Found(bool(versions), versions[0] if versions else "nvidia-smi is missing, or gives no answer")


def _triton() -> Found:
    version = _version("triton") or _version("pytorch-triton") or _version("pytorch-triton-rocm")
    return Found(version is not None, version or "not installed")


CHECKS = (
    Check(
        "Python",
        lambda: Found(sys.version_info >= (3, 11), platform.python_version()),
        "Install Python 3.11 or later.",
        "needed",
    ),
    Check("PyTorch", _torch, f"Install 2.6 or later: {install_command('capture')}", "needed"),
    Check(
        "CPU profiler",
        lambda: _probed(profile_cpu),
        "Install a PyTorch built with Kineto, from pytorch.org.",
        "needed",
        "PyTorch",
    ),
    Check(
        "disk space",
        lambda: Found((free := shutil.disk_usage(".").free) >= _LEAST_FREE_BYTES, f"{size(free)} free here"),
        "Capture elsewhere: -o /a/larger/disk/run.json",
    ),
    Check(
        "fast reading of traces",
        lambda: _probed(import_scanner),
        "Install a C compiler and Python's headers, and tracekit again, from its source (pip's option --no-binary "
        "tracekit-torch): reports of large traces take half as long.",
    ),
    Check(
        "torch-geometric",
        lambda: _package("torch-geometric", "torch_geometric"),
        f"The recipes need it: {install_command('capture')}",
    ),
    Check("neighbour sampler", _sampler, "For faster sampling: pip install pyg-lib -f https://data.pyg.org/whl/"),
    Check(
        "scipy",
        lambda: _package("scipy", "scipy"),
        f"Some data sets and transforms need it: {install_command('capture')}",
    ),
    Check("C++ compiler", _compiler, "Install one (g++), or capture with --backend aot_eager.", "for inductor"),
    Check(
        "Python headers", _headers, "Install them (python3-dev), or capture with --backend aot_eager.", "for inductor"
    ),
    Check(
        "torch.compile", lambda: _probed(compile_cpu), "Capture with --backend aot_eager.", "for inductor", "PyTorch"
    ),
    Check(
        "GPU",
        lambda: _probed(name_gpu),
        "PyTorch is a CPU build, a driver is missing, or CUDA_VISIBLE_DEVICES hides the GPU.",
        "for a GPU",
        "PyTorch",
    ),
    Check("GPU driver", _driver, "Without nvidia-smi a run does not say which driver it ran on.", "optional", "GPU"),
    Check(
        "GPU kernels in traces",
        lambda: _probed(profile_gpu),
        "Allow profiling (driver option NVreg_RestrictProfilingToAdminUsers=0, or the container's --cap-add=SYS_ADMIN) "
        "and stop other profilers (nsys, dcgm).",
        "for a GPU",
        "GPU",
    ),
    Check(
        "Triton", _triton, f"Compiling for a GPU needs it: {package_command('triton')}", "for inductor on a GPU", "GPU"
    ),
    Check(
        "torch.compile on the GPU",
        lambda: _probed(compile_gpu),
        "Capture with --backend aot_eager.",
        "for inductor on a GPU",
        "Triton",
    ),
)


def examine(checks: Sequence[Check] | None = None) -> list[Result]:
    """Do every check whose needs are met; side by side, because most of them are processes that import torch."""
    wanted_checks = CHECKS if checks is None else checks
    results: dict[str, Future[Result]] = {}
    with ThreadPoolExecutor(len(wanted_checks)) as pool:
        for check in wanted_checks:
            results[check.name] = pool.submit(_result, check, results[check.needs] if check.needs else None)
    return [result.result() for result in results.values()]


def _result(check: Check, needed: "Future[Result] | None") -> Result:
    try:
        met = needed is None or needed.result().ok
        finding = check.look() if met else Found(None, f"not checked, because it needs {check.needs}")
    except Exception as error:  # a check that cannot be done has failed; the others go on
        finding = Found(False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    advice = check.advice if finding.ok is False else None
    return Result(check.name, check.level, finding.ok, finding.text, advice)


def can_capture(results: list[Result]) -> bool:
    """Whether training can be captured at least on the CPU."""
    return all(result.ok for result in results if result.level == "needed")


def as_json(results: list[Result]) -> str:
    """The results as JSON, for programs."""
    document = {
        "schema": "tracekit.doctor/1",
        "can_capture": can_capture(results),
        "checks": [asdict(result) for result in results],
    }
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


def _probed(probe: Callable[[], str]) -> Found:
    """Run the probe in a separate process, so that it cannot change torch or crash here."""
    ok, text = run(probe.__name__)
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


class ProbeError(Exception):
    """What does not work, in words."""


def import_scanner() -> str:
    """Check that the scanner of traces, the loops of replays, and what a watch and marks of lines need were built for
    this machine."""
    native = ("_loops", "_levels", "_marks")
    modules = ["tracekit.trace.reading.native._scan", *(f"tracekit.native.{name}" for name in native)]
    if sys.platform == "linux" and sys.byteorder == "little":
        modules.append("tracekit.native._steps")
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as error:
        raise ProbeError(f"{error.name} was not built: Python does the same, but takes longer") from None
    return "by a scanner in C"


def profile_cpu() -> str:
    """Check that a traced multiplication appears in the trace."""
    if not _rows(_trace(CPU), "cpu_op"):
        raise ProbeError("a traced multiplication does not appear in the trace")
    return f"works ({_build()})"


def compile_cpu() -> str:
    """Check that Inductor generates working code."""
    import torch

    compiled = torch.compile(lambda x: (x.sin() + 1).sum(), backend="inductor")
    compiled(torch.ones(64))
    return "inductor compiles for the CPU"


def name_gpu() -> str:
    """The GPUs that PyTorch sees, and how fast the first one gathers rows, as in message passing."""
    if not has_gpu():
        raise ProbeError(f"none ({_build()})")
    names = ", ".join(gpu.name for gpu in properties())
    speed = environment.gather_bytes_per_s(GPU)
    return names if speed is None else f"{names}; gathers {speed / 1e9:,.0f} GB of rows a second"


def profile_gpu() -> str:
    """Check that kernels appear in the trace, in later sessions, too: the driver has to allow profiling."""
    if not has_gpu():
        raise ProbeError("no GPU")
    sessions = [_trace(GPU) for _ in range(_SESSIONS)]
    return _verdict([(_rows(events, "cuda_runtime"), _rows(events, "kernel")) for events in sessions])


def compile_gpu() -> str:
    """Check that Inductor generates working kernels."""
    import torch

    if not has_gpu():
        raise ProbeError("no GPU")
    compiled = torch.compile(lambda x: (x.sin() + 1).sum(), backend="inductor")
    x = torch.ones(64, device=GPU)
    difference = (compiled(x) - (x.sin() + 1).sum()).abs().item()
    if difference > _MAX_DIVERGENCE:
        raise ProbeError(f"inductor's kernel is off by {difference:.1e}")
    return "inductor compiles for the GPU"


PROBES = (profile_cpu, compile_cpu, name_gpu, profile_gpu, compile_gpu, import_scanner)


def _verdict(sessions: list[tuple[int, int]]) -> str:
    """What the runtime calls and kernels of each session say about the profiler."""
    calls, kernels = sessions[0]
    if not kernels:
        heard = "though not its launch" if calls else "and so is its launch"
        raise ProbeError(f"a kernel is missing in the trace, {heard}: no permission, or another profiler uses CUPTI")
    fewer = [count for _, count in sessions[1:] if count < kernels]
    if fewer:
        return (
            f"recorded; later sessions of a process lose some ({min(fewer)} of {kernels}), so each trace gets its "
            "own process"
        )
    return f"recorded, {len(sessions)} sessions in a row"


def run(name: str) -> tuple[bool, str]:
    """Run a probe; returns whether it works, and its message."""
    with tempfile.TemporaryDirectory(prefix="tracekit-probe-") as folder:
        # An empty cache, because code from an earlier compilation would hide a missing compiler.
        variables = {"PYTHONPATH": python_path(), "TORCHINDUCTOR_CACHE_DIR": folder}
        try:
            process = subprocess.run(
                [sys.executable, "-P", "-m", "tracekit.capture.doctor", name, folder],
                env={**os.environ, **lost_kernels.loud(), **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, f"took longer than {_SECONDS} s"
        answer = Path(folder, "answer.json")
        if answer.exists():
            ok, text = json.loads(answer.read_text())
            return bool(ok), str(text) if ok else explained(str(text), process.stderr)
    return False, (process.stderr.strip().splitlines() or [f"died with exit code {process.returncode}"])[-1]


def explained(text: str, log: str) -> str:
    """A failure, with the warning of the profiler's library about it."""
    if lost_kernels.lacks_permission(log):
        return f"{text} (the driver denied access: ERR_NVGPUCTRPERM)"
    warnings = lost_kernels.warnings(log)
    return f"{text} ({warnings[0]})" if warnings else text


def main(name: str, folder: str) -> None:
    """Run the probe, and write its answer to that folder."""
    probe = {function.__name__: function for function in PROBES}[name]
    try:
        answer = (True, probe())
    except ProbeError as error:
        answer = (False, str(error))
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        answer = (False, f"{type(error).__name__}: {' '.join(lines[:2])}")
    Path(folder, "answer.json").write_text(json.dumps(answer))


def _trace(device: str) -> list[dict[str, object]]:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        with torch.profiler.profile(activities=activities(with_gpu=is_gpu(device))) as profiler:
            x = torch.ones(8, 8, device=device)
            (x @ x).sum().item()
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, object]] = json.loads(path.read_text())["traceEvents"]
        return events


def _rows(events: list[dict[str, object]], category: str) -> int:
    return sum(event.get("cat") == category for event in events)


def _build() -> str:
    import torch

    return f"PyTorch {torch.__version__}, built for {build()}"


if __name__ == "__main__":
    main(*sys.argv[1:])
