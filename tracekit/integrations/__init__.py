"""Where training loops meet tracekit: `tracekit.trace_handler` for torch.profiler (`handler`), and a callback for each
framework's own loop (`lightning`, `transformers`, `accelerate`), all on one core.

Nothing here may disturb a training. What is read of a trace is read after the loop, by a process of its own
(`results`); an exception is logged once, and ends the part that it happened in; `TRACEKIT_OFF=1` switches all of it
off; and only rank 0 is looked at unless all are asked for.
"""
