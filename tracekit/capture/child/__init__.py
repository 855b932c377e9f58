"""What runs in the child process: one pass of one variant."""
