"""How the package is cut and what its names are: the figures that keep it easy to live in.

    python -m tests.house [--names] [--page CONTRIBUTING.md]

`--names` lists the bindings whose names say nothing of what they hold, most frequent first; with `--page`, the table
between the markers in that file is replaced.
"""

import argparse
import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
_TABLE = re.compile(r"(<!-- house -->\n).*?(<!-- /house -->)", re.DOTALL)

# Pronouns, prepositions and bare participles: a name is what a thing is, and these are not.
_WORDS = """
above all another any around asked at below between beyond both by chosen done each either every few found from
given gone held here his in inside into kept known least left less made many meant more most much named neither
next none of off on one only other others ours out over own put said same seen shown some spent such taken that
theirs them then there these they this those through told tried under until used wanted what whatever when where
which whichever who whole whose with within without
"""
VAGUE = frozenset(_WORDS.split())


@dataclass
class Module:
    """One file of the package."""

    path: Path
    name: str  # dotted, as it is imported
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def import_lines(self) -> int:
        """Lines of import statements, those in functions included."""
        imports = (node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)

    @property
    def imported(self) -> set[str]:
        """The dotted names that it may import: of `from a import b`, both `a` and `a.b`."""
        names: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
        return names

    @property
    def helpers(self) -> Counter[str]:
        """How often each private function or method of the file is referred to in it. Those that a decorator registers
        or turns into a property are no helpers."""
        functions = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        private = {
            node.name
            for node in functions
            if node.name.startswith("_") and not node.name.startswith("__") and not node.decorator_list
        }
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        return Counter({name: uses[name] for name in private})

    @property
    def functions(self) -> int:
        """How many functions and methods it defines."""
        return sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(self.tree))

    @property
    def bindings(self) -> Iterator[str]:
        """The name of each variable and parameter where it is bound."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("__"):
                yield node.id


def modules(package: Path = ROOT / "tracekit") -> list[Module]:
    """All files of the package that Python imports."""
    return [
        Module(path, ".".join(path.relative_to(package.parent).with_suffix("").parts), path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    ]


def vague(name: str) -> bool:
    """Whether the name says nothing of what it holds."""
    return name.strip("_") in VAGUE


def figures(files: list[Module]) -> dict[str, str]:
    """The table, by the label of a row."""
    sizes = [module.lines for module in files]
    called_once = sum(count == 1 for module in files for count in module.helpers.values())
    importers = Counter(name for module in files for name in module.imported)
    single = [m for m in files if m.path.name not in ("__init__.py", "__main__.py") and importers[m.name] == 1]
    names = [name for module in files for name in module.bindings]
    total = sum(sizes)
    return {
        "files": f"{len(files):,}",
        "lines": f"{total:,}",
        "lines of a file, median": f"{statistics.median(sizes):,.0f}",
        "lines of a file, most": f"{max(sizes):,}",
        "functions that are private and called once": f"{called_once / sum(m.functions for m in files):.0%}",
        "lines that are imports": f"{sum(module.import_lines for module in files) / total:.1%}",
        "modules with exactly one importer": f"{len(single):,} ({sum(module.lines for module in single):,} lines)",
        "names that are pronouns, prepositions or participles": f"{sum(map(vague, names)) / len(names):.1%}",
    }


def main() -> None:
    """Print the table, and write it where it is asked for."""
    parser = argparse.ArgumentParser(prog="tests.house", description=__doc__)
    parser.add_argument("--names", action="store_true", help="list the names that say nothing")
    parser.add_argument("--page", type=Path, help="the file whose table is replaced")
    options = parser.parse_args()
    files = modules()
    table = "\n".join(["| | |", "|---|---|", *(f"| {label} | {value} |" for label, value in figures(files).items())])
    print(table)
    if options.names:
        for name, count in Counter(n for module in files for n in module.bindings if vague(n)).most_common():
            print(f"{count:6,} {name}")
    if options.page:
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(_TABLE.sub(rf"\g<1>{table}\n\g<2>", text), encoding="utf-8")


if __name__ == "__main__":
    main()
