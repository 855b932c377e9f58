"""`tracekit recipes`: what comes with tracekit to capture, and copies of it to edit."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.arguments import Verb
from tracekit.cli.output import add_json, printed, tell, tell_written, write_out

if TYPE_CHECKING:
    from tracekit.catalogue import Entry

_HEADS = {"recipe": "Recipes (tracekit capture NAME)", "sweep": "Sweep files (tracekit sweep NAME)"}
_NARROWEST, _WIDEST = 60, 120  # letters of a line


class RecipesVerb(Verb):
    """List the recipes and sweep files that come with tracekit, or copy some to edit them."""

    name = "recipes"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("action", nargs="?", choices=("list", "copy"), default="list", help="default: %(default)s")
        parser.add_argument(
            "names", nargs="*", metavar="NAME", help="only these, as in: tracekit recipes copy gcn_cora"
        )
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            default=Path(),
            metavar="FOLDER",
            help="the folder for copies, and for what they import or run (default: the current folder)",
        )
        parser.add_argument("--force", action="store_true", help="replace files of the same names in it")
        add_json(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """List or copy."""
        from importlib.util import find_spec

        from tracekit.catalogue import copied, entries
        from tracekit.errors.capturing import BadParameterError
        from tracekit.installed import install_command

        if options.action == "copy":
            if not options.names:
                raise BadParameterError("NAME", "", "what to copy, as in: tracekit recipes copy gcn_cora")
            for path in copied(entries(options.names), options.output, options.force):
                tell_written(path)
            return 0
        chosen = entries(options.names)
        if options.format == "json":
            write_out(_as_json(chosen, options))
            return 0
        needed = {package for entry in chosen for package in entry.needs}
        missing = {package for package in needed if find_spec(package.replace("-", "_")) is None}
        write_out(_as_text(chosen, missing))
        if missing & {"torch", "torch-geometric"}:
            tell(f"To install PyTorch and PyTorch Geometric: {install_command('capture')}")
        tell("To edit one, copy it: tracekit recipes copy NAME")
        return 0


def _as_text(chosen: "list[Entry]", missing: set[str]) -> str:
    import shutil
    from textwrap import TextWrapper

    longest = max(len(entry.name) for entry in chosen)
    indent = " " * (longest + 4)
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    wrapper = TextWrapper(width, subsequent_indent=indent, break_on_hyphens=False)
    lines = []
    for kind, head in _HEADS.items():
        of_kind = [entry for entry in chosen if entry.kind == kind]
        lines += ["", head] if of_kind else []
        for entry in of_kind:
            needs = [f"{package} (not installed)" if package in missing else package for package in entry.needs]
            variants = f"variants {', '.join(entry.variants)}; " if entry.variants else ""
            lines += wrapper.wrap(f"  {entry.name:<{longest}}  {entry.summary}")
            lines += wrapper.wrap(f"{indent}{variants}needs {', '.join(needs)}")
    return "\n".join([*lines[1:], ""])


def _as_json(chosen: "list[Entry]", options: argparse.Namespace) -> str:
    import pyarrow as pa

    from tracekit.faces import Options
    from tracekit.report.blocks import Table
    from tracekit.trace.schema import LABEL, column

    columns = {
        "name": ("what it is called on the command line", [entry.name for entry in chosen]),
        "kind": ("recipe, or sweep: a grid of captures", [entry.kind for entry in chosen]),
        "summary": ("what it is about", [entry.summary for entry in chosen]),
        "variants": ("those of its own, beside eager and compiled", [", ".join(entry.variants) for entry in chosen]),
        "needs": ("the packages that it imports", [", ".join(entry.needs) for entry in chosen]),
        "file": ("where it lies", [str(entry.files[0]) for entry in chosen]),
    }
    fields = [column(name, LABEL, meaning, role="setting") for name, (meaning, _) in columns.items()]
    rows = pa.table({name: values for name, (_, values) in columns.items()}, pa.schema(fields))
    return printed([Table("recipes", rows)], Options(), options)
