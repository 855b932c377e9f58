"""`tracekit capture`: a recipe, or any training script, under the profiler."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import names, pair, positive


class Capture:
    """Run a recipe, or any training script, eager and compiled under the profiler, and write what it took."""

    name = "capture"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "recipe",
            type=Path,
            metavar="RECIPE",
            help="a recipe, or a training script as it is: train.py -- ITS ARGUMENTS",
        )
        _script_arguments(parser)
        parser.add_argument(
            "--variants",
            type=names,
            default=(),
            metavar="A,B,…",
            help="eager, compiled, a mode (max-autotune:dynamic=true), or the recipe's own; by default eager, compiled "
            "and the recipe's own",
        )
        parser.add_argument(
            "--param",
            action="append",
            type=pair,
            default=[],
            metavar="KEY=VALUE",
            help="a parameter of the recipe, repeatable (default: those in its PARAMS)",
        )
        parser.add_argument(
            "--device", default="auto", help="cpu, cuda, cuda:1, …; auto is a GPU where there is one (default: auto)"
        )
        parser.add_argument("--backend", default="inductor", help="inductor or aot_eager (default: inductor)")
        parser.add_argument("--steps", type=positive, default=20, help="profiled steps (default: 20)")
        parser.add_argument("--warmup", type=positive, default=10, help="steps before, at least (default: 10)")
        parser.add_argument("--seed", type=int, default=0, help="of every random number generator (default: 0)")
        parser.add_argument(
            "--timeout", type=float, default=1800, metavar="S", help="seconds a pass may take (default: 1800)"
        )
        parser.add_argument(
            "--passes",
            type=positive,
            default=8,
            metavar="N",
            help="unprofiled passes of each variant, at most: fewer where their intervals are narrow (default: 8)",
        )
        parser.add_argument(
            "--budget",
            type=float,
            metavar="S",
            help="seconds that the passes after the first may take together (default: 30 a variant, or as long as the "
            "first ones took, up to 600)",
        )
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            default=Path("run.json"),
            metavar="FILE",
            help="the run, its traces in a folder beside it; an earlier run is kept (default: run.json)",
        )
        parser.set_defaults(unknown="A script's own arguments go after --: tracekit capture train.py -- --epochs 3")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Capture."""
        from tracekit.capture.harness import Options, capture, exit_code

        return exit_code(
            capture(
                Options(
                    recipe=options.recipe,
                    variants=options.variants,
                    params=dict(options.param),
                    device=options.device,
                    backend=options.backend,
                    steps=options.steps,
                    warmup=options.warmup,
                    seed=options.seed,
                    timeout=options.timeout,
                    passes=options.passes,
                    budget=options.budget,
                    out=options.output,
                    arguments=options.script_arguments,
                    step_every=options.step_every,
                    step_at=options.step_at,
                    script=options.script,
                    module=options.module,
                    in_place=options.in_place,
                )
            )
        )


def _script_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that only a script needs, which knows nothing of steps."""
    parser.add_argument("-m", dest="module", action="store_true", help="RECIPE is a module, as in python -m")
    parser.add_argument(
        "--script", action="store_true", help="a training script, though it defines setup(ctx) like a recipe"
    )
    parser.add_argument(
        "--in-place", action="store_true", help="leave what a script writes in its passes (default: it is undone)"
    )
    parser.add_argument(
        "--step-at",
        default="",
        metavar="WHERE",
        help="where a step of a script ends: optimizer, call (of the outermost module), or FILE:LINE; by default where "
        "it calls tracekit.step(), or else where an optimizer steps, or else at a call",
    )
    parser.add_argument(
        "--step-every",
        type=positive,
        default=1,
        metavar="N",
        help="such ends that make a step: 4 are 4 optimizer steps, each with all its micro-batches (default: 1)",
    )
