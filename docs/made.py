"""Writes what these pages take from the code: SCHEMA.md and the pictures, both of the sample run, the laws of a trace,
and a page for each finding, law and bucket, with the examples on them. `make pages`.
"""

import re
import shutil
from pathlib import Path

from docs import examples
from tracekit import skill
from tracekit.base.pages import KIND_TITLES, Kind, as_markdown
from tracekit.faces.parquet import describe
from tracekit.plots import plot
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.explained import all_pages
from tracekit.report.tables import every_table
from tracekit.trace.facts import SEVERITIES, all_laws

HERE = Path(__file__).parent
PICTURES = ("waterfall", "attribution")
FOLDERS: dict[Kind, str] = {"finding": "findings", "law": "laws", "bucket": "buckets"}  # of pages, by what they explain
INDEX = """# Everything explained

Each finding of a report, each law of a trace and each bucket of time has a page. `tracekit explain-finding ID` prints
it in the terminal, a report as HTML has it below each finding, and `m` shows it in the terminal UI. A finding's page
says what it rests on, when it is wrong, and what each cure changes: nothing but time; memory; rounding, as where sums
are added up in another order; or results. Of several, it names the last of these. `tracekit report --select` and
`--ignore` take the ids of findings.
"""
_EXPLAINED = "`tracekit explain-finding ID` says what each means, when it is wrong, and what to change."
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_LAWS = re.compile(r"(?<=<!-- laws -->\n).*?(?=<!-- /laws -->)", re.DOTALL)


def with_laws(page: str) -> str:
    """The page with a row for each law, the gravest first."""
    rows = ["| law | severity | spoils | when it is broken |", "|---|---|---|---|"]
    for law in sorted(all_laws(), key=lambda law: (SEVERITIES.index(law.severity), law.id)):
        name = f"[`{law.id}`]({FOLDERS['law']}/{law.id}.md)"
        rows.append(f"| {name} | {law.severity} | {', '.join(law.touches) or '–'} | {law.summary} |")
    return _LAWS.sub("\n".join([*rows, ""]), page)


def pages() -> dict[str, str]:
    """The page of each id and the index of them, by the path below this folder."""
    made, index = {}, [INDEX]
    # An id that is a finding and a bucket leads to the finding.
    paths = {page.id: f"../{FOLDERS[page.kind]}/{page.id}.md" for page in reversed(all_pages())}
    for kind, folder in FOLDERS.items():
        index += [f"## {KIND_TITLES[kind]}", "", "| id | |", "|---|---|"]
        for page in (page for page in all_pages() if page.kind == kind):
            made[f"{folder}/{page.id}.md"] = as_markdown(page, paths)
            index.append(f"| [`{page.id}`]({folder}/{page.id}.md) | {page.title} |")
        index.append("")
    return {**made, "explained.md": "\n".join(index)}


def references() -> dict[str, str]:
    """What the skill for agents refers to, by the path in its folder: ids of findings, and what no trace can tell."""
    findings = [f"| `{page.id}` | {page.title} |" for page in all_pages() if page.kind == "finding"]
    listed = "\n".join(["# Findings", "", _EXPLAINED, "", "| id | what it says |", "|---|---|", *findings, ""])
    cannot = _LINK.sub(r"\1", (HERE / "cannot.md").read_text(encoding="utf-8"))
    return {"references/findings.md": listed, "references/cannot.md": cannot}


if __name__ == "__main__":
    for path, text in references().items():
        (skill.HERE / path).write_text(text, encoding="utf-8")
    examples.STORED.write_text(examples.made(), encoding="utf-8")
    for folder in FOLDERS.values():
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir()
    for path, text in pages().items():
        (HERE / path).write_text(text, encoding="utf-8")
    sample = report(open_subject([HERE.parent / "sample_traces" / "run.json"]))
    (HERE / "SCHEMA.md").write_text(describe(every_table(sample)), encoding="utf-8")
    traces = HERE / "traces.md"
    traces.write_text(with_laws(traces.read_text(encoding="utf-8")), encoding="utf-8")
    (HERE / "images").mkdir(exist_ok=True)
    for kind in PICTURES:
        (HERE / "images" / f"{kind}.svg").write_bytes(plot(sample, kind).content("svg"))
