"""Asking Inductor for the user's lines behind each compiled kernel."""

import os


def keep_kernel_lines() -> None:
    """Have Inductor keep the stacks (torch 2.9 and later) and name its CPU kernels in traces. Torch reads it once.

    Not where steps are timed: named kernels are other code.
    """
    os.environ.setdefault("INDUCTOR_PROVENANCE", "2")
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
