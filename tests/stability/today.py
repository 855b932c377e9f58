"""Every name that is promised, as it is today: what may be called, written on the command line, or read from output.

A parameter that may be left out is `load(workers=)`, one that may not is `load(paths)`: one that becomes necessary is
thus another name.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest import mock

from msgspec import NODEFAULT, Struct

import tracekit
from tracekit.base.registry import Group
from tracekit.cli import main
from tracekit.cli.program import VERBS
from tracekit.engine.buckets import BUCKETS
from tracekit.findings import VERDICTS
from tracekit.profile import open_subject
from tracekit.ranks.collectives import COLLECTIVES
from tracekit.ranks.communication import COMMUNICATION
from tracekit.report import report
from tracekit.report.tables import every_table
from tracekit.trace.facts import all_laws

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_traces" / "run.json"
ON_A_GPU = ROOT / "sample_traces" / "h100" / "gcn_cora" / "run.json"
SCHEMA = ROOT / "docs" / "report.schema.json"
GUIDE = ROOT / "CONTRIBUTING.md"  # what its examples import, packages of others may
_IMPORT = re.compile(r"^from (tracekit\.[\w.]+) import (.+)$", re.MULTILINE)
_FORMAT = re.compile(r'"(tracekit\.[a-z_.]+/\d+)"')  # the name of a schema in what is written
# Classes of which programs get objects, with what is promised of them; None: all that is public.
CLASSES: dict[str, str | None] = {
    "tracekit.Tables": None,
    "tracekit.notebook.Plots": None,
    "tracekit.Trace": "load path name device events tracks ts_ns dur_ns end_ns track names name_codes cat_codes "
    "correlation steps links parts where roles health gpus meta",
    "tracekit.Attribution": "trace views wall host wall_ns host_ns wall_known host_known cannot_answer segments "
    "segments_of pieces",
    "tracekit.profile.Profile": "name trace attribution views means counted counted_steps run variant",
    "tracekit.report.Report": "sections profiles members comparisons baseline answers diagnoses notes title",
    "tracekit.findings.Finding": "id headline why do cost_ns share bound where claim evidence document",
    "tracekit.errors.TracekitError": "",
}


def today() -> dict[str, list[str]]:
    """The names by kind, sorted."""
    kinds: dict[str, Callable[[], Iterable[str]]] = {
        "python": python,
        "plug-in": plug_ins,
        "entry point": lambda: Group.__args__,  # type: ignore[attr-defined]
        "verb": lambda: [verb.name for verb in VERBS],
        "option": options,
        "exit code": exit_codes,
        "schema": schemas,
        "key": keys,
        "column": columns,
        "bucket": lambda: BUCKETS,
        "finding": findings,
        "law": lambda: [law.id for law in all_laws()],
    }
    return {kind: sorted(set(names())) for kind, names in kinds.items()}


def python() -> Iterator[str]:
    """What `import tracekit` offers, and what the objects have that it returns."""
    for name in tracekit.__all__:
        yield from callables(f"tracekit.{name}", getattr(tracekit, name))
    for path, chosen in CLASSES.items():
        cls = found(path)
        yield path
        for name in chosen.split() if chosen is not None else [name for name in dir(cls) if not name.startswith("_")]:
            if hasattr(cls, name):
                yield from callables(f"{path}.{name}", getattr(cls, name))


def plug_ins() -> Iterator[str]:
    """What a package that adds questions, findings or faces imports; of what it calls, with the parameters."""
    guide = GUIDE.read_text(encoding="utf-8")
    for module, names in _IMPORT.findall(guide):
        for name in names.split(", "):
            thing = found(f"{module}.{name}")
            if isinstance(thing, type) and f"{name}(" in guide:
                yield from (f"{module}.{name}{parameter}" for parameter in fields(thing))
            yield from callables(f"{module}.{name}", thing)


def found(path: str) -> Any:
    """The object of that dotted name."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def callables(path: str, thing: object) -> Iterator[str]:
    """The name, and those of its parameters if it is a function."""
    yield path
    if isinstance(thing, FunctionType):
        for parameter in inspect.signature(thing).parameters.values():
            if parameter.name != "self":
                needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
                yield f"{path}({parameter.name}{'' if needed else '='})"


def fields(record: type[Struct]) -> Iterator[str]:
    """The parameters with which such a record is made."""
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    for name, default in zip(names, (NODEFAULT,) * (len(names) - len(defaults)) + defaults, strict=True):
        yield f"({name}{'' if default is NODEFAULT else '='})"


