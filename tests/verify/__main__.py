"""`python -m verify [NAME …]` in `tests/`: what plain runs of the scripts compile, for scripts.toml."""

import sys
import tempfile
from pathlib import Path

from . import plain, scripts


def main(wanted: list[str]) -> None:
    for script in scripts.read().values():
        if script.compile == "never" or (wanted and script.name not in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            ran = plain.run(script, Path(folder), compiled=True)
        print(f"{script.name:24}{ran.counts}  {len(ran.printed.losses)} steps, exit code {ran.code}", flush=True)
        if ran.code:
            print(ran.output[-2000:])


if __name__ == "__main__":
    main(sys.argv[1:])
