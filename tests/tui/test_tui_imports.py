"""What is imported when: the model without Textual, the first frame without anything slow."""

import subprocess
import sys


def test_the_model_needs_no_textual():
    asks = (
        "import sys, tracekit.tui.model.panes, tracekit.tui.model.opening, tracekit.tui.first_frame; "
        "print(any(m.startswith('textual') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_first_frame_needs_nothing_slow():
    asks = "import sys, tracekit.cli.tui, tracekit.tui.first_frame; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "rich", "textual"} & set(done.stdout.split())
