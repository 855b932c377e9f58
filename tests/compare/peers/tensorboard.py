"""TensorBoard's PyTorch profiler plugin, without the browser: the overview that its first page shows."""

import tempfile
from pathlib import Path
from typing import Any

from tests.compare.peer import Breakdown, Peer, main

_ROLES = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec", "Other")
_BUSY = list(_ROLES[:4])

PEER = Peer(
    "tensorboard",
    "TensorBoard plugin",
    "torch-tb-profiler",
    ("torch-tb-profiler==0.4.3", "tensorboard==2.21.0", "pandas==2.3.3", "setuptools<81"),
)


def first_table(files: list[Path]) -> None:
    """The average step and its advice, for each rank."""
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    for file in files:
        overview = RunGenerator(file.stem, "", _parsed(file)).generate_run_profile().overview
        print(overview["performance"], overview["recommendations"], sep="\n")


def breakdowns(file: Path) -> list[Breakdown]:
    """The steps that it finds, and what it divides each into."""
    from torch_tb_profiler.profiler import data

    windows: list[list[int]] = []

    class Overview(data.OverallParser):  # type: ignore[name-defined, misc]
        """Keeps the steps, which the plugin forgets."""

        def aggregate(self, steps: list[tuple[float, float]], role_ranges: Any) -> None:
            windows.extend([round(start * 1000), round(end * 1000)] for start, end in steps)
            super().aggregate(steps, role_ranges)

    data.OverallParser = Overview
    costs = _parsed(file).steps_costs
    parts = {role: sum(step.costs[k] for step in costs) * 1000 for k, role in enumerate(_ROLES)}
    return [Breakdown(parts, _BUSY, {role: took for role, took in parts.items() if role not in _BUSY}, windows)]


def _parsed(file: Path) -> Any:
    from torch_tb_profiler.profiler.data import RunProfileData

    with tempfile.TemporaryDirectory() as folder:
        return RunProfileData.parse(file.stem, "", str(file), folder)


if __name__ == "__main__":
    main(breakdowns, first_table)
