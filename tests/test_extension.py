"""What somebody else adds in a few lines appears in every face."""

import ast
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from on_screen import everything
from rich.console import Console
from small import op, step, training, write

from tests.faces.formats import TEXTS
from tracekit import analyses, faces
from tracekit.analyses import Answer, analysis
from tracekit.analyses import unregister as forget_analysis
from tracekit.base import registry
from tracekit.cli import main
from tracekit.faces import Options, face, folder_face, variant_face
from tracekit.faces import unregister as forget_face
from tracekit.findings import Finding, Where, rule, rules
from tracekit.findings import unregister as forget_rule
from tracekit.profile import open_subject
from tracekit.report import blocks, report, sections
from tracekit.report.breakdown import Part, breakdown
from tracekit.report.section import Contents, of_comparison, of_run, of_trace, of_variant
from tracekit.report.section import unregister as forget_producer
from tracekit.trace.facts import LAWS
from tracekit.trace.schema import column
from tracekit.tui.model.content import pieces_of

COLOURS = pa.schema(
    [column("colour", pa.string(), "of the rainbow"), column("seen", pa.int64(), "a year", role="identity")]
)


@pytest.fixture
def paths(tmp_path):
    return [
        training(tmp_path / f"{name}.json", steps=4, python=20 * k) for k, name in enumerate(("eager", "compiled"), 1)
    ]


