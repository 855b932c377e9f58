"""The ledger of what is proven: `make proof` runs the tests behind each claim, and writes docs/proof.md from what they
recorded.

A test records a figure by pytest's `record_property`; the examples of a property test are counted. `claims.py` lists
the claims with their tests, `plugin.py` collects, `page.py` writes. docs/proof.json has the figures of the last run, so
that the page can be written without another.
"""
