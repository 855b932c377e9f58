"""Which recipes and sweep files come with tracekit, and what does each show and need? Their source says so; it is not
run. Copies of them can be edited.
"""

import ast
import difflib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from tracekit.base.atomic import filling, reason
from tracekit.errors.asking import OutputError
from tracekit.errors.capturing import NoSuchRecipeError
from tracekit.installed import data_folder

_SETUP = re.compile(rb"^def setup\(", re.MULTILINE)  # by which a recipe is known
_SENTENCE = re.compile(r".*?[.?](?=\s|$)", re.DOTALL)
_LEAST_SIMILARITY = 0.7  # of a name that was misspelt, as difflib measures it

Names = dict[str, Path]  # the path below the folder of recipes without its suffix, `pathologies/syncs`: the file


class Entry(Struct, frozen=True):
    """A recipe or a sweep file."""

    name: str
    summary: str  # one sentence
    variants: tuple[str, ...]  # of a recipe, beside eager and compiled, without those that need an optional package
    needs: tuple[str, ...]  # packages, by their names on PyPI
    files: tuple[Path, ...]  # itself first, then those that it imports or runs; absolute paths

    @property
    def kind(self) -> str:
        """`recipe` or `sweep`."""
        return "sweep" if self.files[0].suffix == ".toml" else "recipe"


def folder() -> Path:
    """Where all of them lie."""
    return data_folder("recipes")


def recipes() -> Names:
    """The recipes, those in no folder of their own first."""
    return {name: file for name, file in _named("*.py").items() if _SETUP.search(file.read_bytes())}


def sweeps() -> Names:
    """The sweep files."""
    return _named("*.toml")


def located(name: str | Path, beside: Path = Path(), known: Callable[[], Names] = recipes) -> Path:
    """The file of that name in a folder or, if there is none, what comes with tracekit under it; else the former."""
    file = beside / name
    return file if file.is_file() else known().get(Path(name).as_posix(), file)


def similar(name: str | Path, known: Collection[str]) -> str:
    """Which of these names was probably meant, judged as a whole or by its last part; empty if none is similar."""
    path = Path(name)
    word = path.with_suffix("").as_posix() if path.name else path.as_posix()
    by_last_part = {each.rpartition("/")[2]: each for each in known}
    for meant, candidates in ((word, {each: each for each in known}), (word.rpartition("/")[2], by_last_part)):
        if found := difflib.get_close_matches(meant, candidates, n=1, cutoff=_LEAST_SIMILARITY):
            return candidates[found[0]]
    return ""


def entries(names: Iterable[str] = ()) -> list[Entry]:
    """What the sources say about themselves, of these names or of all. Raises NoSuchRecipeError."""
    known = {**recipes(), **sweeps()}
    wanted = [*names] or [*known]
    for name in wanted:
        if name not in known:
            raise NoSuchRecipeError(name, similar(name, known), "recipe or sweep file")
    return [(_sweep if known[name].suffix == ".toml" else _recipe)(name, known[name]) for name in wanted]


def copied(wanted: Iterable[Entry], to: Path, force: bool = False) -> list[Path]:
    """Copy entries into a folder, which is made, with their files as they lie beside each other: all or none.

    Raises OutputError, unless `force`, if any of these files is there.
    """
    contents: dict[Path, bytes] = {}
    for entry in wanted:
        common = os.path.commonpath([file.parent for file in entry.files])
        contents |= {file.relative_to(common): file.read_bytes() for file in entry.files}
    for name in contents:
        if not force and os.path.lexists(to / name):
            raise OutputError(to / name, "it exists, and only --force replaces it")
    try:
        with filling(to) as part:
            for name, content in contents.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                (part / name).write_bytes(content)
    except OSError as error:
        raise OutputError(to, reason(error)) from None
    return [to / name for name in contents]


def _named(pattern: str) -> Names:
    files = sorted(folder().rglob(pattern), key=lambda file: (len(file.parts), file))
    return {file.relative_to(folder()).with_suffix("").as_posix(): file for file in files}


def _recipe(name: str, file: Path) -> Entry:
    tree = ast.parse(file.read_bytes())
    files, packages = [file], {*_imported(tree.body)}
    for module in sorted(packages):
        beside = file.with_name(f"{module}.py")
        if beside.is_file():
            files.append(beside)
            packages |= {*_imported(ast.parse(beside.read_bytes()).body)}
    packages -= sys.stdlib_module_names | {each.stem for each in files}
    needs = sorted(package.replace("_", "-") for package in packages)
    summary = _first_sentence(ast.get_docstring(tree) or "")
    return Entry(name, summary, tuple(_variants(tree.body)), tuple(needs), tuple(files))


def _sweep(name: str, file: Path) -> Entry:
    text = file.read_text(encoding="utf-8")
    sweep = tomllib.loads(text)["sweep"]
    files, packages = {file: None}, set[str]()
    for grid in (sweep, *sweep.get("grid", ())):
        for program in grid.get("recipes", ()):
            recipe = _recipe(program, located(program, file.parent).resolve())
            files |= dict.fromkeys(recipe.files)
            packages |= {*recipe.needs} if "interpreters" not in grid else set()  # what those need is in them
    comment = " ".join(line.lstrip("# ") for line in text.partition("[sweep]")[0].splitlines())
    return Entry(name, _first_sentence(comment), (), tuple(sorted(packages)), tuple(files))


def _first_sentence(text: str) -> str:
    match = _SENTENCE.match(text)
    return " ".join((match[0] if match else text).split())


def _imported(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The modules without which the statements fail; what they import on a condition is optional."""
    for statement in statements:
        match statement:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.Try(body=body):  # that explains what is missing
                yield from _imported(body)


def _variants(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The keys of VARIANTS, where they are written out or made of the texts of a list."""
    constants = {
        target.id: statement.value
        for statement in statements
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    if not isinstance(variants := constants.get("VARIANTS"), ast.Dict):
        return
    for key, value in zip(variants.keys, variants.values, strict=True):
        match key, value:
            case ast.Constant(value=str(name)), _:
                yield name
            case None, ast.DictComp(generators=[ast.comprehension(iter=ast.Name(id=source))]):
                yield from ast.literal_eval(constants[source])
