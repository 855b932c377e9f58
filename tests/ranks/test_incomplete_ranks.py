"""A rank that is truncated, missing, empty, shorter or duplicated: the others are reported, and every face says so.

Rank 2 is made late, so that a comparison of the remaining ranks must report it, whichever rank is lost.
"""

import json

import pytest
from on_screen import ask, opened, texts

from tests.ranks.jobs import job
from tracekit.cli import main
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.ranks.readers import open_ranks, readers
from tracekit.report import report
from tracekit.tui.model.selection import Selection

LATE = "Rank 2 delays the others: it arrives 400 µs a step later than the first rank, mostly because of data loading"
WITHOUT = "The others are compared without it, and it may be later still."


@pytest.fixture
def ranks(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    return job(folder, late=2)


def cut(path, share, kinetos_order=True):
    """The beginning of a trace; Kineto writes what the host did before what the GPU did."""
    content = json.loads(path.read_text())
    if kinetos_order:
        content["traceEvents"].sort(key=lambda event: event["cat"] == "kernel")
    text = json.dumps(content)
    path.write_text(text[: int(share * len(text))])


def faces(folder, capsys):
    """What each face says about this folder, with all white space as single spaces."""
    out = folder.parent / "out"
    out.mkdir(exist_ok=True)
    said = {}
    for name in ("text", "markdown", "json", "html"):
        assert main(["report", str(folder), "--full", "--format", name, "-o", str(out / f"report.{name}")]) == 0
        said[name] = (out / f"report.{name}").read_text()
    said["markdown"] = said["markdown"].replace("\\", "")  # what it escapes
    said["json"] = json.dumps(json.loads(said["json"]), ensure_ascii=False)
    screen = opened([folder])
    said["tui"] = " ".join(texts(ask(screen, Selection("ranks"))))
    capsys.readouterr()
    return {name: " ".join(text.split()) for name, text in said.items()}


def notes(folder):
    (variant,) = [each for each in as_document(report(open_subject([folder])))["variants"] if each["ranks"]]
    return {each["rank"]: each["note"] for each in variant["ranks"]}


def read_elsewhere(folder):
    """The section on ranks if other processes have read them."""
    with readers(1, None) as those:
        subject = open_ranks([folder], those, open_subject, watch=lambda done, of: None)
    return sentences(report(subject))


def sentences(made):
    return next(section for section in made.sections if section.id == "ranks").blocks[0].lines


@pytest.mark.parametrize("rank", [0, 1])
def test_a_cut_rank_is_said_in_every_face_and_the_others_are_compared(ranks, capsys, rank):
    cut(ranks / f"rank{rank}.json", 0.6)
    why = (
        f"Rank {rank}: its file was cut (the text ends inside the list of events), it answers for 0 of the 3 steps, "
        f"none of its communication was recorded. {WITHOUT}"
    )
    for said in faces(ranks, capsys).values():
        assert LATE in said
        assert said.count(why) == 1
        assert f"4 ranks; all other figures are of rank {0 if rank else 1}." in said
    assert notes(ranks)[rank].startswith("its file was cut (the text ends inside the list of events)")
    assert read_elsewhere(ranks) == sentences(report(open_subject([ranks])))


def test_of_a_cut_rank_in_order_of_time_the_first_steps_are_compared(ranks, capsys):
    cut(ranks / "rank1.json", 0.9, kinetos_order=False)
    for said in faces(ranks, capsys).values():
        assert LATE in said
        assert (
            "Rank 1: its file was cut (the text ends inside the list of events), it answers for 2 of the 3 steps. "
            "Only the collectives that all ranks have are compared."
        ) in said


@pytest.mark.parametrize("content", [b"", b"no trace"])
def test_a_file_that_is_no_trace_is_a_missing_rank(ranks, capsys, content):
    (ranks / "rank1.json").write_bytes(content)
    for name, said in faces(ranks, capsys).items():
        assert LATE in said
        assert "1 of 4 ranks is missing (rank 1): one of those may be later still." in said
        if name != "tui":  # there the notes about the whole report say it
            assert ("the file is empty" if not content else "not a PyTorch profiler trace") in said
    assert notes(ranks)[1] == "there is no trace of it"
    assert read_elsewhere(ranks) == sentences(report(open_subject([ranks])))


def test_a_missing_rank_is_said_in_every_face(ranks, capsys):
    (ranks / "rank0.json").unlink()
    for said in faces(ranks, capsys).values():
        assert LATE in said
        assert "1 of 4 ranks is missing (rank 0): one of those may be later still." in said
        assert "3 ranks; all other figures are of rank 1." in said


@pytest.mark.parametrize(("steps", "both"), [(2, 2), (5, 3)])
def test_a_rank_of_another_length_is_compared_as_far_as_all_go(ranks, capsys, steps, both):
    job(ranks, ranks=1, steps=steps, late=2, world=4)
    short = "Rank 0: it answers for 2 of the 3 steps." if steps < 3 else "Rank 3: it answers for 3 of the 5 steps."
    for said in faces(ranks, capsys).values():
        assert "Rank 2 delays the others" in said
        assert f"last at {both} of {both} collectives" in said
        assert short in said


def test_a_rank_without_the_step_is_left_out(ranks, capsys):
    """The numbers of its steps differ from those of the others, because it was recorded at another time."""
    text = (ranks / "rank3.json").read_text()
    for number in range(3):
        text = text.replace(f"ProfilerStep#{number}", f"ProfilerStep#{number + 7}")
    (ranks / "rank3.json").write_text(text)
    for said in faces(ranks, capsys).values():
        assert LATE in said
        assert f"Rank 3: it answers for 3 of the 6 steps. {WITHOUT}" in said


def test_two_files_of_one_rank_are_two_variants_and_said(ranks, capsys):
    (ranks / "rank01.json").write_bytes((ranks / "rank1.json").read_bytes())
    subject = open_subject([ranks])
    assert [profile.name for profile in subject.profiles] == ["ranks", "rank1"]
    for said in faces(ranks, capsys).values():
        assert LATE in said
        assert "rank1 is labelled as rank 1, too: it is shown as a separate variant." in said
    assert read_elsewhere(ranks) == sentences(report(subject))


def test_a_single_rank_beside_a_cut_one_waits_for_nobody(tmp_path, capsys):
    folder = tmp_path / "pair"
    folder.mkdir()
    job(folder, ranks=2)
    cut(folder / "rank1.json", 0.6)
    for said in faces(folder, capsys).values():
        assert "No collective was recorded on all of them, so it is unknown who waits for whom." in said


def test_what_casts_doubt_on_another_rank_is_said_first(ranks, capsys):
    """Steps of ranks 2 and 3 lack their marks: of rank 0, which is shown, no figure is spoiled."""
    for rank in (2, 3):
        path = ranks / f"rank{rank}.json"
        document = json.loads(path.read_text())
        document["traceEvents"] = [each for each in document["traceEvents"] if each["name"] != "ProfilerStep#1"]
        path.write_text(json.dumps(document))
    doubt = "In doubt: Rank 2 and 1 more rank: Step 0 is followed by step 2"
    said = faces(ranks, capsys) | {"tui": " ".join(texts(ask(opened([ranks]), Selection("overview"))))}
    assert [name for name in said if doubt not in said[name]] == []
    assert main(["report", str(ranks), "--strict"]) == 3
    made = report(open_subject([ranks]))
    assert [breach.id for breach in made.profiles[0].health if breach.is_grave] == ["lost_steps"]
    assert made.diagnoses["ranks"].verdict.id != "unknown"
    assert not made.diagnoses["ranks"].withheld
