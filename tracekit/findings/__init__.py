"""What bounds a step, and why is it slow: one rule per file in `rules`, from evidence to cost, culprit and advice.

    @rule("sync_stall")
    def sync_stall(profile: Profile) -> Iterator[Finding]:
        pieces = profile.attribution.pieces  # the time of the steps, cut by bucket and by the host event to blame
        yield Finding("sync_stall", "…", claim=pieces.union(pieces.of("sync_stall")), do="…")

While the GPU works, a piece blames no event: rules about certain kernels ask `kernels` for them.

A rule registers itself when its module is imported, and every module in `rules` is imported. The rule says which time
it blames (`claim`); `ranking` turns that into a cost per step, so that no time is counted twice, and `verdict` says in
one sentence what bounds the step: a finding does, if its id is one of `VERDICTS`. Where several variants have the same
finding, `alike` says so.
"""

import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce, wraps
from heapq import merge
from importlib import import_module

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import NO_TIME, Union
from tracekit.base.registry import Registry, import_plug_ins
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings import rules
from tracekit.findings.belief import Withheld, believed
from tracekit.findings.choice import Choice
from tracekit.findings.counted import Steps
from tracekit.findings.finding import FINDINGS, Evidence, Finding, Where, as_clause, blamed_events, evidence, table
from tracekit.findings.page import FindingPage, declare
from tracekit.findings.ranking import order, ranked, worth_telling
from tracekit.findings.saving import savings
from tracekit.findings.tried import Attempt, with_what_was_tried
from tracekit.findings.verdict import (
    HOST_BOUND,
    MIN_KNOWN_SHARE,
    Verdict,
    as_finding,
    mostly_unknown,
    of_the_gpu,
    sliver,
)
from tracekit.findings.verdict import (
    verdict as usual_verdict,
)
from tracekit.findings.verdict_pages import VERDICTS
from tracekit.profile import Profile
from tracekit.profile.cached import name_of
from tracekit.profile.recording_words import has_steps, in_words
from tracekit.trace.storing.cache import recall, remember
from tracekit.trace.storing.scratch import union_put_aside

__all__ = [
    "FINDINGS",
    "VERDICTS",
    "Diagnosis",
    "Evidence",
    "Finding",
    "FindingPage",
    "SharedFinding",
    "Verdict",
    "Where",
    "alike",
    "as_clause",
    "blamed_events",
    "diagnose",
    "evidence",
    "import_rules",
    "rule",
    "table",
    "time_of_rules",
    "unregister",
]

Rule = Callable[[Profile], Iterable[Finding]]
_registered = Registry[Rule]("rules")
_own_times: dict[str, Callable[[Profile], Union]] = {}  # by the name of a rule
_FIGURE = re.compile(r"\d[\d.,]* (?:ns|µs|ms|s)\b")
_CLEAR_EXCESS = 0.05  # of a step: what costs so much more than the GPU's work bounds the step, and not the GPU


def rule(
    name: str,
    *,
    timed: bool = False,
    device: str | None = None,
    own_time: Callable[[Profile], Union] | None = None,
    pages: tuple[FindingPage, ...] = (),
) -> Callable[[Rule], Rule]:
    """Register the function as the rule of that name. With `timed`, it is asked only where the wall time of a step is
    known; with `device`, only about traces of that one. `own_time` tells when what it is about happens: rules about a
    slow host in general leave that time to it. `pages` explain the kinds of finding that it yields.
    """
    for page in pages:
        declare(page)

    def register(look: Rule) -> Rule:
        @wraps(look)
        def asked(profile: Profile) -> Iterable[Finding]:
            is_unfit = (timed and profile.means["wall"] is None) or device not in (None, profile.trace.device)
            return iter(()) if is_unfit else look(profile)

        _registered.register(name, asked, look)
        if own_time is not None:
            _own_times[name] = own_time
        return asked

    return register


def unregister(name: str) -> None:
    """Forget a rule again."""
    _registered.unregister(name)
    _own_times.pop(name, None)


