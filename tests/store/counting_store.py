"""A store that tells what was read from it."""

from ekphory.store.in_memory import InMemoryStore


class CountingStore(InMemoryStore):
    """Notes which keys were read one by one."""

    def __init__(self, identity):
        super().__init__(identity)
        self.read = []

    def fetch(self, keys):
        self.read.append(list(keys))
        return super().fetch(keys)
