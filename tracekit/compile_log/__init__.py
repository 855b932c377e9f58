"""What the compiler logged, and the ledger made from it: for a capture, or for a log that TORCH_TRACE wrote."""
