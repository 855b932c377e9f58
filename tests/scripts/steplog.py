"""What the scripts in this folder print: where they run, then each step's loss and time, as training scripts do."""

import json
import os
import sys
import time


class StepLog:
    """`step 12  loss 0.693147  1.234 ms  1.023 ms cpu`: one line a step, with the times since the line before."""

    def __init__(self):
        main = sys.modules["__main__"]
        here = {"path": sys.path, "argv": sys.argv, "cwd": os.getcwd(), "package": main.__package__ or ""}
        print(json.dumps(here), flush=True)
        self.step, self.before, self.cpu_before = 0, time.perf_counter(), time.process_time()

    def __call__(self, loss):
        loss, now, cpu = float(loss), time.perf_counter(), time.process_time()
        took = f"{1e3 * (now - self.before):.4f} ms  {1e3 * (cpu - self.cpu_before):.4f} ms cpu"
        print(f"step {self.step}  loss {loss:.9g}  {took}", flush=True)
        self.step, self.before, self.cpu_before = self.step + 1, now, cpu
