"""What have the variants of a run tried already, and what did it give?

Advice that a capture itself refutes is no advice: to compile is not said again where the compiled variant was no
faster, and of any other remedy it is said what came of it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.names import sanitize
from tracekit.base.pages import Cure
from tracekit.base.units import ratio
from tracekit.findings.compiler_advice import against_failure, is_compiled, obstacles
from tracekit.findings.finding import Finding, as_clause
from tracekit.findings.page import FindingPage, declare
from tracekit.findings.verdict import of_the_gpu
from tracekit.profile import Member, Profile
from tracekit.run import Variant
from tracekit.run.contrast import compared, contrast
from tracekit.run.settings import BACKENDS, DEFAULT

Outcome = Literal["faster", "slower", "alike", "failed"]
declare(
    FindingPage(
        "compile_failed",
        "Compiling fails",
        says="""Another variant of the run was to be compiled, and the compiler raised an error whose cure is known:
            compiled code cannot be differentiated twice, as `autograd.grad(…, create_graph=True)` requires.""",
        slow="Compiling would help only once this is mended, which the advice says first.",
        cost="It has no cost, and is part of the advice of other findings.",
        limits="Only this error is recognised. Others are quoted in the compiler's words.",
        cures=(
            Cure(
                """Take that gradient inside of what is compiled, with `torch.func.grad`, or compile only what it does
                not pass through.""",
                "rounding",
            ),
        ),
        replayed=False,
    )
)
_CLEARLY_SLOWER = 1.05  # times as long: of one pass or trace each, a smaller difference shows nothing
_FAILED = ("error", "crash", "oom")  # how a capture ends that says something of the program
_WITH_GRAPHS = ("reduce-overhead", "max-autotune")  # modes in which Inductor records CUDA graphs
_NOT_SET = (None, "", "fp32", "float32", "off", "no", "none")  # values of a parameter
_REASON = 160  # characters of an error
# Findings that say why compiled code is no faster.
_OF_COMPILING = (
    "recompile_limit",
    "recompiles",
    "graph_breaks",
    "compiled_code_entered",
    "cuda_graphs_skipped",
    "graphs_recorded",
    "graphs_prepared",
    "compile_in_steps",
)
_ALSO_BATCHES, _BATCHES = "; larger batches hide the overhead", "Larger batches hide the overhead."
_SENTENCES = re.compile(r"(?<=[.:]) (?=[A-Z])")


class Remedy(Struct, frozen=True):
    """Something that advice proposes, and how a variant shows that it does so already."""

    name: str  # the beginning of a sentence: "Compiling was"
    advised: re.Pattern[str]
    # How far the settings of a variant go in that; None: parameters say it.
    by_settings: Callable[[Variant], float] | None = None
    keys: tuple[str, ...] = ()  # parameters that set it
    # Of a sentence that also proposes something else: what of it proposes the remedy. None: advice is not taken back.
    cut: re.Pattern[str] | None = None
    per: str = ""  # what step times are to be divided by: a parameter of `keys` says how many of these a step has

    def degree(self, variant: Variant) -> float:
        """How far a variant goes in that; 0 where it does not, or nobody knows."""
        if self.by_settings is not None:
            return self.by_settings(variant)
        settings = [variant.params.get(key) for key in self.keys]
        return max(
            (float(value if isinstance(value, int | float) else value not in _NOT_SET) for value in settings),
            default=0.0,
        )


def _fuses(variant: Variant) -> float:
    if not variant.requested.compile:
        return float("nan")  # neither more nor less than any other
    backend = BACKENDS.get(variant.requested.backend or DEFAULT)
    return float(backend is not None and backend.fuses)


COMPILING = Remedy(
    "Compiling was",
    re.compile(
        r"(?<!\w)torch\.compile(?!\w|\(optimizer)|[Cc]ompile the model|reduce-overhead|CUDA graphs (?:may also|save)|"
        r"compiling fuses"
    ),
    lambda variant: float(variant.requested.compile),
    cut=re.compile(
        r",? or (?:compile the model|fuse them \(torch\.compile\)|switch to torch\.compile|torch\.compile)"
        r"(?:, which fuses[^.:;]*)?|, and compiling fuses[^.:;]*|; fused by torch\.compile[^.:;]*"
    ),
)
REMEDIES = (
    COMPILING,
    Remedy(
        "CUDA graphs were",
        re.compile(r"reduce-overhead|[Ww]ith CUDA graphs"),
        lambda variant: float(
            variant.requested.compile
            and (variant.requested.mode in _WITH_GRAPHS or bool(variant.requested.options.get("triton.cudagraphs")))
        ),
    ),
    Remedy(
        "Dynamic sizes were",
        re.compile(r"dynamic=True|mark_dynamic|mark it dynamic"),
        lambda variant: float(variant.requested.dynamic is True),
    ),
    Remedy(
        "Autotuning was",
        re.compile(r"max-autotune"),
        lambda variant: float((variant.requested.mode or "").startswith("max-autotune")),
    ),
    Remedy(
        "C++ wrappers were",
        re.compile(r"cpp_wrapper"),
        lambda variant: float(bool(variant.requested.options.get("cpp_wrapper"))),
    ),
    Remedy("A backend that fuses was", re.compile(r"compile with one that fuses"), _fuses),
    Remedy(
        "More workers were",
        re.compile(r"num_workers|(?:U|u)se more workers|data loader's workers|in the workers of a data loader"),
        keys=("workers", "num_workers"),
    ),
    Remedy("Larger batches were", re.compile(r"[Ll]arger batches"), keys=("batch", "batch_size"), per="sample"),
    Remedy(
        "A smaller type was",
        re.compile(r"autocast|bfloat16|in fp16|mixed precision"),
        keys=("amp", "precision", "dtype", "bf16", "half"),
    ),
    Remedy("Pinned memory was", re.compile(r"pin_memory"), keys=("pin", "pin_memory", "pinned")),
    Remedy(
        "Loops and norm ahead were",
        re.compile(r"Add the self-loops"),
        keys=("norm_ahead", "loops_ahead", "ahead"),
    ),
)


class Attempt(Struct, frozen=True):
    """A variant that does what advice for another one proposes, and what that gave."""

    remedy: Remedy
    variant: str
    outcome: Outcome
    result: str  # `compiled is 1.26 × slower than eager (1.20–1.33; 6 pairs)`
    held_back_by: Finding | None = None  # what keeps it from being faster, as far as its trace tells

    @property
    def sentence(self) -> str:
        """What was tried, and what it gave."""
        return f"{self.remedy.name} tried here: {self.result}."

    @property
    def mending(self) -> str:
        """What to mend so that it is faster; empty where nobody knows."""
        if self.outcome == "failed":
            return self.held_back_by.do if self.held_back_by is not None else ""
        return f"In {sanitize(self.variant)}, {self.next_do}" if self.next_do else ""

    @property
    def next_do(self) -> str:
        """The same as the one thing to do next in that variant."""
        cause = self.held_back_by
        if cause is None or cause.id not in _OF_COMPILING:
            return as_clause(cause.do) if cause is not None else ""
        return f"first mend this: {as_clause(cause.headline.replace(': ', ', ', 1))}. {cause.do}"


def attempts(
    profile: Profile, others: Iterable[Member], findings_of: Mapping[str, list[Finding]]
) -> tuple[Attempt, ...]:
    """The remedies that the others tried and that did not help, compared with this variant; of several that tried the
    same, the one that did best, among those that differ least in what else they do."""
    members, unhelpful = [other for other in others if other is not profile], []
    for remedy in REMEDIES:
        results = [
            (_other_changes(remedy, other, profile), *result, other)
            for other in members
            if _goes_further(remedy, other, profile) and (result := _result(remedy, other, profile)) is not None
        ]
        if not results:
            continue
        changes, _, outcome, sentence, best = min(results, key=lambda result: (len(result[0]), result[1]))
        if outcome == "faster":
            continue
        *_, quickest = sorted(results, key=lambda result: -result[1])
        if quickest[2] == "faster":
            sentence += f"; with {' and '.join(map(sanitize, quickest[0]))}, {quickest[3]}"
        cause = _cause(best.variant, outcome, findings_of.get(best.name, [])) if remedy is COMPILING else None
        with_changes = f"{sentence} (also with {' and '.join(map(sanitize, changes))})" if changes else sentence
        unhelpful.append(Attempt(remedy, best.name, outcome, with_changes, cause))
    return tuple(unhelpful)


def _goes_further(remedy: Remedy, other: Member, profile: Profile) -> bool:
    if other.variant is None or profile.variant is None:
        return remedy is COMPILING and isinstance(other, Profile) and is_compiled(other) and not is_compiled(profile)
    if remedy is COMPILING and is_compiled(profile):
        return False
    return remedy.degree(_whole(other)) > remedy.degree(_whole(profile))


def _whole(member: Member) -> Variant:
    """The variant with all its parameters, those of its run included."""
    assert member.variant is not None
    return replace(member.variant, params={**(member.run.params if member.run else {}), **member.variant.params})


def _other_changes(remedy: Remedy, other: Member, profile: Profile) -> list[str]:
    """The parameters of the other that differ, besides those of the remedy: `norm_ahead=True`."""
    if other.variant is None or profile.variant is None:
        return []
    ours, theirs = _whole(profile).params, _whole(other).params
    differing = (key for key in dict.fromkeys([*ours, *theirs]) if ours.get(key) != theirs.get(key))
    return [f"{key}={theirs.get(key)}" for key in differing if key not in remedy.keys]


def _result(remedy: Remedy, other: Member, profile: Profile) -> tuple[float, Outcome, str] | None:
    """The ratio of the step times, what it shows, and the words for it; None where nothing is known."""
    name, base_name, variant = sanitize(other.name), sanitize(profile.name), other.variant
    if variant is not None and variant.effective.ran_eagerly and remedy is COMPILING:
        return float("inf"), "failed", f"{name} ran eagerly ({sanitize(variant.effective.ran_eagerly).rstrip('.')})"
    measured = variant.measured if variant is not None else None
    if variant is not None and measured is None and variant.outcome in _FAILED:
        reason = sanitize(variant.error or variant.outcome, _REASON).rstrip(".")
        return float("inf"), "failed", f"{name} failed ({reason})"
    own_measured = profile.variant.measured if profile.variant is not None else None
    per, share = "", 1.0
    if remedy.per and variant is not None:
        per, share = f" per {remedy.per}", remedy.degree(_whole(profile)) / remedy.degree(_whole(other))
    if measured is not None and own_measured is not None:
        product = contrast(measured, own_measured)
        interval = (product.interval[0] * share, product.interval[1] * share) if product.interval is not None else None
        of_both = replace(product, ratio=product.ratio * share, interval=interval)
        if interval is not None:
            outcome: Outcome = "alike" if of_both.noise else "slower" if of_both.ratio > 1 else "faster"
        else:
            outcome = _outcome(of_both.ratio)
        return of_both.ratio, outcome, f"{name} is {compared(of_both, base_name)}{per}"
    means = other.means["wall"], profile.means["wall"]
    if means[0] is None or means[1] is None or not means[1].step_ns:
        return None
    step_ratio = means[0].step_ns / means[1].step_ns * share
    outcome = _outcome(step_ratio)
    pace = f"{ratio(max(step_ratio, 1 / step_ratio))} {'slower' if step_ratio > 1 else 'faster'} than"
    return (
        step_ratio,
        outcome,
        f"{name} is {'as fast as' if outcome == 'alike' else pace} {base_name}{per} (one trace each)",
    )


def _outcome(step_ratio: float) -> Outcome:
    return "slower" if step_ratio > _CLEARLY_SLOWER else "faster" if step_ratio * _CLEARLY_SLOWER < 1 else "alike"


def _cause(variant: Variant | None, outcome: Outcome, findings: list[Finding]) -> Finding | None:
    """What is to be mended so that compiling helps: what the compiler could not do, else the first with advice."""
    if variant is not None and outcome == "failed":
        advice = against_failure(variant.error or "")
        return Finding("compile_failed", "Compiling fails", do=advice) if advice is not None else None
    of_trace = [finding for finding in findings if finding.id in _OF_COMPILING and finding.do]
    of_ledger = obstacles(variant.ledger) if variant is not None else []
    candidates = [finding for finding in findings if finding.do and not of_the_gpu(finding.id)]
    return next(iter([*of_trace, *of_ledger, *candidates]), None)


def considering(text: str, tried: Iterable[Attempt]) -> tuple[str, tuple[Attempt, ...]]:
    """The text without what it advises although that was tried and did not help, and the attempts to tell of."""
    told: list[Attempt] = []
    for attempt in tried:
        remedy = attempt.remedy
        if not remedy.advised.search(text):
            continue
        told.append(attempt)
        if remedy.cut is not None:
            remaining_text = remedy.cut.sub("", text)
            kept = [sentence for sentence in _SENTENCES.split(remaining_text) if not remedy.advised.search(sentence)]
            if kept and kept[0].startswith("This saves"):  # what it was about is gone
                del kept[0]
            text = " ".join(kept or ([_BATCHES] if _ALSO_BATCHES in text else []))
    return text, tuple(told)


def with_results(text: str, tried: Iterable[Attempt]) -> str:
    """The text of anything but a finding, knowing what was tried."""
    remaining_text, told = considering(text, tried)
    return " ".join(filter(None, (remaining_text, *(attempt.sentence for attempt in told))))


def with_what_was_tried(findings: list[Finding], tried: tuple[Attempt, ...]) -> list[Finding]:
    """The findings whose advice knows what was tried. What holds the tried variant back is told once, in the first."""
    mended: set[str] = set()

    def told(used: Iterable[Attempt]) -> list[str]:
        sentences = []
        for attempt in dict.fromkeys(used):
            sentences.append(attempt.sentence)
            if attempt.mending and attempt.variant not in mended:
                sentences.append(attempt.mending)
                mended.add(attempt.variant)
        return sentences

    def knowing(finding: Finding) -> Finding:
        do, used = considering(finding.do, tried)
        first, used_first = considering(finding.do_first, tried)
        parts = [considering(part, tried) for part in finding.also]
        used_in_parts = [attempt for _, attempts_of in parts for attempt in attempts_of if attempt not in used]
        sentences = told((*used, *used_in_parts))
        if do != _BATCHES:
            sentences = [do, *sentences]
        elif not any(_ALSO_BATCHES in sentence for sentence in sentences):  # nothing but a way out: told last
            sentences = [*sentences, do]
        return replace(
            finding,
            do=" ".join(filter(None, sentences)),
            do_first=" ".join(filter(None, (first, *(attempt.sentence for attempt in used_first)))),
            also=tuple(text for text, _ in parts),
        )

    return [knowing(finding) for finding in findings] if tried else findings
