"""tracekit and other tools on the same six public recordings, each tool in an environment of its own.

    python -m tests.compare [--traces FOLDER] [--environments FOLDER] [--turns N] [--page]

It writes docs/compare.json, and from that docs/compare.md; `--page` writes the page alone.
"""

import argparse
import datetime
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from tests.compare import measured
from tests.compare.judged import judged
from tests.compare.own import asked
from tests.compare.page import written
from tests.compare.peer import Peer
from tests.compare.peers import peers
from tests.compare.recordings import RECORDINGS, absent

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "docs" / "compare.json", ROOT / "docs" / "compare.md"


def main() -> int:
    """Ask, measure, write."""
    parser = argparse.ArgumentParser(prog="tests.compare", description=__doc__)
    folder = Path(os.environ.get("TRACEKIT_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--traces", type=Path, default=folder, help="the folder of the recordings")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venv-peers", help="where the tools are installed")
    parser.add_argument("--turns", type=int, default=3, help="of each measurement; the fastest counts (default: 3)")
    parser.add_argument("--page", action="store_true", help="write the page from the results of the last run")
    options = parser.parse_args()
    if not options.page:
        if missing := absent(options.traces):
            print(missing, file=sys.stderr)
            return 1
        RESULTS.write_text(json.dumps(results(options), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(written(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


def results(options: argparse.Namespace) -> dict[str, Any]:
    """What the page is made from."""
    tools: list[dict[str, str]] = []
    found: list[tuple[Peer, Path]] = []
    for peer in peers():
        tool = {"id": peer.id, "name": peer.name, "package": peer.package}
        try:
            python = measured.interpreter(peer, options.environments)
            tool["version"] = measured.version(peer, python)
            found.append((peer, python))
        except measured.AbsentError as error:
            tool["absent"] = str(error)
        tools.append(tool)
    recordings = []
    for recording in RECORDINGS:
        print(recording.id, flush=True)
        files = recording.paths(options.traces)
        answers: dict[str, Any] = {}
        for peer, python in found:
            said = measured.breakdowns(peer, python, files)
            answers[peer.id] = said if isinstance(said, str) else judged(files, said)
        able = [(peer, python, files) for peer, python in found if not isinstance(answers[peer.id], str)]
        recordings.append(
            {"id": recording.id, "answers": answers, "first_table": measured.fastest(able, options.turns)}
        )
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "turns": options.turns,
        "tools": tools,
        "recordings": recordings,
        "own": asked(options.environments, options.turns),
    }


if __name__ == "__main__":
    sys.exit(main())
