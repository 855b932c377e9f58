"""TraceLens, by AMD: the report that its command writes, of which one sheet divides the GPU's time."""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compare import reference
from tests.compare.peer import Breakdown, Peer, main

_PARTS = ("computation_time", "exposed_comm_time", "exposed_memcpy_time", "idle_time")


def _command(python: Path, file: Path, folder: Path) -> list[str]:
    tool = str(python.parent / "TraceLens_generate_perf_report_pytorch")
    return [tool, "--profile_json_path", str(file), "--output_csvs_dir", str(folder)]


PEER = Peer(
    "tracelens",
    "TraceLens",
    "TraceLens",
    ("TraceLens @ git+https://github.com/AMD-AGI/TraceLens.git",),
    absent="It is on GitHub alone, which could not be reached; the `TraceLens` of PyPI is another project.",
    # The report is of one rank; what several ranks take together is measured as that of the first.
    command=lambda python, files, output: _command(python, files[0], output),
)


def breakdowns(file: Path) -> list[Breakdown]:
    """The sheet `gpu_timeline`: one sum of idle time, without a cause."""
    with tempfile.TemporaryDirectory() as folder:
        command = _command(Path(sys.executable), file, Path(folder))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with (Path(folder) / "gpu_timeline.csv").open(newline="", encoding="utf-8") as rows:
            said = {row["type"]: float(row["time ms"]) * 1e6 for row in csv.DictReader(rows)}
    gpu = reference.read(file).gpu
    return [Breakdown({name: said[name] for name in _PARTS}, list(_PARTS[:3]), {}, [[gpu[0][0], gpu[-1][1]]])]


if __name__ == "__main__":
    main(breakdowns)
