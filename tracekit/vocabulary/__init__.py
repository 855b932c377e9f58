"""What capture and reader share about names: of events, of kernels, of files with code, of lines, of steps."""
