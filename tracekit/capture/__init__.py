"""Runs recipes and scripts under the profiler, and writes the run file and the traces: the only package with torch.

It needs torch and msgspec and nothing else, because a bare GPU machine has no more. `tracekit capture`, `sweep` and
`audit` import torch only in the processes that they start, one for each pass; `tracekit.record` (`recording`) profiles
the process that calls it, and `tracekit doctor` (`doctor`, `probes`) tries out each thing in a process of its own.

In the parent, in this order:

    options                      what to capture, and how thoroughly
    preparation                  refuses what cannot work: script_or_recipe, interpreter, params, variants
    harness                      the whole capture, variant by variant; writes the run file after each
      passes                     one variant: measure, profile, check, each from `process`
        lost_kernels             traces that lost kernels are taken again
        loss_drift               a script's losses once more, rounded differently
      rounds                     more unprofiled passes, variants taking turns
      trainings                  trainings to their end, with --epochs
    process                      one pass: starts the child with a `job`, waits for its answer (progress, kineto_log)
      rank_jobs                  the same for several ranks
      undo, folder_state, written_files    the user's files as they were before
    messages                     what the person at the terminal reads meanwhile

In the child, one pass (`child`):

    start, worker                reads the job, does its stage, writes the answer; so_far has it if the process dies
    recipe | script              what trains: `recipe` calls its steps; the steps of a script are noticed from outside
                                 (script_steps: step_ends, step_boundary, backward_passes, script_variant, file_journal)
    measure                      stage "measure": timing, memory, gpu_load
    traces                       stage "profile": exporting, event_tree
    loss_check, script_losses    stage "check"
    training                     stage "train"

`compiler` listens to the compiler during a pass; what it heard becomes the ledger in `tracekit.compile_log`.
`audit` has both sides of `tracekit audit`: `auditing` is the parent, and `child` is the child with its emulated GPU.
`environment` and `gather_speed` describe the machine, and run where torch is.
"""
