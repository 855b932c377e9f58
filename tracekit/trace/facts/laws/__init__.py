"""The laws of a trace, by what they are about: every module here is imported, and its laws apply."""
