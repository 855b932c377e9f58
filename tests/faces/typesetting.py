"""Papers that include a report as LaTeX, compiled as their authors would."""

import re
import shutil
import subprocess

import pytest

with_pdflatex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
PAPER = r"""\documentclass{article}
\usepackage{array,booktabs,longtable,xcolor}
\begin{document}
%s
\end{document}
"""
TOLERATED = 2.0  # points beyond the margin, too few to see


def typeset(folder, *files):
    """Compile a paper with these files, twice for the widths of long tables. Returns what TeX printed."""
    (folder / "paper.tex").write_text(PAPER % "\n".join(rf"\input{{{file}}}" for file in files))
    for _ in range(2):
        done = subprocess.run(
            ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"],
            cwd=folder,
            check=False,
            capture_output=True,
        )
        said = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, "\n".join(said.splitlines()[-30:])
    return said


def faults(said):
    """Everything that does not fit on its page, and every missing character."""
    wide = [line for line in said.splitlines() if (found := re.match(r"Overfull \\hbox \((.*?)pt", line))
            and float(found[1]) > TOLERATED]  # fmt: skip
    return wide + re.findall(r".*(?:Float too large|Missing character|too wide for).*", said)
