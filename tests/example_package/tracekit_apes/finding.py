"""Are the apes idle?"""

from collections.abc import Iterator

from tracekit.findings import Finding, rule
from tracekit.profile import Profile


@rule("idle_apes")
def idle_apes(profile: Profile) -> Iterator[Finding]:
    """They always are."""
    yield Finding("idle_apes", "The apes are idle", 30_000.0, "Feed them.", share=0.25)
