"""What the numbers depend on: versions, GPU, driver, clocks, CPU and threads; what nvidia-smi says about the GPU; how
fast the GPU gathers rows when it does nothing else, which is the yardstick for message passing; and what it costs this
machine to give a process a page of memory.
"""

import importlib.metadata
import importlib.util
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tracekit.capture.device import gpu, has_gpu, is_gpu, properties, synchronize, uuid
from tracekit.installed import package_command

_PACKAGES = ("torch", "torch-geometric", "dgl", "triton", "pyg-lib", "torch-sparse", "numpy", "msgspec")
_VARIABLES = re.compile(
    r"^(TORCH_LOGS|TORCHINDUCTOR_(?!CACHE_DIR)|TORCHDYNAMO_|PYTORCH_|OMP_|MKL_|KMP_|CUDA_|CUBLAS_|NVIDIA_TF32)"
)
_IS = (
    "name",
    "uuid",
    "driver_version",
    "power.limit",
    "power.max_limit",
    "clocks.max.sm",
    "clocks.max.mem",
    "persistence_mode",
)
_DOES = (
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "power.draw",
    "power.limit",
    "temperature.gpu",
    "pstate",
    "clocks_event_reasons.active",  # newer drivers
    "clocks_throttle_reasons.active",  # older ones
)
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
_SECONDS = 10
# Bits of NVML's mask of reasons for low clocks; being idle, or limited by an application, is not a problem.
_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
_ROWS, _COLUMNS, _PICKED = 1 << 20, 64, 1 << 19  # 256 MiB: no cache holds the table that is gathered from
_TIMES = 10
_FAULTED_PAGES, _FAULT_TRIES = 2048, 5
Row = dict[str, str]


def processor() -> str:
    """The model of the CPU."""
    model = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo") or "", re.M)
    return model[1] if model else platform.processor() or platform.machine()


def gather() -> dict[str, Any]:
    """Everything worth knowing when two runs disagree."""
    import torch

    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None  # before anything runs
    installed = packages()
    cudnn: int | None = None
    if has_gpu():
        with suppress(RuntimeError):  # one that does not fit this PyTorch; the training may do without it
            cudnn = torch.backends.cudnn.version()
    identities = {row.get("uuid"): row for row in identity()}
    return {
        **versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": processor(),
        "cpu_count": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu_load": load,
        "cpu_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        # The library that reports kernels to the profiler, if it was installed as a package with PyTorch.
        "cupti": next((version for name, version in installed.items() if name.startswith("nvidia-cuda-cupti")), None),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": cudnn,
        "threads": torch.get_num_threads(),
        "page_fault_ns": page_fault_ns(),
        "interop_threads": torch.get_num_interop_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "gpus": [
            {
                "name": card.name,
                "uuid": name,
                "memory_bytes": card.total_memory,
                "capability": f"{card.major}.{card.minor}",
                "multiprocessors": card.multi_processor_count,
                **{field: value for field, value in identities.get(name, {}).items() if field not in ("name", "uuid")},
            }
            for card in properties()
            for name in [uuid(card)]
        ],
        "variables": {name: value for name, value in sorted(os.environ.items()) if _VARIABLES.match(name)},
        "packages": installed,
    }


def page_fault_ns() -> int | None:
    """What it takes until a process has a page of memory that it touches for the first time, ns: the least of a few
    tries, without what touching it takes. None where the system has no such memory."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return None

    def touched_ns(region: mmap.mmap) -> int:
        began_ns = time.perf_counter_ns()
        for offset in range(0, len(region), mmap.PAGESIZE):
            region[offset] = 1
        return time.perf_counter_ns() - began_ns

    tries = []
    for _ in range(_FAULT_TRIES):
        with mmap.mmap(-1, _FAULTED_PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as region:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                with suppress(OSError):
                    region.madvise(mmap.MADV_NOHUGEPAGE)
            first_ns = touched_ns(region)
            tries.append((first_ns - touched_ns(region)) // _FAULTED_PAGES)
    return max(min(tries), 0)


def versions() -> dict[str, str]:
    """The versions of the packages that a training step uses; absent ones are left out."""
    import torch

    installed = {}
    for name in _PACKAGES:
        try:
            installed[name.replace("-", "_")] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {**installed, "torch": str(torch.__version__)}  # says the build, too: 2.13.0+cpu


def packages() -> dict[str, str]:
    """The versions of all installed packages, by name."""
    read = (distribution.metadata for distribution in importlib.metadata.distributions())  # parsed at each access
    versions = ((metadata["Name"], metadata["Version"]) for metadata in read)
    return dict(sorted(((name, version) for name, version in versions if name), key=lambda item: item[0].lower()))


def backends() -> list[str]:
    """The backends that torch.compile knows by name, including those for debugging and of other packages, but not those
    of torch's own tests."""
    import torch

    return [name for name in torch.compiler.list_backends(()) if not name.endswith("_TESTING_ONLY")]


