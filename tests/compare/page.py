"""The page, from a template and the figures of a run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.compare.judged import named
from tests.compare.recordings import RECORDINGS
from tracekit.base.units import duration
from tracekit.engine.buckets import BUCKETS

_TEMPLATE = Path(__file__).parent / "page.md"
_EXACT_NS = 1000  # a tool that counts in whole microseconds cannot be closer
_CAUSES = 3


def written(results: dict[str, Any]) -> str:
    """The whole page."""
    asked = [tool for tool in results["tools"] if "absent" not in tool]
    return _TEMPLATE.read_text(encoding="utf-8").format(
        date=results["date"],
        machine=results["machine"],
        turns=results["turns"],
        tools=_table("tool | version", _tools(results["tools"])),
        recordings=_table("recording | what it is | from", _recordings()),
        accounts=_table(
            "recording | tool | looks at | not looked at | in no part (−) or two (+) | GPU work",
            _accounts(results, asked),
        ),
        account_sentences=_list(_account_sentences(results, asked)),
        causes=_table("recording | tool | idle | has a name | on what", _causes(results, asked)),
        first_table=_table(
            "recording | tool | time | against tracekit | memory | output", _first_tables(results, asked)
        ),
        own=_list(_own(results["own"])),
        speed_sentences=_list(_speed_sentences(results, asked)),
    )


def _table(head: str, rows: Iterator[tuple[str, ...]]) -> str:
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *(f"| {' | '.join(row)} |" for row in rows)])


def _list(sentences: Iterator[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _tools(tools: list[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    for tool in tools:
        if "absent" in tool:
            yield (
                tool["name"],
                f"not asked. {tool['absent']} The script that would ask it follows its documentation, and has not run.",
            )
        else:
            yield tool["name"], f"{tool['package']} {tool['version']}"


def _recordings() -> Iterator[tuple[str, ...]]:
    for each in RECORDINGS:
        repository = each.source.partition(":")[0]
        yield each.id, each.what, f"[{each.source}](https://github.com/{repository}), {each.licence}"


def _answers(results: dict[str, Any], asked: list[dict[str, str]]) -> Iterator[tuple[str, str, dict[str, Any] | str]]:
    """The recording, the tool and how it was asked, and what it answered: figures, or an error message."""
    for recording in results["recordings"]:
        for tool in asked:
            said = recording["answers"][tool["id"]]
            if isinstance(said, str):
                yield recording["id"], tool["name"], said
                continue
            for way in said:
                yield recording["id"], ", ".join(filter(None, (tool["name"], way["settings"]))), way


def _accounts(results: dict[str, Any], asked: list[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    for recording, tool, said in _answers(results, asked):
        if isinstance(said, str):
            yield recording, tool, f"fails: `{_code(said)}`", "", "", ""
            continue
        busy = _off(said["busy_off"]) if said["gpu"] else "no GPU"
        yield recording, tool, duration(said["looked_at"]), _none(said["outside"]), _off(said["sum_off"]), busy


def _account_sentences(results: dict[str, Any], asked: list[dict[str, str]]) -> Iterator[str]:
    """For each way in which a tool was asked: how many recordings add up, and how far it is off at most."""
    ways: dict[str, list[tuple[int, str]]] = {}
    for recording, tool, said in _answers(results, asked):
        if not isinstance(said, str):
            ways.setdefault(tool, []).append((max(abs(said["sum_off"]), abs(said["busy_off"])), recording))
    for tool, offs in ways.items():
        exact = sum(off < _EXACT_NS for off, _ in offs)
        most, where = max(offs)
        worst = "" if exact == len(offs) else f", and off by up to {duration(most)} (`{where}`)"
        yield f"**{tool}**: exact to a microsecond in {exact} of the {len(offs)} recordings that it answers{worst}."


def _causes(results: dict[str, Any], asked: list[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    for recording, tool, said in _answers(results, asked):
        if isinstance(said, str) or not said["idle"]:
            continue
        causes = sorted(said["causes"].items(), key=lambda cause: -cause[1])
        words = [f"{BUCKETS[name].label if name in BUCKETS else name} {duration(took)}" for name, took in causes]
        rest = f", and {len(words) - _CAUSES} more" if len(words) > _CAUSES else ""
        share = f"{100 * named(said['causes']) / said['idle']:.0f} %"
        idle = duration(said["idle"]) if said["gpu"] else f"{duration(said['idle'])} (no GPU: all time)"
        yield recording, tool, idle, share, ", ".join(words[:_CAUSES]) + rest or "nothing"


def _first_tables(results: dict[str, Any], asked: list[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    for recording in results["recordings"]:
        ours = recording["first_table"]["ours"]
        for tool in asked:
            if ran := recording["first_table"].get(tool["id"]):
                times = "" if ran is ours else f"{ran['seconds'] / ours['seconds']:.1f} ×"
                size = f"{ran['output'] / 1000:,.1f} kB"
                yield (
                    recording["id"],
                    tool["name"],
                    f"{ran['seconds']:.2f} s",
                    times,
                    f"{ran['memory'] / 1e6:,.0f} MB",
                    size,
                )


def _speed_sentences(results: dict[str, Any], asked: list[dict[str, str]]) -> Iterator[str]:
    """How each tool's time and memory compare with tracekit's, whichever is ahead."""
    for tool in asked[1:]:
        ratios = {
            each["id"]: (
                each["first_table"][tool["id"]]["seconds"] / each["first_table"]["ours"]["seconds"],
                each["first_table"][tool["id"]]["memory"] / each["first_table"]["ours"]["memory"],
            )
            for each in results["recordings"]
            if tool["id"] in each["first_table"]
        }
        if ratios:
            (least, less), (most, more) = (
                [pick(each[k] for each in ratios.values()) for k in (0, 1)] for pick in (min, max)
            )
            ahead = ", ".join(f"`{name}`" for name, (seconds, _) in ratios.items() if seconds < 1)
            yield (
                f"**{tool['name']}** takes {least:.1f} to {most:.1f} × the time of tracekit, and {less:.1f} to "
                f"{more:.1f} × its memory; it is faster with {ahead or 'none of these recordings'}."
            )


def _own(own: dict[str, Any]) -> Iterator[str]:
    """What was found out about the recording that was made for the purpose."""
    wall, averages, ours = own["recording_ns"], own["averages"], own["ours"]
    yield (
        f"**`key_averages()`** of torch {own['torch']}: its column *Self CPU* sums to {duration(averages['self_ns'])}, "
        f"of {duration(wall)} of steps; *CPU total*, in which an operator counts again in each that contains it, sums "
        f"to {averages['total_ns'] / wall:.1f} times that. Its rows are operators and annotations: time in Python "
        "between them is part of the row of the step."
    )
    yield (
        f"**tracekit**: the buckets of the same steps sum to {duration(ours['looked_at'] + ours['sum_off'])}, which is "
        f"{_off(ours['sum_off'])} off the time that they divide."
    )
    report, theirs = own["first_table"]["ours"], own["first_table"].get("tlparse")
    if theirs is None:
        yield f"**tlparse** was not asked: {own['absent']}" if "absent" in own else "**tlparse** fails."
        return
    yield (
        f"**tlparse** {own['tlparse']} turns the log into {theirs['output'] / 1e6:,.1f} MB of pages in "
        f"{theirs['seconds']:.2f} s; tracekit's report of trace and log takes {report['seconds']:.2f} s, and has "
        f"{report['output'] / 1e3:,.1f} kB. tlparse has each compilation's graphs and generated code, and tracekit has "
        "none of it; tracekit puts what each compilation costs into the step that waited for it."
    )


def _off(ns: int) -> str:
    """A difference; exact ones stand out."""
    return duration(ns, signed=True) if ns else "**0 ns**"


def _none(ns: int) -> str:
    return duration(ns) if ns else "nothing"


def _code(text: str) -> str:
    return text.replace("`", "'").replace("|", "¦")
