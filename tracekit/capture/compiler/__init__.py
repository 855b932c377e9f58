"""Listening to the compiler, and what became of the mode that was asked for."""
