"""Asks Inductor for the user's lines behind each compiled kernel."""

import os


def keep_kernel_lines() -> None:
    """Make Inductor store stacks (torch 2.9 and later) and name its CPU kernels in traces. Torch reads this only once.

    Must not be used where steps are timed, because named kernels are different code.
    """
    os.environ.setdefault("INDUCTOR_PROVENANCE", "2")
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
