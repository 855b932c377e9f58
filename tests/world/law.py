"""The law of damage: no report of a damaged recording claims more than the truth allows.

Idle time, cost, saving, share and certainty are at most those of the truth (and a tenth), or are said to be unknown.
The first finding is that of the undamaged recording, or is withheld and the first two lines name the damage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tests.world.truth import FLOOR, NEAR, UNKNOWN, UNNAMED_HOST, Told, Truth, figures_of, steps_of

MORE = 1.1  # times the truth: what may be claimed
_TOUCHED_BY = {  # by the figures that a law says it touches: those that are not stated as known then
    "step": {"steps", "gpu work", "gpu idle"},
    "idle": {"steps", "gpu work", "gpu idle"},
    "busy": {"gpu work"},
    "host": {"steps", "host time"},
}

_WITHHELD = ("too_little_recorded", "empty", "gpu_side_missing", "host_side_missing")  # verdicts that claim nothing
SPREAD = ("cold_start", "recompiles", "compile_in_steps")  # costs of few steps that are spread over all there are


def broken(told: Told, truth: Truth, lost: Collection[str] = (), renamed: Mapping[str, str] | None = None) -> list[str]:
    """What the report of a damaged recording claims beyond the truth, a line each. `lost` are the kinds of finding that
    can be told only as time of the host any more, by inference, because the file looks like one of a recorder that
    never writes what was lost."""
    if not truth.told.variants or (truth.world is None and truth.mean is None):
        return []  # nobody knows what would be true
    # Where a damaged file falls apart into ranks, the truth is about the first one.
    variants = [each for each in told.variants if each["name"] == "rank0"] or told.variants
    return [line for variant in variants for line in _broken(told, variant, truth, lost, renamed or {})]


def _broken(
    told: Told, variant: dict[str, Any], truth: Truth, lost: Collection[str], renamed: Mapping[str, str]
) -> Iterator[str]:
    mean = told.mean(variant["name"])
    annotated = variant["steps_from"] == "annotations"
    numbers, host_numbers, same = variant["mean_over"], variant["host_mean_over"], annotated
    if not annotated:  # as many inferred steps as there are in truth are the same ones, by their order
        mine, true_ones = ([each["step"] for each in steps_of(of)] for of in (variant, truth.variant))
        same = variant["iterations"] is not None and len(mine) == len(true_ones)
        number_of = dict(zip(mine, true_ones, strict=True)) if same else {}
        numbers, host_numbers = ([number_of[each] for each in over if same] for over in (numbers, host_numbers))
    true = truth.of_steps(numbers)
    step_ns = true["step"] if true is not None else truth.span_ns
    scale = 1.0
    if not annotated and variant["iterations"] is None:
        # Figures are about the whole recording, and those of the truth perhaps about a step of it.
        scale = max(truth.span_ns / max(step_ns, 1), 1.0)
        true = truth.whole
    host = truth.of_steps(host_numbers) if same else None
    if host is not None and true is not None:
        true = {**true, "host": max(true["host"], host["host"])}
    if true is not None and mean is not None:
        yield from _stated("a step", mean, true, variant)
    for each in variant["steps"] if annotated else ():
        if each["wall"] is not None and each["step"] in truth.by_step:
            yield from _stated(f"step {each['step']}", figures_of(each), truth.by_step[each["step"]], variant)
    findings = told.findings(variant["name"])
    vague = [truth.allowed(name, numbers) for name in {each["id"] for each in truth.findings} & {*lost}]
    recorded_ns = sum(each["wall_ns"] or 0.0 for each in variant["steps"])
    fewer = max(_known(truth.variant) / max(_known(variant), 1), truth.span_ns / max(recorded_ns, 1), 1.0)
    part = fewer if not annotated and variant["iterations"] is None else 1.0  # of a recording that ends early
    for finding in findings:
        name, allowed = finding["id"], truth.allowed(finding["id"], numbers)
        if name in renamed:
            allowed = tuple(map(max, zip(allowed, truth.allowed(renamed[name], numbers), strict=True)))
        is_guess = finding["confidence"] == "inferred" or finding["where"]["function"] or name != "python_bound"
        # By the contract, what a host does right after a wait counts as the wait, unless it is known to load.
        if (name in UNNAMED_HOST and is_guess) or (name == "sync_stall" and "dataloader_bound" in lost):
            allowed = tuple(map(sum, zip(allowed, *vague, strict=True)))
        more = MORE * (fewer if name in SPREAD else 1.0)
        share, cost = part * more * allowed[0] + FLOOR, scale * (more * allowed[1] + FLOOR * step_ns)
        if (finding["share"] or 0.0) > share:
            yield f"finding {name}: {finding['share']:.1%} of a step, allowed {share:.1%} ({finding['headline']})"
        elif (finding["cost_ns"] or 0.0) > cost:
            yield f"finding {name}: {_ms(finding['cost_ns'])}, allowed {_ms(cost)} ({finding['headline']})"
    yield from _certainty(findings, truth)
    verdict = variant["verdict"]["id"]
    unnamed = sum(share for share, _ in vague)
    yield from _verdict(variant, truth, numbers, unnamed, renamed, fewer if verdict in SPREAD else part)
    yield from _changes(told.gains(variant["name"]), truth, numbers)
    yield from _first(told, variant, findings, truth, lost, renamed, part)


def _known(variant: Mapping[str, Any]) -> int:
    return sum(each["wall"] is not None for each in steps_of(variant))


def _stated(
    what: str, said: Mapping[str, float], true: Mapping[str, float], variant: Mapping[str, Any]
) -> Iterator[str]:
    for name, value in said.items():
        if value > MORE * true[name] + FLOOR * true["step"] and not _is_doubted(name, variant):
            yield f"{what}: {name} {_ms(value)}, truth {_ms(true[name])}"


def _is_doubted(figure: str, variant: Mapping[str, Any]) -> bool:
    return any(_TOUCHED_BY[figure] & {*entry.get("touches", _TOUCHED_BY[figure])} for entry in grave(variant))


def grave(variant: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in variant["health"] if entry.get("severity", "note") != "note"]


def _certainty(findings: Iterable[Mapping[str, Any]], truth: Truth) -> Iterator[str]:
    before: dict[str, set[str]] = {}
    for finding in truth.findings:
        before.setdefault(finding["id"], set()).add(finding["confidence"])
    for finding in findings:
        if finding["confidence"] == "measured" and before.get(finding["id"]) == {"inferred"}:
            yield f"finding {finding['id']}: measured, was inferred"


def _verdict(
    variant: Mapping[str, Any],
    truth: Truth,
    numbers: Collection[int],
    vague: float,
    renamed: Mapping[str, str],
    part: float,
) -> Iterator[str]:
    verdict, before = variant["verdict"], truth.variant["verdict"]
    names = verdict["id"], renamed.get(verdict["id"], verdict["id"])
    allowed = part * max(truth.allowed(name, numbers)[0] for name in names)
    if verdict["id"] in UNNAMED_HOST:
        allowed += vague
    if truth.is_alike(before["id"], verdict["id"]) or (vague and verdict["id"] in UNNAMED_HOST):
        allowed = max(allowed, before["share"] or 0.0)
    if verdict["id"] in _WITHHELD:
        return
    if (verdict["share"] or 0.0) > MORE * allowed + FLOOR and not grave(variant):
        yield f"verdict {verdict['id']}: {verdict['share']:.1%}, allowed {allowed:.1%} (was {before['id']})"


def _changes(gains: Mapping[str, float], truth: Truth, numbers: Collection[int]) -> Iterator[str]:
    for change, gain in gains.items():
        allowed = truth.spared(change, numbers)
        if gain > MORE * allowed + FLOOR:
            yield f"what if {change}: {gain:.1%} saved, truth {allowed:.1%}"


def _first(
    told: Told,
    variant: Mapping[str, Any],
    findings: list[dict[str, Any]],
    truth: Truth,
    lost: Collection[str],
    renamed: Mapping[str, str],
    part: float,
) -> Iterator[str]:
    first = findings[0] if findings else None
    if first is None and not truth.findings:
        return
    if first is not None and truth.first(NEAR / part) & {first["id"], renamed.get(first["id"])}:
        return
    if first is not None and truth.findings and truth.findings[0]["id"] in lost and first["id"] in UNNAMED_HOST:
        return
    if first is None or first["cost_ns"] is None or first["id"] == UNKNOWN:
        named = [entry["message"] for entry in grave(variant)] + ([first["headline"]] if first else [])
        if variant["verdict"]["id"] in _WITHHELD:
            named.append(variant["verdict"]["sentence"])
        if any(_begins(sentence) in told.lead for sentence in named):
            return
    was = truth.findings[0]["id"] if truth.findings else "nothing"
    if first is None:
        yield f"first finding: withheld without a word about the damage, was {was}"
    elif (first["share"] or 0.0) > FLOOR or first["cost_ns"] is None:
        yield f"first finding: {first['id']}, was {was} ({first['headline']})"


def _begins(sentence: str) -> str:
    """So much of a sentence as a line about it repeats."""
    return " ".join(sentence.split())[:40].rstrip(".")


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f} ms"
