"""Bytes of any Kineto file, streamed into batches of Arrow columns."""
