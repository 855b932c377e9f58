"""Names on the command line, read into parameters and compile options."""

import re

import pytest

from tracekit.capture.options import parse_all, plan_variants, split_names
from tracekit.capture.passes import slug
from tracekit.errors.asking import UnknownVariantError
from tracekit.errors.capturing import BadParameterError, UnknownParameterError
from tracekit.run import Requested

PARAMS = {"hidden": 64, "lr": 0.01, "norm": False, "root": "data", "fanout": [10, 5], "clip": None}


def requested(name, declared=None):
    (made,) = plan_variants([name], PARAMS, declared or {}, "inductor")
    return made.requested


def test_without_names_it_is_eager_compiled_and_the_recipes_own():
    made = plan_variants([], PARAMS, {"after": {"norm": True}}, "inductor")
    assert [(each.name, each.requested.compile, each.params) for each in made] == [
        ("eager", False, {}),
        ("compiled", True, {}),
        ("after", True, {"norm": True}),
    ]


def test_a_mode_is_a_variant():
    assert requested("max-autotune") == Requested(compile=True, mode="max-autotune", backend="inductor")
    assert requested("compiled") == Requested(compile=True, backend="inductor")
    assert requested("eager") == Requested(compile=False)


def test_settings_follow_a_colon():
    (made,) = plan_variants(["compiled:dynamic=true,hidden=8,fullgraph=yes"], PARAMS, {}, "inductor")
    assert made.requested == Requested(compile=True, dynamic=True, fullgraph=True, backend="inductor")
    assert made.params == {"hidden": 8}
    assert requested("compiled:dynamic=auto").dynamic is None
    assert requested("reduce-overhead:backend=aot_eager").backend == "aot_eager"
    assert requested("compiled:mode=default").mode == "default"


def test_the_recipes_variants_set_parameters_and_compile_options():
    declared = {"before": {"compile": False, "lr": 0.1}, "after": {"dynamic": True, "options": {"max_autotune": True}}}
    assert requested("before", declared) == Requested(compile=False)
    after = requested("after", declared)
    assert (after.dynamic, after.options) == (True, {"max_autotune": True})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("eager,compiled", ["eager", "compiled"]),
        ("compiled:dynamic=true,hidden=8,eager", ["compiled:dynamic=true,hidden=8", "eager"]),
        ("a:x=1,b:y=2", ["a:x=1", "b:y=2"]),
        (" eager , ,compiled", ["eager", "compiled"]),
        ("", []),
    ],
)
def test_commas_separate_variants_and_settings(text, names):
    assert split_names(text) == names


def test_a_variant_that_is_given_again_is_the_same_code_under_another_name():
    first, second, third = plan_variants(["eager", "eager", "eager"], PARAMS, {}, "inductor")
    assert [each.name for each in (first, second, third)] == ["eager", "eager again", "eager again 2"]
    assert first.requested == second.requested == third.requested


@pytest.mark.parametrize(
    ("name", "declared", "error", "said"),
    [
        ("fast", {}, UnknownVariantError, "eager, compiled, default"),
        ("compiled:width=1", {}, UnknownParameterError, "hidden, lr"),
        ("compiled:dynamic=perhaps", {}, BadParameterError, "dynamic cannot be perhaps: it must be true or false"),
        ("compiled:mode=fast", {}, BadParameterError, "reduce-overhead"),
        ("compiled:dynamic", {}, BadParameterError, "dynamic must be a setting of the form NAME=VALUE.$"),
        ("after", {"after": {"width": 1}}, UnknownParameterError, "width"),
    ],
)
def test_what_is_unknown_is_named_with_what_there_is(name, declared, error, said):
    with pytest.raises(error, match=said):
        plan_variants([name], PARAMS, declared, "inductor")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hidden", "128", 128),
        ("lr", "1e-3", 0.001),
        ("lr", "1", 1.0),
        ("norm", "true", True),
        ("norm", "0", False),
        ("root", "12", "12"),
        ("fanout", "[15]", [15]),
        ("clip", "0.5", 0.5),
        ("clip", "none", None),
        ("clip", "auto", "auto"),
        ("hidden", 3, 3),
    ],
)
def test_a_value_takes_the_type_of_its_default(name, text, value):
    assert parse_all({name: text}, PARAMS) == {name: value}


@pytest.mark.parametrize(("name", "text"), [("hidden", "1.5"), ("lr", "fast"), ("norm", "maybe"), ("fanout", "10,5")])
def test_a_value_that_does_not_fit_is_refused(name, text):
    with pytest.raises(BadParameterError, match=f"{name} cannot be {re.escape(text)}: it must be "):
        parse_all({name: text}, PARAMS)


def test_folders_of_variants_differ():
    names = ["compiled:a=1", "compiled:a:1", "eager", "../up"]
    slugs = [slug(name, names) for name in names]
    assert len(set(slugs)) == 4
    assert slugs[2:] == ["eager", "up"]
