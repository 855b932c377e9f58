"""Why a step is slow: one rule per file in `rules`, from evidence to cost, culprit and advice.

    @rule("sync_stall")
    def sync_stall(profile: Profile) -> Iterator[Finding]:
        pieces = profile.attribution.pieces  # the time of the steps, cut by bucket and by the host event to blame
        yield Finding("sync_stall", "…", claim=pieces.union(pieces.of("sync_stall")), do="…")

While the GPU works, a piece blames no event: rules about certain kernels ask `kernels` for them.

A rule registers itself when its module is imported, and every module in `rules` is imported. The rule says which time
it blames (`claim`); `ranking` turns that into a cost per step, so that no time is counted twice, and `verdict` says in
one sentence what bounds the step: a finding does, if its id is one of `VERDICTS`.
"""

import pkgutil
from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module

from msgspec.structs import replace

from tracekit.base.registry import Registry, import_plug_ins
from tracekit.findings import rules
from tracekit.findings.diagnosis import Diagnosis, SharedFinding, alike, diagnosis, known_diagnosis
from tracekit.findings.finding import FINDINGS, Evidence, Finding, Where, as_clause, blamed_events, evidence, table
from tracekit.findings.verdict import VERDICTS, Verdict
from tracekit.profile import Profile
from tracekit.trace.storing.scratch import union_put_aside

__all__ = [
    "FINDINGS",
    "VERDICTS",
    "Diagnosis",
    "Evidence",
    "Finding",
    "SharedFinding",
    "Verdict",
    "Where",
    "alike",
    "as_clause",
    "blamed_events",
    "diagnose",
    "evidence",
    "rule",
    "table",
    "unregister",
]

Rule = Callable[[Profile], Iterable[Finding]]
_registered = Registry[Rule]("rules")


def rule(name: str, *, timed: bool = False, device: str | None = None) -> Callable[[Rule], Rule]:
    """Register the function as the rule of that name. With `timed`, it is asked only where the wall time of a step is
    known; with `device`, only about traces of that one.
    """

    def register(look: Rule) -> Rule:
        @wraps(look)
        def asked(profile: Profile) -> Iterable[Finding]:
            is_unfit = (timed and profile.means["wall"] is None) or device not in (None, profile.trace.device)
            return iter(()) if is_unfit else look(profile)

        _registered.register(name, asked, look)
        return asked

    return register


def unregister(name: str) -> None:
    """Forget a rule again."""
    _registered.unregister(name)


def diagnose(profile: Profile) -> Diagnosis:
    """Apply every rule to a variant and rank the findings; from the cache, where it has them."""
    for module in pkgutil.iter_modules(rules.__path__):
        import_module(f"{rules.__name__}.{module.name}")
    import_plug_ins("tracekit.findings")

    def work_out() -> Diagnosis:
        return diagnosis(
            profile,
            [
                finding if finding.claim is None else replace(finding, claim=union_put_aside(finding.claim))
                for look in _registered.values()
                for finding in look(profile)
            ],
        )

    return known_diagnosis(profile, {look.__module__ for look in _registered.values()}, work_out)
