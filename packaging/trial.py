"""Installs packages outside the checkout, as a stranger would, and tries what they promise.

    python packaging/trial.py dist/*                    # each by pip, in a new environment of the Python that runs this
    python packaging/trial.py dist/* --tools env/bin    # the first also by uv and pipx, which are in that folder

No compiler can be found meanwhile; a source distribution is then installed where there is one, too. What a refusal says
to install is installed by that very command. What tracekit depends on comes from the index: there has to be a network.
"""

import argparse
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

BASICS = ("dirname", "realpath")  # that scripts of uvx need
PATIENCE_S, TUI_PATIENCE_S = 600, 120
QUIET_S = 1.0  # after which the terminal UI has drawn what it will
# The command that installs a package into an empty folder, which is also the home folder, and the one to run then.
WAYS = {
    "pip": (f"{sys.executable} -m venv .venv && pip install {{package}}", "tracekit"),
    "uv pip": (f"uv venv --python {sys.executable} && uv pip install {{package}}", "tracekit"),
    "uv tool": ("uv tool install {package}", "tracekit"),
    "uvx": ("", "uvx --from {package} tracekit"),
    "pipx": ("pipx install {package}", "tracekit"),
    "pipx run": ("", "pipx run --spec {package} tracekit"),
}
# How this machine reaches the index; nothing that says where to install.
KEPT = re.compile(
    "(PIP|UV)_(CACHE_DIR|CERT|CONFIG_FILE|DEFAULT_INDEX|EXTRA_INDEX_URL|FIND_LINKS|INDEX|INDEX_URL|NATIVE_TLS)"
    "|SSL_CERT_.*|REQUESTS_CA_BUNDLE|https?_proxy|no_proxy",
    re.IGNORECASE,
)
# What is run, the exit code, and what it says.
PROMISES = (
    ("--version", 0, "tracekit {version}"),
    ("report sample", 0, "Where the wall time of a step goes"),
    ("export sample -o tables", 0, "tables"),
    ("explain-finding sync_stall", 0, "What it says"),
    ("recipes", 0, "pathologies/syncs"),
    ("recipes copy twins/dgl_gat_pubmed", 0, "Wrote with_dgl.py"),
    ("sweep sweeps/quick --dry-run", 0, "6 cells"),
    ("capture gcn_cora", 1, "Capturing needs PyTorch, which is not installed here. Install it: "),
    ("capture gcn_coar", 1, "Did you mean gcn_cora?"),
    ("audit train.py", 1, "no such recipe or script"),
    ("doctor", 1, "Nothing can be captured here: PyTorch"),
    ("hta sample critical-path", 1, "tracekit-torch[hta"),
    ("plot sample -o chart.svg", 1, "[plot"),
)
QUERY = "sql sample 'select count(*) from steps'"
ADVICE = re.compile(r"which is not installed: (.*)")
SCANNER = ("ok  fast reading of traces", "no  fast reading of traces")


class Trial(NamedTuple):
    """An empty folder in which commands run that see nothing of this machine but the folders in `path`."""

    folder: Path
    path: Sequence[Path | str]
    label: str
    python: dict[str, str]  # the variables that tell uv and pipx which Python to take

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process."""
        own = [self.folder / name / "bin" for name in (".venv", ".local", ".basics")]
        return {
            **{name: value for name, value in os.environ.items() if KEPT.fullmatch(name)},
            "PATH": os.pathsep.join(map(str, [*own, *self.path])),
            "HOME": str(self.folder),
            "COLUMNS": "100",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            **self.python,
        }

    def _process(self, command: str) -> dict[str, Any]:
        """The arguments by which a command of the shell runs here."""
        return {"args": ["/bin/sh", "-c", command], "cwd": self.folder, "env": self.environment}

    def says(self, command: str, code: int = 0, expected: str = "") -> str:
        """Both outputs of a command of the shell. It must end with this code and say what is expected."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(**self._process(command), **streams, timeout=PATIENCE_S, check=False)
        if done.returncode != code or expected not in done.stdout:
            wanted = f"{code}, and that it says {expected!r}"
            raise SystemExit(f"{self.label}: {command}\nended with {done.returncode}, not {wanted}:\n{done.stdout}")
        return done.stdout

    def opens(self, command: str) -> None:
        """The terminal UI comes up, and ends at `q`."""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 120))
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        with subprocess.Popen(**self._process(command), **streams, start_new_session=True) as process:
            os.close(slave)
            shown, is_told, deadline = b"", False, time.monotonic() + TUI_PATIENCE_S
            while process.poll() is None and time.monotonic() < deadline:
                if select.select([master], [], [], QUIET_S)[0]:
                    with suppress(OSError):  # the other end was closed
                        shown += os.read(master, 1 << 16)
                elif not is_told and b"Overview" in shown:
                    os.write(master, b"q")
                    is_told = True
            process.kill()
        os.close(master)
        if not is_told or process.returncode:
            raise SystemExit(f"{self.label}: {command} ended with {process.returncode}:\n{shown[-3000:]!r}")


def attempt(way: str, package: Path, path: Sequence[Path | str], *, native: bool) -> None:
    """Install a package in one way, and try everything. Raises SystemExit with the first promise that is not kept."""
    install, run = (command.format(package=shlex.quote(str(package))) for command in WAYS[way])
    with tempfile.TemporaryDirectory() as folder:
        # `uv pip` would install into that Python itself.
        python = {} if way == "uv pip" else {"UV_PYTHON": sys.executable, "PIPX_DEFAULT_PYTHON": sys.executable}
        trial = Trial(Path(folder).resolve(), path, f"{package.name} by {way}", python)
        (trial.folder / ".basics" / "bin").mkdir(parents=True)
        for name in BASICS:
            (trial.folder / ".basics" / "bin" / name).symlink_to(shutil.which(name))
        began = time.monotonic()
        trial.says(install or f"{run} --version")
        installed_s = time.monotonic() - began
        version = re.match(r"tracekit_torch-([\d.]+\d)", package.name)[1]
        for arguments, code, expected in PROMISES:
            trial.says(f"{run} {arguments}", code, expected.format(version=version))
        trial.says(f"{run}-torch --version")
        trial.says(f"{run} doctor", 1, SCANNER[0 if native else 1])
        trial.opens(f"{run} tui sample")
        advice = ADVICE.search(trial.says(f"{run} {QUERY}", 1))[1]
        if advice.endswith(" tracekit"):
            run = advice  # runs what it gets at once
        else:
            trial.says(advice)
        trial.says(f"{run} {QUERY}")
    kind = "compiled" if native else "not compiled"
    print(f"ok  {trial.label} ({kind}), installed in {installed_s:.0f} s; for SQL: {advice}", flush=True)


def main() -> None:
    """Try every package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", type=Path, help="wheels and source distributions")
    parser.add_argument("--tools", type=Path, metavar="FOLDER", help="where uv, uvx and pipx are")
    options = parser.parse_args()
    everything = os.environ["PATH"].split(os.pathsep)
    packages = [package.resolve() for package in options.packages]
    for package in packages:
        attempt("pip", package, [], native="abi3" in package.name)
        if package.suffix == ".gz":
            attempt("pip", package, everything, native=True)
    for way in [way for way in WAYS if way != "pip"] if options.tools else []:
        attempt(way, packages[0], [options.tools.resolve()], native="abi3" in packages[0].name)


if __name__ == "__main__":
    main()