def options() -> Iterator[str]:
    """Every option of every verb, its values where there is a list of them, and what stands without an option."""
    for verb in VERBS:
        parser = argparse.ArgumentParser()
        verb.arguments(parser)
        for action in parser._actions:
            for name in action.option_strings or [action.metavar or action.dest]:
                yield f"{verb.name} {name}"
                yield from (f"{verb.name} {name}={value}" for value in action.choices or ())


def exit_codes() -> Iterator[str]:
    """How a program ends, seen by ending it so."""
    endings = {
        "success": ["doctor", "--help"],
        "failure": ["report", "no-such-run.json"],
        "wrong usage": ["report", "--no-such-option"],
        "a check that could not be made": ["check", "sample", "--against", "no-such-run.json"],
    }
    for meaning, arguments in endings.items():
        yield f"{exit_code(arguments)}: {meaning}"
    with mock.patch("tracekit.cli.report.ReportVerb.run", side_effect=KeyboardInterrupt):
        yield f"{exit_code(['report', 'sample'])}: interrupted"


def exit_code(arguments: list[str]) -> int:
    """With which code the command line ends."""
    return ended(arguments)[0]


def ended(arguments: list[str]) -> tuple[int, str]:
    """With which code the command line ends, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        try:
            return main(arguments), printed.getvalue()
        except SystemExit as end:
            return int(end.code or 0), printed.getvalue()


def schemas() -> Iterator[str]:
    """The names of formats that files and documents carry."""
    for path in (ROOT / "tracekit").rglob("*.py"):
        yield from _FORMAT.findall(path.read_text(encoding="utf-8"))


def keys() -> Iterator[str]:
    """Every key of the JSON report by the object that has it, `always` where none lacks it; and those that other verbs
    print for the runs that come with tracekit."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for name, part in {"report": schema, **schema["$defs"]}.items():
        for key in part.get("properties", {}):
            yield f"{name}.{key}"
        for key in part.get("required", ()):
            yield f"{name}.{key}, always"
    for verb, run, *more in (
        ("check", SAMPLE, "--against", str(SAMPLE)),
        ("lines", SAMPLE),
        ("what-if", ON_A_GPU),
    ):
        _, printed = ended([verb, str(run), *more, "--format", "json"])
        yield from paths(verb, json.loads(printed))


def paths(place: str, value: object) -> Iterator[str]:
    """The keys in a document, each with the way to it, and the name of its schema."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"{place}.{key}" if key != "schema" else f"{place}.{key} = {part}"
            yield from paths(f"{place}.{key}", part)
    elif isinstance(value, list):
        for part in value:
            yield from paths(f"{place}[]", part)


def columns() -> Iterator[str]:
    """The columns of the tables of both runs, with their types; and those of tables that these have not, such as those
    of a watch, a study, ranks and a loader's workers."""
    for run in (SAMPLE, ON_A_GPU):
        for name, stream in every_table(report(open_subject([run]))).items():
            yield from typed(name, stream.schema)
    yield from typed("collectives", COLLECTIVES)
    yield from typed("communication", COMMUNICATION)
    for path in (ROOT / "tracekit" / "report").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name, constant in written(node):
                yield from typed(name, found(f"{module}.{constant}"))


def typed(table: str, schema: Any) -> Iterator[str]:
    """The columns of a table, with their types."""
    yield from (f"{table}.{field.name}: {field.type}" for field in schema)


def written(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The exported tables that the code makes here, each with the constant that is its schema."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="Table"), attr="of"),
            args=[ast.Constant(value=str(name)), _, ast.Name(id=constant), *_],
            keywords=more,
        ) if constant.isupper() and "exported" not in {keyword.arg for keyword in more}:
            yield name, constant
        case ast.Call(
            func=ast.Name(id="rows_of_study"),
            args=[ast.Constant(value=str(name)), _, ast.Name(id=constant), *_],
            keywords=more,
        ):
            other = [keyword.value.value for keyword in more if keyword.arg == "table"]
            yield next(iter(other), name), constant
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                match key, value:
                    case (
                        ast.Constant(value=str(name)),
                        ast.Lambda(
                            body=ast.Call(func=ast.Attribute(attr="from_pylist"), args=[_, ast.Name(id=constant)])
                        ),
                    ):
                        yield name, constant


def findings() -> Iterator[str]:
    """The ids of findings and verdicts: those that bound a step, and every other that a rule gives by name."""
    yield from VERDICTS
    for path in (ROOT / "tracekit" / "findings").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Finding"), args=[ast.Constant(value=str(name)), *_]):
                    yield name
