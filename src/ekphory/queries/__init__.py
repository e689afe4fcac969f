"""Reading a query before anything is searched: what it is wrapped in, and what kind it is."""

from __future__ import annotations

from ekphory.queries.query_class import Intent, QueryClass, QueryHints

__all__ = ["Intent", "QueryClass", "QueryHints"]
