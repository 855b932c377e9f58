"""A study of failures is a report: how many cells failed, why, what they have in common, and what would change that."""

import pytest

from tests.faces.formats import READ
from tests.study.planting import sweep_file, write_run
from tracekit.cli import main
from tracekit.errors.capturing import NothingCapturedError
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.study import read_study
from tracekit.study.failures import reasons
from tracekit.sweep import SweepOptions, runner, sweep
from tracekit.tui.study import study_pages

GRID = """
[sweep]
recipes = ["net.py"]
variants = ["eager", "compiled"]
[sweep.params]
hidden = [64, 128, 256]
[sweep.options]
timeout = 60
"""


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """The folder of a study whose cells fail as `how(options)` says: an outcome and an error, or None."""

    def plant(how):
        def capture(options):
            if failure := how(options):
                raise NothingCapturedError(options.program, failure[1], failure[0])
            return write_run(options, 10)

        monkeypatch.setattr(runner, "capture", capture)
        sweep(SweepOptions(file=sweep_file(tmp_path, GRID), out=tmp_path / "study", tell=lambda _: None))
        return tmp_path / "study"

    return plant


def all_fail(options):
    if options.variants[0] == "eager":
        return "oom", f"tried to allocate {options.params['hidden']} MiB\x1b[31m"
    return "error", "ValueError: no"


def sentences(folder):
    sections = {section.id: section for section in report(open_subject([folder])).sections}
    return [*sections["failure_reasons"].blocks[0].lines]


def test_a_study_of_failures_only_is_a_report(failing):
    folder = failing(all_fail)
    assert sentences(folder) == [
        "All 6 cells failed, for 2 reasons.",
        "3 cells (variant=eager) ran out of memory: tried to allocate 64 MiB\\x1b[31m. Make smaller what sets their "
        "size, use a device with more memory, or leave them out with [[sweep.exclude]].",
        "3 cells (variant=compiled) failed: ValueError: no. Run one by itself to see why: "
        "tracekit capture net.py --variants compiled --param hidden=64.",
        f"Then run them again: tracekit sweep sweep.toml -o {folder} --retry failed",
    ]


@pytest.mark.parametrize("name", READ)
def test_every_face_shows_it(failing, capsys, name):
    assert main(["report", str(failing(all_fail)), "--format", name]) == 0
    shown = capsys.readouterr().out
    assert "All 6 cells failed" in shown
    assert "\x1b" not in shown


def test_other_verbs_open_it(failing, tmp_path, capsys):
    folder = str(failing(all_fail))
    for name in ("json", "csv", "xlsx", "parquet"):
        assert main(["report", folder, "--format", name, "-o", str(tmp_path / f"out.{name}")]) == 0
    assert main(["explain", folder]) == 0
    assert "ValueError: no" in capsys.readouterr().out
    assert len(study_pages(read_study(tmp_path / "study").folder).runs) == 6


def test_what_failing_cells_have_in_common_is_named(failing):
    def how(options):
        if options.variants[0] == "compiled" and options.params["hidden"] != "64":
            return "timeout", "it took 60 s"
        return None

    folder = failing(how)
    (reason,) = reasons(read_study(folder))
    assert (len(reason.results), reason.where) == (2, "hidden=128|256 variant=compiled")
    assert reason.change.startswith("Raise timeout in [sweep.options] (it is 60 s)")
    assert sentences(folder)[0] == "2 of 6 cells failed, for 1 reason."


def test_without_failures_nothing_is_said_of_them(failing):
    sections = report(open_subject([failing(lambda _: None)])).sections
    assert "failure_reasons" not in {section.id for section in sections}
