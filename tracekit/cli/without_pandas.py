"""pyarrow imports pandas at its first array, a third of a report's start-up."""

import sys
from importlib.abc import MetaPathFinder


class _Refusal(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Refuse pandas; leave everything else to those who come after."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


_REFUSAL = _Refusal()


def refuse_pandas() -> None:
    """From here on pandas counts as not installed."""
    if _REFUSAL not in sys.meta_path:
        sys.meta_path.insert(0, _REFUSAL)


def admit_pandas() -> None:
    """A verb that needs pandas may import it again."""
    if _REFUSAL in sys.meta_path:
        sys.meta_path.remove(_REFUSAL)
