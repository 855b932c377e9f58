"""What the compiler logged, and the ledger that is made of it: of a capture, or of a log that TORCH_TRACE wrote."""
