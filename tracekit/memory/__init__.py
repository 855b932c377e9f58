"""What does a recording say about memory: how much is held when, in which phase, and by what?

trace ──memory_events──▶ MemoryEvents ──walk──▶ levels, lifetimes ──memory_use──▶ peaks by phase, holders, churn
"""

from tracekit.memory.summary import known_use
from tracekit.memory.use import MemoryUse

__all__ = ["MemoryUse", "known_use"]
