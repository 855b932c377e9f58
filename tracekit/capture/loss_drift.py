"""How much do the losses of a script vary from run to run? Measured by another run, in which sums round differently."""

import math
from collections.abc import Callable

from msgspec.structs import replace

from tracekit.capture.job import PassResult
from tracekit.run import divergence

# A relative difference of the first loss, before training has amplified anything, that rounding cannot explain.
_OTHER_TRAINING = 1e-2


def with_drift(checked: PassResult, again: Callable[[], PassResult]) -> PassResult:
    """The losses of an eager variant, with how far rounding moves them; none if no two runs of the script are alike.

    `again` runs it once more with different rounding.
    """
    if checked.outcome != "ok" or not checked.losses:
        return checked
    rerun = again()
    if rerun.outcome != "ok":
        return _noted(checked, f"how far rounding alone moves its losses is unknown: {rerun.error}")
    apart = divergence(checked.losses[:1], rerun.losses[:1])
    if apart is None or apart > _OTHER_TRAINING:
        remark = (
            "losses were not compared: the script draws random numbers that no seed fixes, so no two runs are alike"
        )
        return replace(_noted(checked, remark), losses=[])
    moved = divergence(checked.losses, rerun.losses)
    return replace(checked, loss_drift=moved if moved is not None and math.isfinite(moved) else None)


def _noted(checked: PassResult, remark: str) -> PassResult:
    effective = checked.effective
    return replace(checked, effective=replace(effective, remarks=[*effective.remarks, remark]))
