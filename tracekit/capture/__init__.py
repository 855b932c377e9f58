"""Run a recipe, eager and compiled, and keep what happened: the only package that imports torch.

It imports nothing else but msgspec, and torch only in processes it starts: it works on a bare GPU machine.
"""
