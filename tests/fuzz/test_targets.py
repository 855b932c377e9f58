"""Each target runs what it begins with, and some of what becomes of it, without atheris; and crashes are noticed."""

import importlib
import pkgutil
from itertools import islice
from random import Random

import pytest

from tests.fuzz import targets, verbs
from tracekit.cli.report import ReportVerb

NAMES = [module.name for module in pkgutil.iter_modules(targets.__path__)]
SEEDS, CHANGES = 4, 6


@pytest.mark.parametrize("name", NAMES)
def test_all_ends_as_it_should(name, tmp_path):
    target = importlib.import_module(f"tests.fuzz.targets.{name}")
    random, changes = Random(1), 0
    for seed in islice(target.seeds(), SEEDS):
        target.take(seed, tmp_path)
        for _ in range(CHANGES):
            try:
                data = target.change(seed, random)
            except targets.UNCHANGEABLE:
                continue
            target.take(data, tmp_path)
            changes += data != seed
    assert changes > CHANGES


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".text", "a\x1b[31mb"),
        (".text", "\u202eb"),
        (".json", "[NaN]"),
        (".html", "<p onclick=x>"),
        (".html", "<img src=x>"),
        (".html", "<script></script><script></script>"),
        (".html", "<a href='http://x'>"),
        (".csv", 'a,"=1+1"\n'),
        (".csv", "-a\n"),
        (".markdown", "<script>"),
        (".markdown", "[x](javascript:y)"),
        (".latex", "\\input{x}"),
    ],
)
def test_what_takes_effect_is_noticed(tmp_path, suffix, content):
    path = tmp_path / f"report{suffix}"
    path.write_text(content)
    with pytest.raises(verbs.UnsafeOutputError):
        verbs.check(path)


def test_an_exception_that_gets_out_is_noticed(monkeypatch, tmp_path):
    def broken(options):
        raise ZeroDivisionError

    monkeypatch.setattr(ReportVerb, "run", broken)
    with pytest.raises(ZeroDivisionError):
        verbs.run("report", tmp_path / "trace.json")
    monkeypatch.setattr(ReportVerb, "run", lambda options: 1)
    with pytest.raises(verbs.UnsafeOutputError, match="without a sentence"):
        verbs.run("report", tmp_path / "trace.json")
