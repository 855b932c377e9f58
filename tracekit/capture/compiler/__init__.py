"""Listening to the compiler, and what came of the mode that was asked for."""
