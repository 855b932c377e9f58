"""The names that users and their programs rest on, and that none of them disappears unannounced.

`today.py` lists the names that there are; promised.json those that are promised. `python -m tests.stability` adds new
ones. One goes away only after a deprecation (`tracekit/base/deprecation.py`) has ended.
"""