def time_of_rules(profile: Profile, *names: str) -> Union:
    """The time that is these rules' own."""
    import_rules()
    return reduce(Union.plus, (_own_times[name](profile) for name in names), NO_TIME)


def import_rules() -> None:
    """Have every rule of tracekit's own, and every page that a rule declares, registered."""
    for module in pkgutil.iter_modules(rules.__path__):
        import_module(f"{rules.__name__}.{module.name}")


class Diagnosis(Struct, frozen=True):
    """What bounds a variant's step, and all findings in order, small ones included."""

    verdict: Verdict
    all_findings: list[Finding]
    withheld: tuple[Withheld, ...] = ()  # what rests on figures that are not known
    unlisted: int = 0  # findings that are worth a reader's time, but were not chosen

    @property
    def findings(self) -> list[Finding]:
        """The findings that are worth a reader's time."""
        return [*filter(worth_telling, self.all_findings)]

    def knowing(self, tried: tuple[Attempt, ...]) -> "Diagnosis":
        """The same without the advice that other variants have tried in vain, and with what came of it."""
        return replace(self, all_findings=with_what_was_tried(self.all_findings, tried)) if tried else self

    def choosing(self, choice: Choice) -> "Diagnosis":
        """The same with only the findings that are to be listed; costs and verdict stay as they are."""
        listed = [finding for finding in self.all_findings if choice.lists(finding.id)]
        unlisted = len(self.findings) - sum(map(worth_telling, listed))
        return replace(self, all_findings=listed, unlisted=unlisted) if choice.words else self

    @property
    def told(self) -> list[Finding]:
        """What every face lists: these findings or, where nothing is worth changing, the verdict without a cost."""
        if self.findings or self.unlisted:
            return self.findings
        verdict = self.verdict
        return [Finding(verdict.id, verdict.headline, why=verdict.why, where=verdict.where)]


def diagnose(profile: Profile) -> Diagnosis:
    """Apply every rule to a variant and rank the findings; from the cache, until something that a rule reads changes.

    It is stored without claims and work, which are needed only to rank the findings. The name in the cache depends on
    the code of tracekit only, so if a rule comes from outside tracekit, all rules are asked.
    """
    import_rules()
    import_plug_ins("tracekit.findings")
    entry, modules = profile.trace.entry, {look.__module__ for look in _registered.values()}
    if not all(module.startswith("tracekit.") for module in modules):
        entry = None
    name = name_of(profile, "diagnosis", __name__, *sorted(modules)) if entry is not None else ""
    if (stored := recall(entry, name, Diagnosis)) is not None:
        return stored
    result = diagnosis(
        profile,
        [
            finding if finding.claim is None else replace(finding, claim=union_put_aside(finding.claim))
            # In one order, whichever module was imported first: findings of equal cost stay in it.
            for look in sorted(_registered.values(), key=lambda look: look.__module__)
            for finding in look(profile)
        ],
    )
    bare = [replace(finding, claim=None, work=None, undone=None, host=None) for finding in result.all_findings]
    remember(entry, name, replace(result, all_findings=bare))
    return result


def diagnosis(profile: Profile, findings: list[Finding]) -> Diagnosis:
    """The diagnosis that the findings of all rules, in any order, add up to.

    The first finding says what bounds the step. If the GPU sets the pace although no rule says so, or if the id of the
    first finding is not one of `VERDICTS` and it does not contain the finding that says so, a finding that says what
    bounds the step is put before it. All of it is said of steps, or of the recording where it has none.
    """
    believed_findings, withheld = believed(profile, findings)
    listed = ranked(profile, believed_findings)
    if sliver(profile):
        listed = [finding for finding in listed if finding.cost_ns is None]
    elif mostly_unknown(profile):  # what claims most of the step knows more of it than the GPU's side does
        listed = [
            finding for finding in listed if finding.cost_ns is None or (_time(finding) or 0.0) >= MIN_KNOWN_SHARE
        ]
    bounding, listed = _bounded(profile, listed)
    if of_the_gpu(bounding.id):  # and only one thing bounds a step
        listed = [*map(_at_times, listed)]
    return Diagnosis(
        replace(bounding, sentence=in_words(profile, bounding.sentence)),
        [
            replace(
                finding,
                **{name: in_words(profile, getattr(finding, name)) for name in ("headline", "why", "do", "do_first")},
                also=tuple(in_words(profile, part) for part in finding.also),
                of_recording=not has_steps(profile),
            )
            for finding in listed
        ],
        tuple(withheld),
    )


