"""What a verb imports before it answers, and what its libraries may do meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small import training

from tracekit.cli.arguments import Verb
from tracekit.cli.program import VERBS


def test_help_imports_no_heavy_library():
    code = (
        "import sys; from tracekit.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pyarrow', 'pandas', 'numpy', 'rich', 'textual', 'torch', 'msgspec', 'logging'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "report" in ran.stdout


def test_a_report_imports_nothing_that_it_can_do_without(tmp_path: Path):
    run = modules_of_a_report("sample_traces/run.json")
    assert run >= {"numpy", "rich.console", "tracekit.lines.blame", "tracekit.trace.reading.decode"}
    assert not run & {"pyarrow.compute", "pandas", "textual", "torch", "importlib.metadata", "rich._emoji_codes"}
    of_studies = "tracekit.report.sections.study_", "tracekit.study.settings", "tracekit.profile.assembled"
    assert not [name for name in run if name.startswith(("tracekit.capture", *of_studies))]

    bare = modules_of_a_report(training(tmp_path / "eager.json"))
    recordings = {f"tracekit.lines.{name}" for name in ("blame", "carry", "compiled", "threads", "main_thread")}
    assert not bare & (recordings | {"tracekit.compile_log.log"})


def modules_of_a_report(path: object) -> set[str]:
    code = (
        "import sys; from tracekit.cli import entry\n"
        f"sys.argv = ['tracekit', 'report', '--no-cache', {str(path)!r}]\n"
        "entry()\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists a process's threads there")
def test_numpy_starts_no_threads_and_leaves_the_environment_alone():
    code = (
        "import os; from tracekit.cli.start_up import import_numpy\n"
        "import_numpy()\n"
        "print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.split() == ["1", "None"]


def test_verbs_set_only_flags_that_there_are():
    for verb in VERBS:
        assert {name for name in vars(verb) if not name.startswith("__")} <= {*vars(Verb), "name"}


def test_pandas_is_refused_except_to_verbs_that_need_it():
    code = (
        "import sys, importlib.util as u\n"
        "from tracekit.cli import program\n"
        "class Counting(program.Verb):\n"
        "    'Count.'\n"
        "    name, arguments = 'counting', staticmethod(lambda parser: None)\n"
        "    run = staticmethod(lambda options: print(u.find_spec('pandas') is not None) or 0)\n"
        "class Framing(Counting):\n"
        "    name, needs_pandas = 'framing', True\n"
        "    run = staticmethod(lambda options: print(__import__('pandas').__name__) or 0)\n"
        "program.VERBS = (Counting, Framing)\n"
        "try:\n"
        "    sys.argv = ['tracekit', 'counting']; program.entry()\n"
        "except ModuleNotFoundError: print('refused')\n"
        "sys.argv = ['tracekit', 'framing']; program.entry()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused", "pandas"]
