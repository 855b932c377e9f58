"""What works in a plain run works in a view, also for an ordinary user, and a view ends with its capture."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.capture.capturing import perform
from tracekit.capture import process
from tracekit.capture.child import entering
from tracekit.capture.child import file_view as holder
from tracekit.capture.file_view import refusal
from tracekit.capture.job import PassResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has views")

# Makes a view as `tracekit.capture.file_view` does, and runs code in it: only the standard library, so any Python can.
DRIVER = """
import importlib.util, json, os, subprocess, sys
file, entering, home, here, code = sys.argv[1:]
os.chdir(here)
os.mkdir(home)
wish = {"home": home, "through": [home], "vital": [here]}
command = [sys.executable, "-I", "-S", file, json.dumps(wish)]
view = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
answer = json.loads(view.stdout.readline())
print(json.dumps(answer), flush=True)
if "overlays" in answer and not (child := os.fork()):
    spec = importlib.util.spec_from_file_location("entering", entering)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.enter(view.pid)
    try:
        exec(code, {"answer": answer})
    except OSError as error:
        print(error, flush=True)
    os._exit(0)
if "overlays" in answer:
    os.waitpid(child, 0)
view.stdin.close()
view.wait()
"""
ORDINARY = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]
WITHOUT_MOUNTING = ["setpriv", "--bounding-set=-sys_admin"]  # root in most containers


@pytest.fixture
def place():
    """A folder of the user's own, in which another user's has a folder that everybody may write; all may reach it."""
    if os.getuid() or not shutil.which("setpriv") or not os.path.exists("/usr/bin/python3"):
        pytest.skip("needs root, setpriv, and a Python that every user may run")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        here = Path(folder, "here")
        (here / "old").mkdir(parents=True)
        (here / "a.pt").write_text("mine")
        for each in (here, here / "old", here / "a.pt"):
            os.chown(each, 1000, 1000)
        (here / "shared" / "deep").mkdir(parents=True)
        for each in (here / "shared", here / "shared" / "deep"):
            each.chmod(0o777)
        (here / "forbidden").mkdir()
        yield here


@pytest.fixture
def traces(tmp_path):
    """A folder that a view shows as it is."""
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


def copied(folder: Path) -> list[str]:
    """What makes a view and what enters it, as files of their own: the repository may be another user's."""
    return [
        shutil.copy(module.__file__, folder / f"{name}.py") for name, module in (("view", holder), ("in", entering))
    ]


def in_view(as_whom: list[str], here: Path, code: str) -> list[str]:
    """What the code prints in a view of that folder."""
    home = tempfile.mktemp(prefix="view-", dir=here.parent)
    command = [*as_whom, "/usr/bin/python3", "-c", DRIVER, *copied(here.parent), home, here, code]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    answer, *printed = ran.stdout.splitlines()
    if "overlays" not in json.loads(answer):
        pytest.skip(f"no view: {answer}")
    return printed + ran.stderr.splitlines()


def runs(number: str) -> bool:
    """Whether that process has not ended."""
    try:
        return Path("/proc", number, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def content(here: Path) -> dict[str, str]:
    return {str(each.relative_to(here)): each.read_text() if each.is_file() else "" for each in here.rglob("*")}


@pytest.mark.parametrize("as_whom", [ORDINARY, WITHOUT_MOUNTING, []])
@pytest.mark.parametrize(
    "code",
    [
        "open('shared/new', 'w').write('n'); open('shared/deep/new', 'w').write('n')",
        "import os; os.mkdir('shared/mine'); os.rename('shared/mine', 'shared/yours')",
        "import os; file = answer['temporary'] + '/new'; open(file, 'w').write('n'); os.replace(file, 'a.pt')",
        "open('/proc/self/environ').read()",
    ],
)
def test_what_works_in_a_plain_run_works_in_a_view(place, as_whom, code):
    before = content(place)
    assert in_view(as_whom, place, f"{code}; print('done')") == ["done"]
    assert content(place) == before


def test_what_fails_in_a_plain_run_fails_in_a_view(place):
    for code in ("open('forbidden/new', 'w')", "__import__('os').mkdir('/home/new')", "open('/new', 'w')"):
        (said,) = in_view(ORDINARY, place, code)
        assert said.startswith("[Errno 13] Permission denied")


def test_a_right_that_root_has_without_a_view_it_has_in_one(place):
    """Folders of others are closed to everybody but them, and to root."""
    (place / "forbidden").chmod(0o700)
    os.chown(place / "forbidden", 1234, 1234)
    assert in_view(WITHOUT_MOUNTING, place, "open('forbidden/new', 'w'); print('done')") == ["done"]


def test_who_listens_at_a_socket_is_reached(place):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "socket"))
        server.listen()
        (place / "socket").chmod(0o777)
        code = "import socket; socket.socket(socket.AF_UNIX).connect('socket'); print('done')"
        assert in_view(ORDINARY, place, code) == ["done"]
        assert in_view([], place, code) == ["done"]


