"""`tracekit sweep`: captures a grid."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import Verb, given, names, positive, selection


class SweepVerb(Verb):
    """Capture every cell of a grid – recipes, parameters, compile settings, seeds – into one study."""

    name = "sweep"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "file", type=Path, metavar="SWEEP", help="the sweep file (TOML), or one of those in tracekit recipes"
        )
        parser.add_argument(
            "-o",
            "--output",
            dest="out",
            type=Path,
            default=Path("study"),
            metavar="FOLDER",
            help="folder of the study; cells that have already finished there are not run again (default: study/)",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="list the cells and estimate the time, but run nothing"
        )
        parser.add_argument(
            "--only",
            type=selection,
            default={},
            metavar="AXIS=VALUE,…",
            help="run only these cells, as in 'model=gat,mode=max-autotune'; model=gat|gcn selects several values",
        )
        parser.add_argument(
            "--retry",
            type=names,
            default=(),
            metavar="OUTCOME,…",
            help="rerun the cells with one of these outcomes: oom, timeout, crash, error, skipped; failed means any",
        )
        parser.add_argument(
            "--epochs",
            type=positive,
            metavar="N",
            help="train each cell for N epochs, and compare how well they train (default: as the file says)",
        )
        parser.add_argument(
            "--seeds", type=positive, metavar="K", help="use K seeds, starting at 0 (default: those in the file)"
        )
        parser.add_argument(
            "--threads",
            type=positive,
            metavar="N",
            help="threads of PyTorch's operators, the same in each cell; with one fewer than cores, other work on the "
            "machine disturbs steps far less (default: as the file says, else PyTorch's choice, usually one per core)",
        )
        parser.add_argument(
            "--device",
            dest="devices",
            type=names,
            default=("auto",),
            metavar="DEVICE,…",
            help="cpu, cuda:0,cuda:1 …; several devices run cells side by side (default: auto)",
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Sweep."""
        from tracekit.catalogue import located, sweeps
        from tracekit.sweep import SweepOptions, sweep

        options.file = located(options.file, known=sweeps)
        return sweep(SweepOptions(**given(options, SweepOptions)))
