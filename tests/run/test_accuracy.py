"""What training with several seeds allows one to conclude, and nothing more."""

import pytest
from scipy import stats

from tracekit.run import Training
from tracekit.run.accuracy import accuracy_contrast, in_words, lower_is_better, reached


def trained(*values, metric="test accuracy", epochs=10):
    return [
        Training(seed=seed, epochs=epochs, metrics={metric: value}, epoch_all_ns=[10] * epochs)
        for seed, value in enumerate(values)
    ]


EAGER = trained(0.80, 0.82, 0.81, 0.79, 0.81)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([0.801, 0.819, 0.811, 0.789, 0.810], "no loss"),
        ([0.80, 0.82, 0.81, 0.79, 0.81], "no loss"),
        ([0.85, 0.87, 0.85, 0.84, 0.87], "better"),
        ([0.70, 0.72, 0.70, 0.69, 0.72], "worse"),
        ([0.90, 0.72, 0.85, 0.70, 0.88], "unknown"),  # as good on average, but not certainly
    ],
)
def test_only_what_the_interval_allows_is_said(ours, verdict):
    assert accuracy_contrast(trained(*ours), EAGER).verdict == verdict


def test_the_interval_contains_95_percent_as_the_sentence_says():
    ours = (0.801, 0.825, 0.808, 0.789, 0.813)
    differences = [mine - each.metrics["test accuracy"] for mine, each in zip(ours, EAGER, strict=True)]
    known = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert accuracy_contrast(trained(*ours), EAGER).interval == pytest.approx((known.low, known.high))


def test_a_loss_that_is_small_is_none_and_one_that_may_be_large_is_not_denied():
    just_below = [each.metrics["test accuracy"] * 0.998 for each in EAGER]
    assert accuracy_contrast(trained(*just_below), EAGER).verdict == "no loss"
    assert accuracy_contrast(trained(0.79, 0.83, 0.80, 0.78, 0.82), EAGER).verdict == "unknown"


def test_seeds_are_paired():
    ours = [Training(seed=9, epochs=10, metrics={"test accuracy": 0.1}), *trained(0.80, 0.82)]
    contrast = accuracy_contrast(ours, EAGER)
    assert (contrast.seeds, contrast.difference) == (2, 0.0)
    assert accuracy_contrast(trained(0.8, 0.8, epochs=5), EAGER) is None
    assert accuracy_contrast(trained(0.8, 0.8, metric="test F1"), EAGER) is None


def test_of_an_error_less_is_better():
    assert lower_is_better("test mean absolute error")
    assert lower_is_better("val_loss")
    assert lower_is_better("RMSE")
    assert not lower_is_better("test accuracy")
    assert not lower_is_better("test AUROC")
    base, ours = (trained(*values, metric="test error") for values in ([2.0, 2.1, 1.9], [1.5, 1.6, 1.4]))
    assert accuracy_contrast(ours, base).verdict == "better"
    assert accuracy_contrast(base, ours).verdict == "worse"


def test_what_did_not_come_to_its_end_does_not_count():
    failed = Training(seed=0, epochs=10, outcome="oom", error="no memory", metrics={})
    assert reached([failed]) is None
    assert reached([failed, *trained(0.8)]).values == {0: 0.8}


def test_sentences():
    assert in_words(accuracy_contrast(trained(0.80, 0.82, 0.81, 0.79, 0.81), EAGER), "compiled", "eager") == (
        "no loss of test accuracy: compiled 0.806, eager 0.806; difference +0 … +0, 95 %, 5 seeds"
    )
    assert in_words(accuracy_contrast(trained(0.8), EAGER), "compiled", "eager") == (
        "whether compiled trains as well as eager cannot be concluded from one seed "
        "(test accuracy: compiled 0.8, eager 0.8); --seeds 5 trains with five"
    )
    assert "cannot be concluded from 5 seeds" in in_words(
        accuracy_contrast(trained(0.9, 0.72, 0.85, 0.7, 0.88), EAGER), "compiled", "eager"
    )
