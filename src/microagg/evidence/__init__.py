"""All that is claimed about a release: what was measured, and what follows from that and the plan alone."""

from microagg.evidence.evidence import Evidence

__all__ = ["Evidence"]
