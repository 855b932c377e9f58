"""Equal findings of several variants are one, with the figures of each."""

from msgspec.structs import replace

from tracekit.findings import Diagnosis, Finding, Verdict, Where, alike

LATE = Finding("sync", "A sync waits", 30.0, do="Remove it.", where=Where("a.py", 3))


def of(*findings: Finding) -> Diagnosis:
    return Diagnosis(Verdict("host", "The host sets the pace.", 0.5), [*findings])


def costs(groups):
    return [[(name, index, finding.cost_ns) for name, (index, finding) in group.by_variant.items()] for group in groups]


def replaced(**changes) -> Finding:
    return replace(LATE, share=1.0, **changes)


def test_equal_findings_are_one_with_the_costliest_first():
    elsewhere = replaced(where=Where("a.py", 4), cost_ns=20.0)
    doubt = replaced(id="doubt", headline="Nothing was recorded", cost_ns=None)
    groups = alike(
        {"eager": of(replaced()), "compiled": of(doubt, replaced(cost_ns=40.0, why="Of this, 1."), elsewhere)}
    )
    assert costs(groups) == [
        [("compiled", 0, None)],
        [("compiled", 1, 40.0), ("eager", 0, 30.0)],
        [("compiled", 2, 20.0)],
    ]
    assert groups[1].finding.why == "Of this, 1."


def test_two_findings_of_one_variant_stay_two():
    groups = alike({"eager": of(replaced(), replaced(cost_ns=10.0))})
    assert costs(groups) == [[("eager", 0, 30.0)], [("eager", 1, 10.0)]]
