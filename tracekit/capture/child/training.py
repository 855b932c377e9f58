"""Trains for whole epochs, and evaluates the model at the end."""

import time

from tracekit.capture.child import timing
from tracekit.capture.child.loss_check import metrics, number
from tracekit.capture.child.recipe import Feed
from tracekit.capture.job import Job, PassResult
from tracekit.run import Training


def train(feed: Feed, job: Job) -> PassResult:
    """Train that many epochs, with only a clock reading between them, then evaluate the recipe's own metric."""
    steps, loss, times = 0, None, []
    timing.synchronize(job.device)
    for _ in range(job.epochs):
        started = time.perf_counter_ns()
        steps, loss = feed.epoch()
        timing.synchronize(job.device)
        times.append(time.perf_counter_ns() - started)
    last = number(loss)  # before evaluating, because the next replay of a CUDA graph overwrites it
    reached = metrics(feed.evaluate() if feed.evaluate else {})
    training = Training(seed=job.seed, epochs=job.epochs, steps=steps, epoch_all_ns=times, loss=last, metrics=reached)
    return PassResult(training=training)
