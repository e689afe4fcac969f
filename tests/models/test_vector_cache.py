import threading

import numpy as np

from ekphory.models.embedder import LONGEST_KEY, VectorCache


class Counted:
    """Gives each text the vector (its length, 1) and counts how often it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.extend(texts)
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)


def test_a_repeated_text_is_computed_once():
    cache, missing = VectorCache(10), Counted()

    cache.encode(["tea"], missing=missing)
    again = cache.encode(["tea"], missing=missing)

    assert again.tolist() == [[3, 1]]
    assert missing.asked == ["tea"]


def test_texts_keep_their_order_when_only_some_are_known():
    cache, missing = VectorCache(10), Counted()
    cache.encode(["four"], missing=missing)

    vectors = cache.encode(["a", "four", "bb", "a"], missing=missing)

    assert vectors.tolist() == [[1, 1], [4, 1], [2, 1], [1, 1]]
    assert missing.asked == ["four", "a", "bb"]


def test_the_text_that_was_used_longest_ago_is_forgotten_first():
    cache, missing = VectorCache(2), Counted()
    for text in ("a", "bb", "a", "ccc"):
        cache.encode([text], missing=missing)

    missing.asked.clear()
    cache.encode(["a", "ccc", "bb"], missing=missing)

    assert missing.asked == ["bb"]
    assert len(cache) == 2


def test_a_change_of_a_result_does_not_reach_the_cache():
    cache, missing = VectorCache(10), Counted()
    cache.encode(["tea"], missing=missing)[:] = 99

    assert cache.encode(["tea"], missing=missing).tolist() == [[3, 1]]


def test_very_long_texts_are_not_kept():
    cache = VectorCache(10)

    cache.encode(["x" * (LONGEST_KEY + 1)], missing=Counted())

    assert len(cache) == 0


def test_no_texts_give_an_empty_matrix():
    assert VectorCache(10).encode([], missing=Counted()).shape == (0, 2)


def test_a_cache_of_no_capacity_still_answers():
    assert VectorCache(0).encode(["tea"], missing=Counted()).tolist() == [[3, 1]]


def test_many_threads_get_the_right_vectors():
    cache, wrong = VectorCache(5), []

    def ask(seed):
        for number in range(300):
            text = "x" * ((number * seed) % 11)
            if cache.encode([text], missing=Counted())[0, 0] != len(text):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (1, 3, 7, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert len(cache) == 5
