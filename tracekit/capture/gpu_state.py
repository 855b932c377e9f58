"""What nvidia-smi reports about a GPU: what it is, and how fast it runs under load."""

import re
import shutil
import subprocess
from collections.abc import Sequence

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
Row = dict[str, str]


def identity(uuid: str | None = None) -> list[Row]:
    """Name, driver and limits, which do not change while the GPU works; empty without nvidia-smi."""
    return _query(_IS, uuid)


def under_load(uuid: str | None = None) -> list[Row]:
    """Clocks, power and the reasons for low clocks, at this moment: to be called while the GPU works."""
    return _query(_DOES, uuid)


def throttled_by(row: Row) -> list[str]:
    """Why the GPU ran slower than it could, in words."""
    mask = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or "0"
    try:
        bits = int(mask, 16)
    except ValueError:
        return []
    return [words for bit, words in _REASONS.items() if bits & bit]


def _query(fields: Sequence[str], uuid: str | None) -> list[Row]:
    """A row for each GPU, or for the one with that uuid; fields that this driver does not know are left out."""
    if not fields or not shutil.which("nvidia-smi"):
        return []
    gpu_option = ["-i", uuid] if uuid else []
    command = ["nvidia-smi", *gpu_option, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    unknown = set(_UNKNOWN_FIELD.findall(process.stdout + process.stderr)) & {*fields}
    if unknown:
        return _query([field for field in fields if field not in unknown], uuid)
    rows = [[cell.strip() for cell in line.split(",")] for line in process.stdout.splitlines()]
    answers = (dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields))
    return [{field: cell for field, cell in row.items() if _is_known(cell)} for row in answers]


def _is_known(cell: str) -> bool:
    return bool(cell) and not cell.startswith("[")  # "[N/A]", "[Not Supported]", "[Unknown Error]"
