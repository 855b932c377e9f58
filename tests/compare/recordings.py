"""Which recordings are compared, and where can they be had?"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Recording:
    """Traces that others have published: one, or one of each rank."""

    id: str
    what: str
    licence: str
    source: str  # repository on GitHub: path in it
    files: tuple[str, ...]

    def paths(self, folder: Path) -> list[Path]:
        """Its files in a folder of traces."""
        return [folder / f"{name}.json.gz" for name in self.files]


RECORDINGS = (
    Recording(
        "v100-2021",
        "ResNet-50 on one V100, six steps, four loader workers; a trace of 2021",
        "BSD",
        "pytorch/kineto: tb_plugin/samples/resnet50_num_workers_4 (before commit 9497960, which removed it)",
        ("kineto_resnet50_v100_dataloader4",),
    ),
    Recording(
        "four-ranks",
        "DLRM on four V100s, one step of each rank, NCCL",
        "MIT",
        "facebookresearch/param: et_replay/tests/inputs/dlrm_kineto.tar.gz (a trace of each rank)",
        tuple(f"param_dlrm_v100_rank{rank}" for rank in range(4)),
    ),
    Recording(
        "rocm",
        "ResNet on an MI300X, three steps of distributed training, one rank",
        "MIT",
        "AMD-AGI/TraceLens: tests/traces/mi300",
        ("tracelens_resnet_mi300x_training",),
    ),
    Recording(
        "gappy",
        "OWLv2 on an H100, one step of 1.2 s that mostly waits for its batch",
        "MIT",
        "AMD-AGI/TraceLens: tests/traces/h100",
        ("tracelens_owlv2_h100_dataloader",),
    ),
    Recording(
        "compiled",
        "A compiled model on an RTX 3060, five steps",
        "no licence is stated",
        "luatil/torch-profile: trace_04.json",
        ("luatil_compile_rtx3060",),
    ),
    Recording(
        "cpu",
        "ResNet-18 on a CPU, without marks of steps",
        "Apache-2.0",
        "SkafteNicki/dtu_mlops: s4_debugging_and_logging/exercise_files/log/resnet18",
        ("dtu_resnet18_cpu",),
    ),
)


def absent(folder: Path) -> str:
    """What is missing in a folder and where it can be had; empty if everything is there."""
    missing = [
        f"  {', '.join(path.name for path in each.paths(folder))}: {each.source}; {each.licence}"
        for each in RECORDINGS
        if not all(path.exists() for path in each.paths(folder))
    ]
    if not missing:
        return ""
    head = f"Not all recordings are in {folder}: name their folder with --traces, or download these from GitHub, packed"
    return "\n".join([f"{head} with gzip and under the names given:", *missing])
