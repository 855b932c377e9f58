"""A package that is run with `python -m charlm.train`: its files import one another relatively."""
