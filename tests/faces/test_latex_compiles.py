"""LaTeX output compiles, and everything fits on the page."""

import re
from pathlib import Path

import pytest
from small import kernel, launch, op, step, write

from tests.faces.typesetting import faults, typeset, with_pdflatex
from tracekit.cli import main
from tracekit.faces.latex import escape, lines_of, points, prose

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "run.json"
LETTERS = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x180)])) + "Δ×µ…–−±·→≥≤∼’日本🙂"


@with_pdflatex
def test_the_sample_run(tmp_path):
    assert main(["report", str(SAMPLE), "--format", "latex", "-o", str(tmp_path / "short.tex")]) == 0
    assert main(["report", str(SAMPLE), "--format", "latex", "--full", "-o", str(tmp_path / "full.tex")]) == 0
    assert faults(typeset(tmp_path, "short.tex", "full.tex")) == []


@pytest.mark.parametrize("how", [[], ["--full"]])
def test_no_two_tables_have_the_same_caption(capsys, how):
    assert main(["report", str(SAMPLE), "--format", "latex", *how]) == 0
    captions = re.findall(r"\\caption\{(.*)\}", capsys.readouterr().out)
    assert len(captions) == len(set(captions)) > 5


@with_pdflatex
def test_every_letter_is_set(tmp_path):
    rows = [rf"{{\sloppy {prose(LETTERS * 2)}\par}}", *(rf"{escape(letter)}\par" for letter in LETTERS)]
    table = [r"\begin{tabular}{l}", *(rf"{escape(letter)}x \tabularnewline" for letter in LETTERS), r"\end{tabular}"]
    (tmp_path / "letters.tex").write_text("\n".join([*rows, *table]))
    assert [line for line in faults(typeset(tmp_path, "letters.tex")) if "Missing" in line] == []


@with_pdflatex
def test_hundreds_of_kernels_go_on_over_pages(tmp_path):
    names = [f"[{k}] very_long_kernel_name_{'x' * (k % 50)}<float, {k}>::operator()_%$#&" for k in range(200)]
    events = [step(0, 0, 5000)]
    for k, name in enumerate(names):
        events += [op(name, 20 * k, 20 * k + 10), launch(20 * k + 1, 20 * k + 5, k + 1)]
        events.append(kernel(name, 20 * k + 6, 20 * k + 18, k + 1))
    trace = write(tmp_path / "many_%.json", *events)
    assert main(["report", str(trace), "--format", "latex", "--full", "-o", str(tmp_path / "many.tex")]) == 0
    content = (tmp_path / "many.tex").read_text()
    assert r"\begin{longtable}" in content
    assert faults(typeset(tmp_path, "many.tex")) == []


def test_words_break_where_they_are_too_long():
    assert prose("short words stay") == "short words stay"
    assert prose("a_word_that_is_far_too_long") == (
        r"a\allowbreak{}\_\allowbreak{}word\allowbreak{}\_\allowbreak{}that\allowbreak{}\_\allowbreak{}is"
        r"\allowbreak{}\_\allowbreak{}far\allowbreak{}\_\allowbreak{}too\allowbreak{}\_\allowbreak{}long"
    )
    assert lines_of("epoch with compiling", 65) == ["epoch with", "compiling"]
    assert "".join(lines_of("max-autotune-no-cudagraphs:dynamic=false", 65)) == (
        "max-autotune-no-cudagraphs:dynamic=false"
    )
    assert all(points(line) <= 65 for line in lines_of("max-autotune-no-cudagraphs:dynamic=false", 65))


@pytest.mark.parametrize("start", ["[2pt]", "*"])
def test_no_row_begins_with_an_option(start):
    assert escape(start)[0] == "{"
