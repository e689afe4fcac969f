"""Embeds a store anew with a later model, and reports its progress."""

import sys

import numpy as np
from process import report, wait_for_go

from ekphory.memory import Memory
from ekphory.models.embedder import EmbedderIdentity
from ekphory.testing import HashEmbedder


class NextEmbedder(HashEmbedder):
    def __init__(self, revision):
        super().__init__()
        self.identity = EmbedderIdentity("hash-embedder", revision, 32)

    def _vector(self, text):
        return np.roll(super()._vector(text), 1)


def main():
    path, revision = sys.argv[1:]
    with Memory(path, embedder=HashEmbedder()) as memory:
        wait_for_go()
        memory.reembed(NextEmbedder(revision), on_progress=lambda done, _: report(done=done))


main()
