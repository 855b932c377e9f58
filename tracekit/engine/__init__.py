"""Where the time went: every nanosecond of every step in exactly one bucket.

Time is divided three times, each division finer than the one before:

- a **block** is as much of the analysed window as is worked on at once (`block_views`);
- a **segment** is the time of one bucket and one event to blame, across blocks: a row of the table `segments`;
- a **piece** is the part of a segment inside one step that can be answered: pieces add up to the step (`pieces`).
"""

from tracekit.engine.attribution import Attribution, attribute

__all__ = ["Attribution", "attribute"]
