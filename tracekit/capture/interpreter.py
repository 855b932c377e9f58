"""Can another Python run a pass? Checked before anything is captured, by starting that Python once."""

import subprocess

from tracekit.errors import NoInterpreterError

_NEEDED = ("torch", "msgspec")
_LEAST = (3, 11)
_QUESTION = f"""
import importlib.util, sys
print("Python %d.%d" % sys.version_info[:2] if sys.version_info < {_LEAST} else "")
print(" and ".join(name for name in {_NEEDED} if importlib.util.find_spec(name) is None))
"""
_PATIENCE_S = 60


def check(python: str) -> None:
    """Raise NoInterpreterError with the reason if this executable cannot run a pass."""
    try:
        answer = subprocess.run(
            [python, "-c", _QUESTION], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except OSError as error:
        raise NoInterpreterError(python, error.strerror or "it does not start") from None
    except subprocess.TimeoutExpired:
        raise NoInterpreterError(python, f"no answer within {_PATIENCE_S} s") from None
    except subprocess.CalledProcessError as error:
        raise NoInterpreterError(python, f"it ended with exit code {error.returncode}") from None
    version, missing = [*answer.stdout.split("\n"), "", ""][:2]
    if version:
        raise NoInterpreterError(python, f"it is {version}, but {'.'.join(map(str, _LEAST))} or later is needed")
    if missing:
        raise NoInterpreterError(python, f"it has no {missing}")
