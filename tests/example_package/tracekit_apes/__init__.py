"""What a user's own package adds to tracekit."""