@pytest.mark.parametrize("as_whom", [ORDINARY, []])
def test_what_a_program_leaves_running_ends_with_its_view(place, as_whom):
    code = "import subprocess; print(subprocess.Popen(['sleep', '77'], start_new_session=True).pid)"
    (left,) = in_view(as_whom, place, code)
    assert not runs(left)


@pytest.mark.parametrize("as_whom", [ORDINARY, WITHOUT_MOUNTING, []])
def test_a_pass_dies_with_its_capture(place, as_whom):
    arms = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\n"
    mark = place.parent / "shown" / "mark"
    mark.parent.mkdir()
    mark.parent.chmod(0o777)
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(77)"
    driver = DRIVER.replace("    module.enter(", f"    {arms}    module.enter(").replace(
        '"through": [home]', f'"through": [home, {str(mark.parent)!r}]'
    )
    command = [*as_whom, "/usr/bin/python3", "-c", driver, *copied(place.parent), place.parent / "view", place, code]
    capture = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    ends = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and capture.poll() is None and time.monotonic() < ends:
        time.sleep(0.01)
    capture.kill()
    capture.wait()
    if not mark.exists():
        pytest.skip("no view")
    while runs(mark.read_text()) and time.monotonic() < ends:
        time.sleep(0.01)
    assert not runs(mark.read_text())


def test_a_disk_that_is_mounted_below_the_working_folder_is_covered_too(tmp_path, traces, monkeypatch):
    disk = tmp_path / "here" / "disk"
    inner = disk / "deep" / "inner"
    disk.mkdir(parents=True)
    mounted = []
    try:
        for each in (disk, inner):
            each.mkdir(parents=True, exist_ok=True)
            if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", each], check=False, capture_output=True).returncode:
                pytest.skip("only root can mount")
            mounted.append(each)
        for each in (disk, inner):
            (each / "a.pt").write_text("mine")
        monkeypatch.chdir(tmp_path / "here")
        Path("train.py").write_text(
            "for each in ('disk', 'disk/deep/inner', 'disk/deep'):\n"
            "    open(f'{each}/a.pt', 'w').write('other')\n"
            "raise SystemExit(3)\n"
        )
        result = perform(traces, "measure", "train.py", is_script=True)
        assert "(exit code 3)" in result.error
        files = [disk / "a.pt", disk / "deep" / "a.pt", inner / "a.pt"]
        assert [file.read_text() if file.exists() else None for file in files] == ["mine", None, "mine"]
        assert result.written.discarded == [str(file) for file in files]
    finally:
        for each in reversed(mounted):
            subprocess.run(["umount", "--lazy", each], check=True)


def test_what_a_view_refuses_is_done_without_one_and_undone(tmp_path, traces, monkeypatch):
    """Caches are no part of a view, so nothing can be moved from there to the working folder."""
    cache, here = tmp_path / "cache", tmp_path / "here"
    cache.mkdir()
    here.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(here)
    monkeypatch.setattr(process, "_refused", {})
    Path("a.pt").write_text("mine")
    Path("train.py").write_text(
        "import os\n"
        f"file = {str(cache / 'part')!r}\n"
        "open(file, 'w').write('other')\n"
        "os.replace(file, 'a.pt')\n"
        "raise SystemExit(3)\n"
    )
    for _ in range(2):  # the second pass is not tried in a view
        result = perform(traces, "measure", "train.py", is_script=True)
        assert "(exit code 3)" in result.error
        assert Path("a.pt").read_text() == "mine"
        assert result.written.undone == [str(here / "a.pt")]
        assert result.written.no_view == "it failed in one: Invalid cross-device link"


def test_only_what_would_have_worked_outside_is_a_views_refusal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    denied = PassResult(outcome="error", error="PermissionError: [Errno 13] Permission denied: 'out/a.pt'")
    assert refusal(denied, "") == "[Errno 13] Permission denied: 'out/a.pt'"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert refusal(denied, "") == ""
    assert refusal(PassResult(outcome="error", error="ValueError"), "mv: Invalid cross-device link\n")
    assert refusal(PassResult(), "mv: Invalid cross-device link\n") == ""
