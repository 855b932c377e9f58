"""Listens to the compiler, and works out which mode took effect."""
