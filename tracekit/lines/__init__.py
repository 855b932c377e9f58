"""To which line of yours does each nanosecond of a step belong? `docs/owners.md` has the rules.

A steady trace has no stacks; the detailed one of the same variant has, and beside it is a file with the lines of the
calls. Every moment of a detailed step has an owner (`main_thread`), steady steps are read from detailed ones that do
the same (`carry`), backward nodes belong to the line of their forward operator (`threads`), compiled kernels to the
lines that were fused (`compiled`), and every stretch of a bucket to the owner of what is to blame for it (`blame`).
"""
