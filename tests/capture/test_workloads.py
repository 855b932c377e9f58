"""What a step of a recipe is: one of training, or of inference."""

from types import SimpleNamespace

import pytest

from tracekit.capture.child.failures import failure
from tracekit.capture.child.recipe import RecipeStep
from tracekit.errors.capturing import NoInferenceError


def recipe(made):
    return SimpleNamespace(__file__="net.py", setup=lambda context: made)


def test_a_step_of_inference_calls_infer_and_takes_no_batch():
    called = []
    made = SimpleNamespace(step=called.append, batches=[1, 2], infer=lambda: called.append("infer"))
    RecipeStep(recipe(made), SimpleNamespace())()
    RecipeStep(recipe(made), SimpleNamespace(), workload="inference")()
    assert called == [1, "infer"]


def test_a_recipe_without_inference_is_left_out_and_says_so():
    with pytest.raises(NoInferenceError, match="no infer") as caught:
        RecipeStep(recipe(lambda: None), SimpleNamespace(), workload="inference")
    assert failure(caught.value).outcome == "skipped"
