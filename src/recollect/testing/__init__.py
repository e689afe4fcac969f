"""Parts for tests, ours and those of people who build on recollect.

`HashEmbedder` stands in for a model; `StoreContract` is what every store must pass.
"""

from recollect.testing.contract_rows import CONTRACT_IDENTITY
from recollect.testing.hash_embedder import HashEmbedder
from recollect.testing.store_contract import DurableStoreContract, StoreContract

__all__ = ["CONTRACT_IDENTITY", "DurableStoreContract", "HashEmbedder", "StoreContract"]
