"""A calibrated profile tells costs in another way; what was recorded is the same, and read once."""

from small import kernel, launch, step, write

from tracekit.profile import open_subject
from tracekit.profile.calibration import Calibration


def test_a_calibrated_profile_shares_what_was_recorded(tmp_path):
    path = write(tmp_path / "t.json", step(0, 0, 100), launch(10, 20, 1), kernel("gemm", 30, 80, 1))
    (profile,) = open_subject([path]).profiles
    calibration = Calibration(0.1)
    calibrated = profile.calibrated_by(calibration)
    assert (calibrated.calibration, profile.calibration) == (calibration, None)
    assert calibrated.ownership is profile.ownership
    assert calibrated.counted_activities is profile.counted_activities
    assert profile.calibrated_by(None) is profile
