"""Parts for tests, ours and those of people who build on ekphory.

`HashEmbedder` stands in for a model; `StoreContract` is what every store must pass.
"""

from ekphory.testing.models import HashEmbedder
from ekphory.testing.store_contract import CONTRACT_IDENTITY, DurableStoreContract, StoreContract

__all__ = ["CONTRACT_IDENTITY", "DurableStoreContract", "HashEmbedder", "StoreContract"]
