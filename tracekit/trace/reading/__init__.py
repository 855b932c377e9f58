"""Bytes of any Kineto file, streamed into batches of Arrow columns; `rereading` needs the trace made of them."""
