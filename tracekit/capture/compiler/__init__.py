"""What the compiler logged, and the ledger that is made of it."""
