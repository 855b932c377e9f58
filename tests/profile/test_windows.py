"""A folder with several windows of one process is one run, and not a comparison of two."""

from small import training

from tracekit.profile import open_subject
from tracekit.report import report


def test_the_last_window_of_a_process_stands_for_the_others(tmp_path):
    for name in ("node_71.1795680154722543791", "node_71.1795680154728970232", "node_72.1795680154722543791"):
        training(tmp_path / f"{name}.pt.trace.json", steps=3)
    subject = open_subject([tmp_path])
    assert [profile.name for profile in subject.profiles] == ["node_71.1795680154728970232", "node_72.17956801547225"
        "43791"]  # fmt: skip
    first, second = subject.profiles
    assert "2 windows of this process, which are one run: this is the last" in first.health[-1].message
    assert not any(breach.id == "windows" for breach in second.health)
    assert any("Give the files to compare windows." in note.text for note in report(subject).notes)


def test_windows_that_are_named_are_compared(tmp_path):
    paths = [tmp_path / f"node_71.179568015472254379{digit}.pt.trace.json" for digit in "12"]
    for path in paths:
        training(path, steps=3)
    assert len(open_subject(paths).profiles) == 2
    assert len(open_subject([tmp_path]).profiles) == 1
    assert not report(open_subject([tmp_path])).comparisons


def test_other_names_of_one_folder_are_other_runs(tmp_path):
    for name in ("eager.json", "compiled.json", "run_1.json", "run_2.json"):
        training(tmp_path / name, steps=3)
    assert len(open_subject([tmp_path]).profiles) == 4
