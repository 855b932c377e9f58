"""Parts of a whole on the page: stacked bars, waterfalls from the baseline, and the table with every figure."""

from collections.abc import Iterator

from tracekit.faces.shared.html_drawings import escape, prose, stacked_bar, waterfall
from tracekit.faces.shared.html_tables import folded, head, number
from tracekit.faces.shared.wording import certainty, change, doubt, label, rests_on, share, taken
from tracekit.names import HEAD, short
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.units import thousandths

_MAX_OPEN = 4  # waterfalls: more are folded


def breakdown(block: Breakdown) -> Iterator[str]:
    """Bars on one scale, followed by figures."""
    yield "<figure>"
    longest = max(*block.cells[TOTAL].values(), 1)
    for name in block.variants:
        total = f"{thousandths(block.cells[TOTAL][name])} {block.unit}"
        bar = stacked_bar(block, name, longest)
        yield f'<div class="bar"><span>{escape(name)}</span>{bar}<span>{prose(total)}</span></div>'
    for name, reason in block.unanswered.items():
        yield f'<p class="quiet">{escape(name)}: cannot be answered: {prose(reason)}</p>'
    yield "</figure>"
    yield from _table(block)
    if block.compared:
        steps = _waterfalls(block)
        is_folded = len(block.compared) > _MAX_OPEN
        yield from folded(f"From the baseline, {len(block.compared)} waterfalls", steps) if is_folded else steps


def _waterfalls(block: Breakdown) -> Iterator[str]:
    yield '<div class="waterfalls">'
    for name in block.compared:
        yield f"<figure>{waterfall(block, name)}"
        yield f"<figcaption>{escape(block.baselines[name])} → {escape(name)}</figcaption></figure>"
    yield "</div>"


def _table(block: Breakdown) -> Iterator[str]:
    yield '<div class="scroll"><table class="parts">'
    called = dict(zip(block.variants, short(block.variants, HEAD), strict=True))
    heads = [(f"bucket ({block.unit})", False, "")]
    for name in block.variants:
        heads += [(called[name], True, name), ("", True, "part of the step")]
    for name in block.compared:
        against = f"{name} against {block.baselines[name]}"
        heads += [
            (f"Δ {called[name]}", True, against),
            (rests_on(block, name), False, "what the difference rests on, and its interval or what speaks against it"),
        ]
    yield head(heads)
    for key in block.keys:
        yield f"<tr{' class=total' if key == TOTAL else ''}>{''.join(_cells(block, key))}</tr>"
    yield "</table></div>"


def _cells(block: Breakdown, key: str) -> Iterator[str]:
    part = block.part(key)
    if part is None:
        yield f"<td>{escape(label(block, key))}</td>"
    else:
        chip = f'<svg width="10" height="10"><rect width="10" height="10" fill="{part.colour}"/></svg>'
        yield f'<td title="{escape(part.meaning)}">{chip}{escape(part.label)}</td>'
    for name in block.variants:
        means = block.means[name]
        exact = sum(means.values()) if key == TOTAL else means[key]
        yield number(taken(block, key, name), exact)
        yield f'<td class="number quiet">{prose(share(block, key, name))}</td>'
    for name in block.compared:
        doubted, difference = doubt(block, key, name), block.differences.get(name)
        exact_delta = None if difference is None else difference.delta_ns if key == TOTAL else difference.parts[key]
        yield number(change(block, key, name), exact_delta, " noise" if doubted else "")
        yield f'<td class="quiet">{escape(certainty(block, key, name))}</td>'
