"""What would block on a GPU, found without one: tensors on the CPU pretend to be on a GPU.

`auditing` runs it in a child process, where `emulation` puts the pieces together. Values and gradients are really
computed, on the CPU: only the device is pretended.
"""
