"""The page fetches nothing, runs nothing, and shows names literally."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from small import training

from tracekit.base.units import duration, thousandths
from tracekit.faces.html import render
from tracekit.faces.shared.html_figures import table
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Table
from tracekit.report.sections.breakdowns import of_view
from tracekit.report.sections.headline import at_a_glance


class Page(HTMLParser):
    """The tags with their attributes, the text, and whether every open tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.wrapped = ""  # where a browser ends lines
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if not {"svg", "pre", "script", "style", "title"} & {*self.open}:
            self.wrapped += data


@pytest.fixture
def page(tmp_path):
    slow, fast = training(tmp_path / "slow.json", steps=6, python=40), training(tmp_path / "fast.json", steps=5)
    return report(open_subject([slow, fast]))


def test_it_is_whole_and_fetches_nothing(page):
    text = render(page)
    read = Page(text)
    assert read.open == []
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert not {"link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in read.tags}
    for _, attributes in read.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "action")}
        assert (attributes.get("href") or "#").startswith("#")
    assert "http" not in re.sub(r'http-equiv="', "", text)


def test_each_finding_is_explained_below_it(page):
    text = render(page)
    told = re.findall(r'<div class="explained">(.*?)</div>', text, re.DOTALL)
    assert len(told) == text.count("<summary>What this finding means</summary>") > 0
    for explained in told:
        headings = re.findall("<h4>(.*?)</h4>", explained)
        assert headings == ["What it says", "Why that is slow", "What it costs", "When it is wrong", "What to change"]
        assert "<code>" in explained
        assert "`" not in explained


def test_its_policy_lets_nothing_in_but_its_own_style_and_script(page):
    text = render(page)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    (policy,) = (of["content"] for tag, of in Page(text).tags if of.get("http-equiv") == "Content-Security-Policy")
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    ours, theirs = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (style, script))
    allowed = f"style-src 'sha256-{ours}'; script-src 'sha256-{theirs}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_the_reports_numbers_stand_in_it(page):
    read = Page(render(page))
    numbers = of_view(page, "wall")
    for key in numbers.keys:
        for value in (*numbers.cells[key].values(), *numbers.deltas[key].values()):
            assert not value or thousandths(value) in read.text
    widths = [float(of["width"]) for tag, of in read.tags if tag == "rect" and "x" in of and "class" not in of]
    longest = max(numbers.cells[""].values())
    shown = [numbers.cells[part.key][name] for name in numbers.variants for part in numbers.parts]
    wanted = [value / longest * 1000 for value in shown if value]
    assert widths[: len(wanted)] == pytest.approx(wanted, abs=0.01)


def test_the_first_screen_says_how_long_how_much_faster_and_what_next(page):
    first = Page(render(page).partition('id="findings"')[0].replace("\N{NO-BREAK SPACE}", " ")).text
    for pace in at_a_glance(page, ()).paces:
        assert duration(pace.step_ns) in first
    assert re.search(r"[\d.]+ → [\d.]+ µs a step fast is [\d.]+ × faster than slow \(one trace each\)", first)
    assert "Next, in fast" in first


def test_no_line_ends_between_a_number_and_its_unit(page):
    wrapped = Page(render(page)).wrapped
    assert re.findall(r".{20}\d (?:ms|µs|ns|%|×)", wrapped) == []
    assert wrapped.count("\N{NO-BREAK SPACE}µs") > 20


def test_contents_say_how_many_rows_there_are(page):
    contents = re.search(r"<nav.*?</nav>", render(page), re.DOTALL)[0]
    (kernels,) = (each for each in page.sections if each.id == "kernels" and each.variant == "fast")
    rows = kernels.blocks[-1].rows.num_rows
    assert f'<a href="#kernels">{kernels.title} <small>{2 * rows}</small></a>' in contents


def test_places_come_before_figures():
    rows = pa.table({"name": ["k"], "share": [0.5], "where": ["model.py:3"], "count": [2]})
    schema = pa.schema(
        [field.with_metadata({"role": "place"} if field.name == "where" else {}) for field in rows.schema]
    )
    page = Page("".join(table(Table("kernels", rows.cast(schema)), None, full=True)))
    assert page.text.index("where") < page.text.index("share") < page.text.index("count")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_a_browser_runs_its_script_and_nothing_else(page, tmp_path):
    (tmp_path / "page.html").write_text(
        render(page).replace("<h2>", "<script>document.title = 'obeyed'</script><h2>", 1)
    )
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", str(tmp_path / "page.html")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert 'tabindex="0"' in shown
    assert "<title>obeyed" not in shown


# Clicks the middle of the first event of the first stream, then zooms in there, four times; then clicks the first gap.
CLICKS = """
const errors = [], told = [], canvas = document.querySelector("canvas"), detail = document.querySelector(".detail");
addEventListener("error", event => errors.push(event.message));
const {lanes} = JSON.parse(document.querySelector("svg.timeline").dataset.events);
const span = Number(document.querySelector("svg.timeline").dataset.ns);
let from = 0, shown = span;
const click = (lane, kind) => {
  const box = canvas.getBoundingClientRect(), at = (lane.start[0] + lane.dur[0] / 2 - from) / shown;
  for (const name of kind)
    canvas.dispatchEvent(new MouseEvent(name, {
      bubbles: true, clientX: box.left + at * box.width, clientY: box.top + (lane.y + lane.high / 2) * box.width / 870,
    }));
  told.push(detail.textContent);
};
const stream = lanes.find(lane => lane.family === "gpu");
for (let level = 0; level < 4; level++) {
  click(stream, ["pointerdown", "pointerup", "click"]);
  const at = stream.start[0] + stream.dur[0] / 2;
  canvas.dispatchEvent(new MouseEvent("dblclick", {clientX: canvas.getBoundingClientRect().left
    + (at - from) / shown * canvas.getBoundingClientRect().width}));
  from = Math.min(Math.max(at - (at - from) / 2, 0), span - shown / 2);
  shown /= 2;
}
[...document.querySelectorAll(".zoom button")].at(-1).click();
[from, shown] = [0, span];
click(lanes.find(lane => lane.family === "idle"), ["pointerdown", "pointerup", "click"]);
document.body.dataset.told = JSON.stringify({told, errors, painted: canvas.getContext("2d").getImageData(
  0, 0, canvas.width, canvas.height).data.some(value => value)});
"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_a_click_on_the_timeline_names_the_event_at_every_zoom(page, tmp_path):
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render(page))
    (tmp_path / "page.html").write_text(text.replace("</body>", f"<script>{CLICKS}</script></body>"))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", str(tmp_path / "page.html")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    (body,) = (of for tag, of in Page(shown).tags if tag == "body")
    found = json.loads(body["data-told"])
    assert found["errors"] == []
    assert found["painted"]
    *kernels, gap = found["told"]
    assert len(kernels) == 4
    assert {*kernels} == {kernels[0]}
    assert re.match(r"\w+ \(GPU compute\): [\d.]+ µs, at \+[\d.]+ µs, stream 7, slow, step \d", kernels[0])
    assert re.match(r"GPU idle: [\d.]+ µs, at \+\d+ ns, slow, step \d+; longest cause: ", gap)
