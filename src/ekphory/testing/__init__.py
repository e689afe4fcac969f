"""Parts for tests, ours and those of people who build on ekphory.

`HashEmbedder` stands in for a model; `reranker_contract` holds what every reranker must pass.
"""

from ekphory.testing.models import HashEmbedder

__all__ = ["HashEmbedder"]
