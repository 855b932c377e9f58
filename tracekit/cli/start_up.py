"""Skips work that libraries do on import but no report needs, which is two fifths of the start-up time."""

import os
import sys
from contextlib import suppress

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's mallopt
_LONG_ARRAY, _SPARE = 4 << 20, 16 << 20  # bytes


class _NoPandas:
    """Hides pandas, which pyarrow imports at its first array."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Refuse pandas; leave everything else to the other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


_NO_PANDAS = _NoPandas()


def refuse_pandas() -> None:
    """From here on, pandas counts as not installed."""
    if _NO_PANDAS not in sys.meta_path:
        sys.meta_path.insert(0, _NO_PANDAS)


def admit_pandas() -> None:
    """Allow pandas again, for a verb that needs it."""
    if _NO_PANDAS in sys.meta_path:
        sys.meta_path.remove(_NO_PANDAS)


def import_numpy() -> None:
    """Import NumPy without the threads that its OpenBLAS starts for each core, since no matrices are multiplied here.

    Processes that this one starts get the original environment. The memory of a long array is returned to the system as
    soon as it is freed: glibc would keep that of arrays up to 32 MB.
    """
    if "numpy" in sys.modules or _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS]
    if sys.platform == "linux":
        import ctypes  # which NumPy imports anyway

        with suppress(AttributeError):  # where the C library is another one
            library = ctypes.CDLL(None)
            library.mallopt(_MMAP_THRESHOLD, _LONG_ARRAY)
            library.mallopt(_TRIM_THRESHOLD, _SPARE)  # else it would return what short arrays use soon again
