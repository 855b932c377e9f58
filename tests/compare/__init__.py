"""tracekit beside other tools that read the same recordings: what each says of them, and what that takes."""
