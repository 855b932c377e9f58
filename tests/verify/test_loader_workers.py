"""Loops over real loaders in whose workers something is planted: are its reason, worker and line named, and its share?

Each is recorded by `tracekit.record`, and diagnosed as a report does it. What is planted takes so long that it does not
matter how long a busy machine takes to wake a process, and the script times the planted line itself.
"""

import os
import re
import subprocess
import sys

import pytest

from tracekit.findings import diagnose
from tracekit.findings.late_batches import explained
from tracekit.profile import open_subject

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
]

SCRIPT = """
import sys
import time

import numpy as np
import torch
import tracekit
from torch.utils.data import DataLoader, Dataset, get_worker_info

WORK_S = float(sys.argv[2])
PLANTED_S = 0.27
KIND = sys.argv[1]


class Samples(Dataset):
    def __len__(self):
        return 6000

    def __getitem__(self, index):
        return globals()[KIND](index)


def slow_worker(index):
    began = time.time()
    if get_worker_info().id == 2:
        radius_graph()
    planted = time.time()
    time.sleep(0.03)
    if get_worker_info().id == 2:
        with open("truth.txt", "a") as file:
            print(planted - began, time.time() - began, file=file)
    return torch.ones(64)


def radius_graph():
    time.sleep(PLANTED_S)  # planted


def few_workers(index):
    time.sleep(0.3)  # planted
    return torch.ones(64)


def handing_over(index):
    return np.ones(1_000_000)


def larger_batches(index):
    samples = 10 if index % 20 == 3 else 1
    for _ in range(samples):
        time.sleep(0.06)  # planted
    return torch.ones(samples, 1000)


def slow_batches(index):
    time.sleep(1.2 if index % 20 == 3 else 0.03)  # planted
    return torch.ones(64)


def full_queue(index):
    time.sleep(0.24)  # planted
    return torch.ones(64)


def drawing(index):
    return torch.ones(64)


class Drawing(torch.utils.data.Sampler):
    def __iter__(self):
        for index in range(6000):
            time.sleep(0.1)
            yield index


def as_it_is(samples):
    return samples


if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = DataLoader(
        Samples(), batch_size=1, num_workers=3, collate_fn=as_it_is, sampler=Drawing() if KIND == "drawing" else None
    )
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with tracekit.record("run.json", steps=80):
        for number, _ in enumerate(loader):
            parameter.sum().backward()
            time.sleep(WORK_S if KIND != "full_queue" or number % 20 else 3.0)
            optimizer.step()
            if number == 80:
                break
"""


def recorded(folder, kind, work_s):
    (folder / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-W", "ignore", "train.py", kind, str(work_s)]
    subprocess.run(command, cwd=folder, check=True, timeout=300, capture_output=True)
    (profile,) = open_subject([folder / "run.json"]).profiles
    explanation = explained(profile)
    finding = next(finding for finding in diagnose(profile).all_findings if finding.id == "dataloader_bound")
    return explanation, finding


def planted_line(kind):
    """The number of the line that is planted in this kind of dataset."""
    body = SCRIPT.partition("def radius_graph" if kind == "slow_worker" else f"def {kind}")[0]
    after = SCRIPT[len(body) :].partition("# planted")[0]
    return body.count("\n") + after.count("\n") + 1


@pytest.mark.parametrize(
    ("kind", "work_s", "at_line"),
    [
        ("slow_worker", 0.05, True),
        ("few_workers", 0.03, True),
        ("handing_over", 0.01, False),
        ("larger_batches", 0.055, True),
        ("slow_batches", 0.03, True),
        ("full_queue", 0.03, True),
        ("drawing", 0.001, False),
    ],
)
def test_what_is_planted_is_named(tmp_path, record_property, kind, work_s, at_line):
    explanation, finding = recorded(tmp_path, kind, work_s)
    told = re.sub(r"\s+", " ", finding.title)
    named_share = explanation.place_ns / explanation.blamed_ns if explanation.blamed_ns else 0.0
    share = 1.0
    if kind == "slow_worker":
        times = [[*map(float, line.split())] for line in (tmp_path / "truth.txt").read_text().splitlines()]
        share = sum(planted for planted, _ in times) / sum(whole for _, whole in times)
    cells = {"planted": kind, "told": explanation.reason, "share told": "–", "share": "–"}
    if at_line:
        cells |= {"share told": f"{named_share:.3f}", "share": f"{share:.3f}"}
    record_property("table", ("workers of a loader", cells))
    assert explanation.reason == kind, told
    if kind == "slow_worker":
        assert explanation.worker == 2
    if at_line:
        place = explanation.place
        assert (place.file.rsplit("/")[-1], place.line) == ("train.py", planted_line(kind)), told
        assert named_share == pytest.approx(share, abs=0.05), told
