"""Whatever registers itself has a name of its own, in every registry."""

import pytest

from tracekit import analyses, faces, findings
from tracekit.report import section as sections


def first(*_):
    """Registered, and never called."""


def second(*_):
    """Registered, and never called, either."""


REGISTRIES = {
    "analysis": (analyses.analysis("apes"), analyses.unregister),
    "rule": (findings.rule("apes"), findings.unregister),
    "face": (faces.face("apes"), faces.unregister),
    "folder": (faces.folder_face("apes"), faces.unregister),
    "files": (faces.variant_face("apes", ".txt"), faces.unregister),
    "sections": (sections.made_by("apes"), sections.unregister),
    "run": (sections.of_run("apes", "Apes"), sections.unregister),
    "study": (sections.of_study("apes", "Apes"), sections.unregister),
    "variant": (sections.of_variant("apes", "Apes"), sections.unregister),
    "comparison": (sections.of_comparison("apes", "Apes"), sections.unregister),
    "trace": (sections.of_trace("apes", "Apes"), sections.unregister),
}


@pytest.mark.parametrize(("register", "unregister"), REGISTRIES.values(), ids=REGISTRIES)
def test_two_of_one_name_are_refused(register, unregister):
    register(first)
    try:
        register(first)  # as when a notebook's cell is run again
        with pytest.raises(ValueError, match=r"are called 'apes', \S+\.first and \S+\.second: rename one of them"):
            register(second)
    finally:
        unregister("apes")
    register(second)  # the name is free again
    unregister("apes")


def test_a_producer_leaves_nothing_behind():
    def asked():
        return [len(sections.producers(kind)) for kind in ("run", "study")]

    runs, studies = asked()
    sections.of_run("apes", "Apes", studies=True)(first)
    assert asked() == [runs + 1, studies + 1]
    sections.unregister("apes")
    sections.of_study("apes", "Apes")(first)
    assert asked() == [runs, studies + 1]
    sections.unregister("apes")
    sections.of_run("apes", "Apes")(second)
    assert asked() == [runs + 1, studies]
    sections.unregister("apes")
