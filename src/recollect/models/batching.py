"""Groups inputs of like length, so that little is computed for padding."""

from __future__ import annotations

from collections.abc import Sequence


def length_batches(lengths: Sequence[int], *, most_tokens: int) -> list[list[int]]:
    """Give the positions of inputs in batches, longest first.

    Args:
        lengths: Tokens of each input.
        most_tokens: Most tokens of a batch, padding included; a longer input is alone in its batch.
    """
    batches: list[list[int]] = []
    room = 0
    for position in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if room <= 0:
            batches.append([])
            room = max(1, most_tokens // max(1, lengths[position]))
        batches[-1].append(position)
        room -= 1
    return batches
