"""An embedder whose vectors are an age, and whose heads read the text's length."""

import numpy as np

from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.late_bound import LateBoundParts, PassageReading


class TimedEmbedder:
    """Queries ask for the youngest bucket; every type but `semantic` is a little less alike."""

    def __init__(self):
        self.identity = EmbedderIdentity("timed", "1", 3)
        age = np.tile(np.array([0, 1, 0], np.float32), (10, 1))
        age[0] = [1, 0, 0]
        type_ = np.tile(np.array([0, 0, 1], np.float32), (4, 1))
        type_[1] = [0, 0, 0]
        self.late_bound = LateBoundParts(age, type_)

    def encode(self, texts):
        return np.zeros((len(texts), 3), np.float32)

    def encode_query(self, texts):
        return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))

    def windows(self, text, *, prefix=""):
        return [prefix + text]

    def read(self, texts):
        logits = np.zeros((len(texts), 4), np.float32)
        logits[:, 1] = 1
        importance = np.array([min(1.0, len(text) / 100) for text in texts], np.float32)
        return PassageReading(self.encode(texts), importance, logits)
