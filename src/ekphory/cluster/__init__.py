"""One store over many machines: shards on object storage, served and filled by Ray."""
