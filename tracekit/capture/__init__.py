"""Runs recipes and scripts under the profiler, and writes the run file and the traces; only this package uses torch.

It needs only torch and msgspec, because a bare GPU machine may have no other package. `tracekit capture`, `sweep` and
`audit` import torch only in the processes that they start, one for each pass, or one that is forked for some;
`tracekit.record` (`recording`) profiles the process that calls it, and `tracekit doctor` (`doctor`) tries out each
thing in a process of its own.

In the parent, in this order:

    options                      what to capture, and how thoroughly; which variants to run
    preparation                  refuses what cannot work
    harness                      the whole capture, variant by variant; writes the run file after each
      passes                     one variant: measure, profile, check, each from `process`
        live                     forks them from a process that has imported torch, where that is possible
        lost_kernels             traces that lost kernels are taken again
      rounds                     more unprofiled passes, variants taking turns (`turns`, `live`)
    process                      one pass: starts the child with a `job`, waits for its result
      rank_jobs                  the same for several ranks
      file_view                  the copy-on-write view in which a pass runs, so that it changes no file of the user's;
                                 says what became of the files that a pass wrote
      journal                    where there is none: restores the files, by what the child notes in it
    guardian                     the same if the capture is killed; one capture a folder at a time, by locks;
                                 `tracekit.base.workspace` says where these are
    messages                     what the person at the terminal reads during a capture

In the child, one pass (`child`):

    start, worker                reads the job, does its stage, writes the result, and meanwhile what it has so far
    recipe | script              what trains: `recipe` calls the steps; those of a script are detected from outside
                                 (step_ends, script_variant, file_journal)
    measure                      stage "measure": timing, memory
    traces                       stage "profile": event_tree
    loss_check                   stage "check"

`compiler` records what the compiler does during a pass; `tracekit.compile_log` makes the ledger from its records.
`audit` has both sides of `tracekit audit`: `auditing` is the parent, and `child` is the child with its emulated GPU.
`environment` describes the machine, mostly in a process with torch, and says how much of it is left for steps.
"""
