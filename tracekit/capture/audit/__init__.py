"""What would block on a GPU, seen without one: tensors on the CPU that pretend to be on a GPU.

`auditing` runs it in a child process; there, `emulation` puts the pieces together. Values and gradients are the CPU's
own: nothing but the device is pretended.
"""
