"""python -m tests.fuzz.fuzzing TARGET FOLDER SECONDS: one process that fuzzes one target, with atheris.

An input ends in tracekit's own errors, and soon, or it is a crash: it is kept in FOLDER/crashes under a name made of
where it failed, one for each place, and fuzzing goes on. What never ends, too much memory and what the sanitizers of C
find end the process; libFuzzer keeps those inputs itself.
"""

import hashlib
import importlib
import pkgutil
import resource
import sys
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import atheris

import tracekit
from tests.fuzz import sanitized
from tests.fuzz.targets import UNCHANGEABLE

# What nothing here reads, and what needs packages that need not be there.
_UNREAD = (
    *("tracekit.__main__", "tracekit.agent", "tracekit.capture.", "tracekit.hta", "tracekit.integrations"),
    *("tracekit.tui", "tracekit.watching"),
)
PATIENCE_S, MOST_MB = 20, 2048  # seconds of the processor, for one input
_LONGEST_S = 200  # by the clock: what has not ended by then never does, however busy the machine is
_ADDRESSES = 12 << 30  # bytes: Arrow and numpy reserve far more than they use
_MOST_BYTES = 1 << 16  # of an input
_BY_BYTES = 0.2  # of the changes


def main() -> None:
    """Fuzz until the time is over."""
    name, folder, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    is_sanitized = sanitized.load()
    with atheris.instrument_imports(include=["tracekit"], enable_loader_override=False):
        target: Any = importlib.import_module(f"tests.fuzz.targets.{name}")
        if "tracekit.cli" in sys.modules:  # which imports most of tracekit only when it is needed
            for _, module, _ in pkgutil.walk_packages(tracekit.__path__, "tracekit."):
                if not module.startswith(_UNREAD):
                    importlib.import_module(module)
    warnings.simplefilter("ignore")
    corpus, crashes, work = (folder / part for part in ("corpus", "crashes", "work"))
    for each in (corpus, crashes, work):
        each.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:20]).write_bytes(seed)
    words = folder / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.WORDS))
    if not is_sanitized:  # the sanitizer reserves terabytes
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    ended = Ended(folder)

    def take(data: bytes) -> None:
        began = time.process_time()
        try:
            target.take(data, work)
            if (taken := time.process_time() - began) > PATIENCE_S:
                raise TimeoutError(f"it took {taken:.0f} s")
        except Exception as error:
            ended.badly(data, error)

    def change(data: bytes, most_bytes: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() >= _BY_BYTES:
            with suppress(*UNCHANGEABLE):
                if len(result := target.change(data, random)) <= most_bytes:
                    return result
        return atheris.Mutate(data, most_bytes)

    options = [
        f"-max_total_time={seconds}",
        f"-timeout={_LONGEST_S}",
        f"-report_slow_units={_LONGEST_S}",
        f"-rss_limit_mb={MOST_MB}",
        f"-max_len={_MOST_BYTES}",
        f"-dict={words}",
        f"-artifact_prefix={crashes}/",
        "-print_final_stats=1",
        "-reload=0",
        "-len_control=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], take, custom_mutator=change)
    atheris.Fuzz()


class Ended:
    """The crashes so far, one for each place in tracekit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "crashes"
        self._known = {path.name for path in self._folder.iterdir()}

    def badly(self, data: bytes, error: Exception) -> None:
        """Keep an input, unless one that failed at the same place is kept already."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tracekit/" in frame.filename]
        at = f"{Path(frames[-1].filename).stem}-{frames[-1].name}-{frames[-1].lineno}" if frames else "tests"
        name = f"{type(error).__name__}-{at}".replace("<", "").replace(">", "")
        if name in self._known:
            return
        self._known.add(name)
        (self._folder / name).write_bytes(data)
        said = "".join(traceback.format_exception(error))
        (self._folder / f"{name}.txt").write_text(said, errors="backslashreplace")
        print(f"CRASH {name}: {str(error)[:300]!r}", file=sys.__stderr__, flush=True)


def _escaped(word: str) -> str:
    return "".join(
        f"\\x{byte:02x}" if byte < 0x20 or byte >= 0x7F or byte in b'"\\' else chr(byte) for byte in word.encode()
    )


if __name__ == "__main__":
    main()
