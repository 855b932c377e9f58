"""Small experiments for `tracekit doctor`, each in a separate process: a machine may fail at what it claims to
support."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tracekit.capture import kineto_log
from tracekit.capture.gather_speed import gather_bytes_per_s
from tracekit.installed import python_path

_SESSIONS = 3
_APART = 1e-3
_SECONDS = 180  # a first compilation on a slow machine takes a minute


class ProbeError(Exception):
    """What does not work, in words."""


def profile_cpu() -> str:
    """Check that a traced multiplication appears in the trace."""
    import torch

    if not _rows(_trace([torch.profiler.ProfilerActivity.CPU], "cpu"), "cpu_op"):
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
    import torch

    if not torch.cuda.is_available():
        raise ProbeError(f"none ({_build()})")
    names = ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    speed = gather_bytes_per_s("cuda")
    return names if speed is None else f"{names}; gathers {speed / 1e9:,.0f} GB of rows a second"


def profile_gpu() -> str:
    """Check that kernels appear in the trace, in later sessions, too: the driver has to allow profiling."""
    import torch

    if not torch.cuda.is_available():
        raise ProbeError("no GPU")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    sessions = [_trace(activities, "cuda") for _ in range(_SESSIONS)]
    return _verdict([(_rows(events, "cuda_runtime"), _rows(events, "kernel")) for events in sessions])


def compile_gpu() -> str:
    """Check that Inductor generates working kernels."""
    import torch

    if not torch.cuda.is_available():
        raise ProbeError("no GPU")
    compiled = torch.compile(lambda x: (x.sin() + 1).sum(), backend="inductor")
    x = torch.ones(64, device="cuda")
    difference = (compiled(x) - (x.sin() + 1).sum()).abs().item()
    if difference > _APART:
        raise ProbeError(f"inductor's kernel is off by {difference:.1e}")
    return "inductor compiles for the GPU"


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
        try:
            process = subprocess.run(
                [sys.executable, "-P", "-m", "tracekit.capture.probes", name, folder],
                env=_environment(folder),
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
    if kineto_log.lacks_permission(log):
        return f"{text} (the driver denied access: ERR_NVGPUCTRPERM)"
    warnings = kineto_log.warnings(log)
    return f"{text} ({warnings[0]})" if warnings else text


def main(name: str, folder: str) -> None:
    """Run the probe, and write its answer to that folder."""
    probe = {
        function.__name__: function for function in (profile_cpu, compile_cpu, name_gpu, profile_gpu, compile_gpu)
    }[name]
    try:
        answer = (True, probe())
    except ProbeError as error:
        answer = (False, str(error))
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        answer = (False, f"{type(error).__name__}: {' '.join(lines[:2])}")
    Path(folder, "answer.json").write_text(json.dumps(answer))


def _environment(folder: str) -> dict[str, str]:
    # An empty cache, because code from an earlier compilation would hide a missing compiler.
    variables = {"PYTHONPATH": python_path(), "TORCHINDUCTOR_CACHE_DIR": folder}
    return {**os.environ, **kineto_log.loud(), **variables}


def _trace(activities: list[object], device: str) -> list[dict[str, object]]:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        with torch.profiler.profile(activities=activities) as profiler:
            x = torch.ones(8, 8, device=device)
            (x @ x).sum().item()
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, object]] = json.loads(path.read_text())["traceEvents"]
        return events


def _rows(events: list[dict[str, object]], category: str) -> int:
    return sum(event.get("cat") == category for event in events)


def _build() -> str:
    import torch

    kind = (
        f"CUDA {torch.version.cuda}"
        if torch.version.cuda
        else f"ROCm {torch.version.hip}"
        if torch.version.hip
        else "CPU"
    )
    return f"PyTorch {torch.__version__}, built for {kind}"


if __name__ == "__main__":
    main(*sys.argv[1:])
