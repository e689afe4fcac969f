"""Groups inputs of like length, so that little is computed for padding."""

from __future__ import annotations

from collections.abc import Sequence

LEAST_TOKENS = 128  # what is worth a thread of its own


def length_batches(
    lengths: Sequence[int], *, most_tokens: int, threads: int = 1
) -> list[list[int]]:
    """Give the positions of inputs in batches, longest first.

    For several threads the last batches get smaller, so that no thread waits long for another.

    Args:
        lengths: Tokens of each input.
        most_tokens: Most tokens of a batch, padding included; a longer input is alone in its batch.
        threads: How many batches are computed at a time. For more than one a batch has, above 128
            tokens, at most one thread's share of what is left.
    """
    batches: list[list[int]] = []
    room, left = 0, sum(lengths)
    for position in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if room <= 0:
            batches.append([])
            share = most_tokens if threads == 1 else max(LEAST_TOKENS, left // threads)
            room = max(1, min(most_tokens, share) // max(1, lengths[position]))
        batches[-1].append(position)
        left -= lengths[position]
        room -= 1
    return batches
