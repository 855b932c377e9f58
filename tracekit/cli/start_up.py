"""Skips work that libraries do on import but no report needs, which is two fifths of the start-up time."""

import os
import sys

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


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

    Processes that this one starts get the original environment.
    """
    if "numpy" in sys.modules or _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS]