def _bounded(profile: Profile, listed: list[Finding]) -> tuple[Verdict, list[Finding]]:
    """What bounds the step, and the findings, of which the first says it if one does."""
    relevant = [*filter(worth_telling, listed)]
    if not relevant:
        return usual_verdict(profile), listed
    first = relevant[0]
    names_no_bound = first.once or first.id not in VERDICTS
    if first.cost_ns is not None or names_no_bound:
        usual = usual_verdict(profile)
        if usual.share is None and (names_no_bound or not mostly_unknown(profile)):  # nothing is said of a step
            return usual, listed
        leaves_the_gpu = False
        if not names_no_bound and of_the_gpu(usual.id) and first.cost_ns and first.claim is not None:
            # Where the GPU's work, but for what the finding claims, were free, the step would save about as much: the
            # GPU sets the pace nevertheless. Where the host works all the time, too, it saves nothing.
            steps, pieces = Steps.calibrated(profile), profile.attribution.pieces
            work = pieces.union(pieces.of(*ON_THE_GPU)).minus(first.claim)
            saved_ns = savings(profile, steps).of(work).step_ns + _CLEAR_EXCESS * steps.length
            leaves_the_gpu = saved_ns > first.cost_ns and not any(of_the_gpu(finding.id) for finding in listed)
        if names_no_bound and not first.once and usual.id in first.overlaps:  # it tells the cause of what bounds
            return usual, listed
        if names_no_bound or leaves_the_gpu:
            return usual, [as_finding(profile, usual, listed), *listed]
    return Verdict(first.id, first.title, _time(first), first.where), listed


def _at_times(finding: Finding) -> Finding:
    """A finding of a slow host as it is told where the GPU's work bounds the step."""
    if finding.id not in HOST_BOUND:
        return finding
    return replace(finding, headline=finding.headline.replace("-bound: ", "-bound at times: ", 1))


def _time(first: Finding) -> float | None:
    """The share of the step that a finding is about, whether or not all of it would be saved."""
    if first.share is None or not first.cost_ns or first.claimed_ns is None:
        return first.share
    return first.share * first.claimed_ns / first.cost_ns


class SharedFinding(Struct, frozen=True):
    """Equal findings, by variant, the costliest first; each with its index into the list of its variant."""

    by_variant: dict[str, tuple[int, Finding]]

    @property
    def finding(self) -> Finding:
        """The costliest, whose evidence stands for the others'."""
        return next(iter(self.by_variant.values()))[1]


def alike(diagnoses: Mapping[str, Diagnosis]) -> list[SharedFinding]:
    """The findings that are worth telling, equal ones once, in the order of `ranking.order`; those of one variant stay
    in the order of its diagnosis."""
    entries = (
        [(name, index, finding) for index, finding in enumerate(diagnosis.findings)]
        for name, diagnosis in diagnoses.items()
    )
    groups: dict[tuple[object, ...], dict[str, tuple[int, Finding]]] = {}
    for name, index, finding in merge(*entries, key=lambda entry: order(entry[2])):
        advice = _FIGURE.sub("", finding.do)  # what it saves at most is each variant's own
        key = finding.id, finding.headline, advice, finding.where.file, finding.where.line
        by_variant = groups.setdefault(key, {})
        if name in by_variant:  # of one variant, two findings are two
            by_variant = groups[*key, index] = {}
        by_variant[name] = index, finding
    return [
        SharedFinding(dict(sorted(by_variant.items(), key=lambda entry: -(entry[1][1].cost_ns or 0.0))))
        for by_variant in groups.values()
    ]