def in_every_face(paths, tmp_path, capsys) -> Iterator[tuple[str, str]]:
    """Each face by name, and everything that it says about these traces."""
    given = [*map(str, paths)]
    for name in TEXTS:
        assert main(["report", *given, "--format", name, "--rows", "all"]) == 0
        yield name, capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    assert main(["report", *given, "--format", "parquet", "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    yield "parquet", " ".join(str(pq.read_table(path).to_pylist()) for path in (tmp_path / "out").glob("*.parquet"))
    yield "tui", everything(paths)


@pytest.mark.parametrize("scope", ["trace", "variant", "comparison", "run"])
def test_a_question_of_each_scope(paths, tmp_path, capsys, scope):
    def answer(*of: object) -> Contents:
        rows = pa.table({"colour": [f"violet of {scope}"], "seen": [1999]}, schema=COLOURS)
        return Contents((blocks.Sentences((f"All the colours of a {scope}.",)), blocks.Table("rainbow", rows)))

    register = {"trace": of_trace, "variant": of_variant, "comparison": of_comparison, "run": of_run}[scope]
    register("rainbow", "Rainbow", rank=60)(answer)
    try:
        for name, said in in_every_face(paths, tmp_path, capsys):
            assert f"violet of {scope}" in said, name
            if name != "parquet":
                assert f"All the colours of a {scope}." in said, name
                assert "1999" in said, name  # an identity is not grouped by thousands
                assert "Rainbow" in said, name
        sections = [each for each in report(open_subject(paths)).sections if each.id == "rainbow"]
    finally:
        forget_producer("rainbow")
    of = [(each.scope, each.variant, each.trace, each.baseline) for each in sections]
    assert (
        of
        == {
            "trace": [("trace", name, "steady", None) for name in ("eager", "compiled")],
            "variant": [("variant", name, None, None) for name in ("eager", "compiled")],
            "comparison": [("comparison", "compiled", None, "eager")],
            "run": [("run", None, None, None)],
        }[scope]
    )


def test_every_kind_of_block(paths, tmp_path, capsys):
    @of_run("zoo", "Zoo")
    def zoo(_: object) -> Contents:
        steps = blocks.Line("of apes", (1, 2), (10_000, None), ("", "unknown"))
        parts = [Part("tea", "drinking tea", "#112233", "from cups")]
        drinks = breakdown("drinks", "Drinks", parts, means={"apes": {"tea": 1234.0}})
        assert drinks is not None
        notes = blocks.Notes((blocks.Note("warning", ("apes",), "they climb."),))
        lines = blocks.Excerpt("zoo.py", 7, ("feed(ape)",), {"apes": {7: 5_000_000.0}})
        return Contents((blocks.Series("apes", (steps,)), drinks, notes, lines))

    try:
        for name, said in in_every_face(paths, tmp_path, capsys):
            if name == "parquet":
                continue
            for word in ("of apes", "drinking tea", "they climb.", "feed"):
                assert word in said, (name, word)
            assert ("5.00 ms" in said) != (name == "json"), name
            assert ("1.234" in said) != (name == "json"), name
    finally:
        forget_producer("zoo")


def test_a_finding(paths, tmp_path, capsys):
    @rule("idle_ape")
    def look(profile):
        advice = "Feed it."
        yield Finding("idle_ape", "The ape is idle", 30_000.0, advice, share=0.25, where=Where("zoo.py", 7))

    try:
        for name, said in in_every_face(paths, tmp_path, capsys):
            assert "ape is idle" in said, name
            assert "Feed it." in said, name
            if name == "json":
                document = json.loads(said)
                first, *others = document["findings"]
                assert first["id"] == document["variants"][0]["verdict"]["id"] == "python_bound"
                finding = next(each for each in others if each["id"] == "idle_ape")  # it has no verdict: it ranks below
                assert finding["variant"] == "eager"
                assert finding["where"]["line"] == 7
                assert {
                    *("id", "title", "cost_ns", "bound", "share", "where", "evidence", "advice", "link"),
                    *("confidence", "overlaps"),
                } <= set(finding)
        order = [section.id for section in report(open_subject(paths)).sections]
        assert order[:1] == ["headline"]
        assert order.index("findings") < order.index("wall")
    finally:
        forget_rule("idle_ape")


def test_an_analysis_of_unknown_worth_shows_its_table(tmp_path, capsys):
    # A CPU's report is short: no other table is worth more than this one on two screens.
    path = write(tmp_path / "cpu.json", step(0, 0, 100), op("aten::mm", 10, 90))

    @analysis("mine")
    def mine(profile):
        return Answer("mine", "Mine", "There.", pa.table({"colour": ["violet"], "seen": [1999]}, schema=COLOURS))

    try:
        assert main(["report", str(path)]) == 0
        assert "violet" in capsys.readouterr().out
    finally:
        forget_analysis("mine")


def test_a_face(paths, tmp_path, capsys):
    @face("shout")
    def shout(report, options):
        return " ".join(line.upper() for section in report.sections for line in said(section)) + "\n"

    def said(section):
        return [line for block in section.blocks if isinstance(block, blocks.Sentences) for line in block.lines]

    @folder_face("pile")
    def pile(report, folder, options):
        (folder / "names.txt").write_text(" ".join(profile.name for profile in report.profiles))

    @variant_face("card", ".txt")
    def card(report, profile, path):
        path.write_text(profile.name)

    try:
        assert {"shout", "pile", "card", *TEXTS, "parquet"} <= set(faces.names())
        assert main(["report", *map(str, paths), "--format", "shout"]) == 0
        assert "COMPILED TAKES" in capsys.readouterr().out
        assert main(["report", *map(str, paths), "--format", "pile", "-o", str(tmp_path / "pile")]) == 0
        assert (tmp_path / "pile" / "names.txt").read_text() == "eager compiled"
        assert main(["report", str(paths[0]), "--format", "pile"]) == 1
        assert "Name a folder for them: -o" in capsys.readouterr().err
        assert main(["report", *map(str, paths), "--format", "card", "-o", str(tmp_path / "cards")]) == 0
        assert [path.read_text() for path in sorted((tmp_path / "cards").iterdir())] == ["compiled", "eager"]
        assert main(["report", str(paths[0]), "--format", "card", "-o", str(tmp_path / "one.txt")]) == 0
        assert (tmp_path / "one.txt").read_text() == "eager"
    finally:
        forget_face("shout")
        forget_face("pile")
        forget_face("card")


@pytest.mark.parametrize("name", TEXTS)
def test_every_face_has_a_renderer_for_every_kind_of_block(name):
    faces.find(name)
    module = sys.modules["tracekit.faces.shared.document" if name == "json" else f"tracekit.faces.{name}"]
    renderer = module.as_data if name == "json" else getattr(module, "written", None) or module.drawn
    assert set(blocks.KINDS) <= set(renderer.registry)
    assert set(blocks.KINDS) <= set(pieces_of.registry)


@pytest.mark.parametrize("package", [analyses, faces, rules, sections])
def test_no_module_takes_the_name_of_something_else_in_its_package(package):
    """Read from the source: as soon as such a module has been imported, the package has it under that name."""
    (folder,) = package.__path__
    defined = names_at_the_top(Path(folder) / "__init__.py")
    for module in pkgutil.iter_modules([folder]):
        itself = f"{package.__name__}.{module.name}"
        said = f"{module.name}.py in {folder} hides `{module.name}` of the package: rename the file"
        assert defined.get(module.name, itself) == itself, said


def names_at_the_top(path: Path) -> dict[str, str]:
    """What the top level of a module imports or defines → the module that is imported, or "" for anything else."""
    names: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Import(names=aliases):
                names |= {each.asname or each.name.partition(".")[0]: each.name for each in aliases}
            case ast.ImportFrom(module=module, names=aliases):
                names |= {each.asname or each.name: f"{module}.{each.name}" for each in aliases}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names[name] = ""
            case ast.Assign(targets=targets):
                names |= dict.fromkeys((each.id for each in targets if isinstance(each, ast.Name)), "")
            case ast.AnnAssign(target=ast.Name(id=name)):
                names[name] = ""
    return names


def test_two_questions_of_one_name_are_refused(paths):
    @of_run("kernels", "Mine")  # an analysis has that name
    def mine(_):
        return Contents((blocks.Sentences(("Here.",)),))

    try:
        with pytest.raises(ValueError, match=r"two questions are called 'kernels', '.+' and '.+': rename one"):
            _ = report(open_subject(paths)).sections
    finally:
        forget_producer("kernels")


@pytest.fixture
def with_example_package(tmp_path_factory, monkeypatch):
    """Installed for this test only."""
    folder, source = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(Path(__file__).parent / "example_package", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(source)], check=True)
    monkeypatch.syspath_prepend(str(folder))
    forget_plug_ins()
    yield
    forget_plug_ins()
    forget_producer("apes")
    forget_rule("idle_apes")
    forget_face("shout")
    for name in [name for name in sys.modules if name.startswith("tracekit_apes")]:
        del sys.modules[name]


def forget_plug_ins() -> None:
    registry.entry_points_of_packages.cache_clear()
    registry.plug_ins.cache_clear()
    registry.import_plug_ins.cache_clear()


@pytest.mark.usefixtures("with_example_package")
def test_an_installed_package_adds_to_every_face(paths, tmp_path, capsys):
    for name, said in in_every_face(paths, tmp_path, capsys):
        assert name == "parquet" or "There are 2 apes." in said, name
        assert "apes are idle" in said, name
    assert {"shout", "text"} <= set(faces.names())
    assert main(["report", *map(str, paths), "--format", "shout"]) == 0
    assert "\nAPES\n" in capsys.readouterr().out


@pytest.mark.usefixtures("with_example_package")
def test_a_package_that_cannot_be_imported_is_named(paths, capsys, caplog):
    assert main(["report", *map(str, paths), "--format", "broken"]) == 1
    said = "tracekit_apes.broken of the package tracekit-apes cannot be imported (RuntimeError: no bananas): update it"
    assert said in capsys.readouterr().err
    registry.import_plug_ins("tracekit.faces")
    assert said in caplog.text


def test_a_file_in_which_no_format_of_its_name_is_registered(monkeypatch):
    monkeypatch.setitem(sys.modules, "tracekit.faces.misnamed", sys)
    with pytest.raises(ValueError, match=r"misnamed.py registers no format 'misnamed'"):
        faces.find("misnamed")


def test_a_screen_shows_them_too(paths):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    from tracekit.faces import text

    text.show(report(open_subject(paths)), console, Options())
    assert "Cannot be answered from what was recorded: what if, graph breaks, fallbacks." in console.export_text()


def test_the_guides_examples_run(paths, tmp_path, capsys):
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    examples = re.findall(r"## To add .*?```python\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        exec(compile(example, "CONTRIBUTING.md", "exec"), {"__name__": "example"})
    (test,) = re.findall(r"(from small import .*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(test, "CONTRIBUTING.md", "exec"), names)
    try:
        for name, run in [*names.items()]:
            if name.startswith("test_"):
                run(tmp_path)
        for name, said in in_every_face(paths, tmp_path, capsys):
            assert name == "parquet" or "Idle" in said, name
            assert "idle_ns" in said or "idle" in said, name
            assert name == "parquet" or "grew most" in said, name
            assert "Kernels take their time" in said, name
            assert name == "parquet" or "Only 4 steps were recorded." in said, name
        assert main(["report", *map(str, paths), "--format", "titles"]) == 0
        assert "Worst bucket" in capsys.readouterr().out.splitlines()
    finally:
        forget_analysis("idle")
        forget_producer("worst")
        forget_rule("busy_gpu")
        forget_face("titles")
        LAWS.pop("few_steps", None)
