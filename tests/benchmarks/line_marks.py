"""What marks of lines cost a step, as a ratio: marked and unmarked steps of the same training in turn."""

import statistics
import sys
import time

import torch

from tracekit.capture.child.line_marks import IS_CHEAP, LineMarks

STEPS, TURNS = 60, 40


def training():
    """A step of about a millisecond."""
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(128, 64)

    def step():
        optimizer.zero_grad()
        hidden = model(inputs)
        loss = hidden.square().mean()
        loss.backward()
        optimizer.step()

    return step


def with_loop(step):
    """The same step, and a hot loop."""

    def longer():
        step()
        total = 0
        for number in range(20_000):
            total += number
        return total

    return longer


def median_ns(step, marks=None):
    """What a step takes."""
    times = []
    for _ in range(STEPS):
        if marks is not None:
            marks.step()
        began_ns = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - began_ns)
    return statistics.median(times)


def ratio(step):
    """A marked step divided by an unmarked one: the median over turns, and its standard error."""
    median_ns(step)
    ratios = []
    for _ in range(TURNS):
        before = median_ns(step)
        marks = LineMarks()
        marks.start()
        marked = median_ns(step, marks)
        marks.stop()
        ratios.append(2 * marked / (before + median_ns(step)))
    return statistics.median(ratios), 1.25 * statistics.stdev(ratios) / len(ratios) ** 0.5


def main():
    """Print both ratios."""
    plain = training()
    how = "in the steps that are told" if IS_CHEAP else "in other steps"
    print(f"Python {sys.version.split()[0]}, marks {how}")
    for name, step in (("a small training", plain), ("with a hot loop", with_loop(plain))):
        middle, error = ratio(step)
        print(f"{name}: {middle:.3f} ± {2 * error:.3f} times as long")


if __name__ == "__main__":
    main()
