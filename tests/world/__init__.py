"""A simulated world that writes Kineto traces whose causes are known.

The truth about a cause is the same world run again without it. Nothing here knows how tracekit looks at a trace: the
machine (`machine.py`), the script that it runs (`training.py`), what is wrong with it (`causes.py`) and the writer of
traces (`kineto.py`) share neither code nor constants with the package. `python -m tests.world --worlds 500` prints how
often tracekit is right.
"""
