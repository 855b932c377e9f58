"""A subject's tables in other formats: one file each."""