def has_torch() -> bool:
    """Whether the child processes can import PyTorch; does not import it."""
    return importlib.util.find_spec("torch") is not None


def cpp_compiler() -> str:
    """The C++ compiler that Inductor calls."""
    return os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")


def missing_compiler(device: str) -> str | None:
    """What Inductor needs on that device but does not find, in words; None if nothing is missing."""
    if not is_gpu(device):
        cxx = cpp_compiler()
        return None if shutil.which(cxx) else f"a C++ compiler ({cxx})"
    if importlib.util.find_spec("triton") is None:
        return f"Triton ({package_command('triton')})"
    cc = [os.environ["CC"]] if os.environ.get("CC") else ["gcc", "clang", "cc"]
    return None if any(map(shutil.which, cc)) else f"a C compiler ({cc[0]}), for Triton"


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def identity() -> list[Row]:
    """Name, driver and limits, which do not change while the GPU works; empty without nvidia-smi."""
    return _query(_IS)


def under_load(uuid: str | None = None) -> list[Row]:
    """Clocks, power and the reasons for low clocks, at this moment: to be called while the GPU works."""
    return _query(_DOES, uuid)


def processes_on(uuid: str) -> int | None:
    """How many processes have that GPU open, this one among them, and may compute on it; None where nvidia-smi does not
    say."""
    process = _nvidia_smi(uuid, "--query-compute-apps=pid")
    if process is None or process.returncode != 0:
        return None
    pids = [line.strip() for line in process.stdout.splitlines() if line.strip().isdecimal()]
    return len(pids) or None


def throttled_by(row: Row) -> list[str]:
    """Why the GPU ran slower than it could, in words."""
    mask = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or "0"
    try:
        bits = int(mask, 16)
    except ValueError:
        return []
    return [words for bit, words in _REASONS.items() if bits & bit]


def _query(fields: Sequence[str], uuid: str | None = None) -> list[Row]:
    """A row for each GPU, or for the one with that uuid; fields that this driver does not know are left out."""
    if not fields or not shutil.which("nvidia-smi"):
        return []
    process = _nvidia_smi(uuid, f"--query-gpu={','.join(fields)}")
    if process is None:
        return []
    unknown = set(_UNKNOWN_FIELD.findall(process.stdout + process.stderr)) & {*fields}
    if unknown:
        return _query([field for field in fields if field not in unknown], uuid)
    rows = [[cell.strip() for cell in line.split(",")] for line in process.stdout.splitlines()]
    answers = (dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields))
    # Unknown are "[N/A]", "[Not Supported]", "[Unknown Error]".
    return [{field: cell for field, cell in row.items() if cell and not cell.startswith("[")} for row in answers]


def _nvidia_smi(uuid: str | None, query: str) -> "subprocess.CompletedProcess[str] | None":
    """What it answers about all GPUs, or the one with that uuid; None if it does not."""
    gpu_option = ["-i", uuid] if uuid else []
    command = ["nvidia-smi", *gpu_option, query, "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None


def gather_bytes_per_s(device: str, rows: int = _ROWS) -> float | None:
    """Bytes read and written per second while random rows of 256 bytes are gathered; None if memory does not suffice.

    A capture measures it once, before anything else runs on the GPU: it takes a tenth of a second and, meanwhile,
    300 MB.
    """
    import torch

    try:
        table = torch.zeros(rows, _COLUMNS, device=device)
        picked = torch.randint(rows, (min(_PICKED, rows),), device=device)
        torch.index_select(table, 0, picked)
        synchronize(device)
        began = time.perf_counter()
        for _ in range(_TIMES):
            torch.index_select(table, 0, picked)
        synchronize(device)
        elapsed_s = time.perf_counter() - began
    except torch.OutOfMemoryError:
        return None
    moved = _TIMES * len(picked) * (2 * _COLUMNS * table.element_size() + picked.element_size())
    del table, picked
    if is_gpu(device):
        gpu().empty_cache()
    return moved / elapsed_s if elapsed_s else None
