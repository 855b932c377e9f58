"""What the workers of a DataLoader record of themselves, and what that tells of a loop that waits for its batch.

`record` is the file of a process, `recorder` writes it in a worker, `stalls` joins a wait of the loop to the worker
that made its batch and to the line that took the time, and `causes` says which of the reasons it was. Nothing here
imports torch: what is put into torch is in `tracekit/capture/child/loaders.py`.
"""
