"""`tracekit capture`: a recipe, or any training script, under the profiler."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import Verb, add_parameters, add_script_arguments, given, names, percentage, positive


class CaptureVerb(Verb):
    """Run a recipe, or any training script, eager and compiled, under the profiler, and record what each step costs."""

    name = "capture"
    runs_scripts = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        # A default is declared with the setting, in Options. The help repeats it, which a test holds: importing the
        # settings here would slow down every verb, because all of them declare their options.
        parser.argument_default = argparse.SUPPRESS
        parser.add_argument(
            "program",
            type=Path,
            metavar="RECIPE",
            help="a recipe (a file that defines setup(ctx), or the name of one in tracekit recipes), or any training "
            "script, unchanged: train.py -- ITS ARGUMENTS",
        )
        add_script_arguments(parser)
        parser.add_argument(
            "--variants",
            type=names,
            metavar="A,B,…",
            help="eager, compiled, a mode (max-autotune:dynamic=true), or the recipe's own; by default eager, compiled "
            "and the recipe's own",
        )
        add_parameters(parser)
        parser.add_argument("--device", help="cpu, cuda, cuda:1, …; auto: a GPU if there is one (default: auto)")
        parser.add_argument("--backend", help="inductor or aot_eager (default: inductor)")
        parser.add_argument("--steps", type=positive, help="number of profiled steps (default: 20)")
        parser.add_argument(
            "--warmup", type=positive, help="minimum number of warm-up steps before the profiled ones (default: 10)"
        )
        parser.add_argument("--seed", type=int, help="seed of every random number generator (default: 0)")
        parser.add_argument("--timeout", type=float, metavar="S", help="seconds that a pass may take (default: 1800)")
        parser.add_argument(
            "--passes",
            type=positive,
            metavar="N",
            help="maximum number of unprofiled passes per variant; fewer if the intervals are narrow before that, or "
            "--budget is spent (default: 100)",
        )
        parser.add_argument(
            "--budget",
            type=float,
            metavar="S",
            help="seconds for measuring again, after the three passes that every variant needs: compiling, traces and "
            "losses take as long as they take (default: 30 per variant and 60 at least, or as long as the first "
            "unprofiled passes took, up to 600; 600 with --precision or --min-detectable)",
        )
        parser.add_argument(
            "--quick",
            action="store_true",
            help="an answer in about half a minute, if compiling takes no longer: step times and their ratio, with the "
            "interval that so few passes give; no traces, and losses are not compared (--budget 12 by default)",
        )
        parser.add_argument(
            "--precision",
            type=percentage,
            metavar="PERCENT",
            help="take passes until every ratio to the first variant is known to ± this much, at 95 %%, or to differ "
            "from 1 by no more than 1.5 %% (default: 2%%, within --passes and --budget)",
        )
        parser.add_argument(
            "--explain-time",
            action="store_true",
            help="at the end, say where the time of the capture itself went (it is in the run file in any case)",
        )
        parser.add_argument(
            "--min-detectable",
            type=percentage,
            metavar="PERCENT",
            help="take passes until tracekit check would see a regression of this size, or say that --budget or "
            "--passes did not suffice (default: until differences between the variants are known well)",
        )
        parser.add_argument(
            "--epochs",
            type=positive,
            metavar="N",
            help="also train a recipe for N epochs, and compare the metric that it reaches (default: do not)",
        )
        parser.add_argument(
            "--seeds",
            type=positive,
            metavar="K",
            help="with --epochs: train each variant with K seeds, --seed and those after it (default: 3)",
        )
        parser.add_argument(
            "--workload",
            choices=("training", "inference"),
            help="what a step of a recipe is: one of training, or a call of its infer() (default: training)",
        )
        parser.add_argument(
            "--threads",
            type=positive,
            metavar="N",
            help="threads of PyTorch's operators; with one fewer than cores, other work on the machine disturbs steps "
            "far less, but ratios are those of that setting (default: PyTorch's choice, usually one per core)",
        )
        parser.add_argument(
            "--nproc",
            dest="ranks",
            type=positive,
            metavar="N",
            help="run a script in N processes, one per rank, which connect as under torchrun (default: 1)",
        )
        parser.add_argument(
            "--python",
            metavar="PATH",
            help="another interpreter in which to run the passes; it needs torch and msgspec",
        )
        parser.add_argument(
            "-o",
            "--output",
            dest="out",
            type=Path,
            metavar="FILE",
            help="the run file; its traces go to a folder beside it; an earlier run is renamed (default: run.json)",
        )
        parser.set_defaults(unknown="A script's own arguments go after --: tracekit capture train.py -- --epochs 3")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Capture."""
        from tracekit.capture.harness import Options, capture, exit_code
        from tracekit.catalogue import located

        settings = given(options, Options)
        if not settings.get("module"):
            settings["program"] = located(options.program)
        return exit_code(capture(Options(**settings)))
