"""The named pools, and who sees what in them."""

from __future__ import annotations

AGENT_POOLS = ("agent_memory", "agent_tools", "agent_mistakes")
"""Seen by their own agent only."""

REFERENCE_POOLS = ("reference_library", "reference_code")
"""Hold documents, whose passages stand in a sequence as turns do."""

SHARED_POOLS = ("shared_mistakes", "shared_knowledge", "shared_rules", *REFERENCE_POOLS)
"""Seen by the whole project, whichever agent, user or session wrote them."""

STANDARD_POOLS = AGENT_POOLS + SHARED_POOLS
DEFAULT_POOL = "agent_memory"
