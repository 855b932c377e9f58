"""What is imported when: the model without Textual, the first frame without anything slow."""

import subprocess
import sys


def test_the_model_needs_no_textual():
    asks = (
        "import sys, tracekit.tui.model.panes, tracekit.tui.model.opening, tracekit.tui.terminal; "
        "print(any(m.startswith('textual') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_first_frame_needs_nothing_slow():
    asks = "import sys, tracekit.cli.tui, tracekit.tui.terminal; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "rich", "textual"} & set(done.stdout.split())


def test_the_first_screen_needs_no_library_that_only_sorting_and_filtering_need():
    """`pyarrow.compute` takes 50 to 80 ms to import."""
    shows = """
import asyncio, os, sys, traceback
from pathlib import Path
from tracekit.cli.start_up import refuse_pandas
refuse_pandas()

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "pyarrow.compute":
            ours = [each for each in traceback.extract_stack() if "/tracekit/" in each.filename]
            print("pyarrow.compute is imported at", f"{ours[-1].filename}:{ours[-1].lineno}", file=sys.stderr)

sys.meta_path.insert(0, Watch())
from tracekit.tui import app, arriving

def drawn(self):
    print(*sys.modules, flush=True)
    os._exit(0)

arriving.Arrivals.drawn, arriving._PATIENCE_S = drawn, 600.0

async def show():
    async with app.build_app([Path("sample_traces/run.json")]).run_test(size=(160, 45)):
        await asyncio.sleep(600.0)

asyncio.run(show())
"""
    done = subprocess.run([sys.executable, "-c", shows], capture_output=True, text=True, check=True)
    assert "tracekit.tui.widgets.grid" in done.stdout.split()
    assert {"pyarrow.compute", "pandas"}.isdisjoint(done.stdout.split()), done.stderr
