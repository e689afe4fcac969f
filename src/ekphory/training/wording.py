"""Other words for the same thing, so that a question does not only repeat its answer's words."""

from __future__ import annotations

import re
from random import Random

_SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("love", "like", "enjoy"),
    ("loves", "likes", "enjoys"),
    ("favorite", "favourite", "preferred"),
    ("for a living", "for work", "as a job"),
    ("job", "profession", "occupation", "career"),
    ("kids", "children"),
    ("kid", "child"),
    ("mom", "mother"),
    ("dad", "father"),
    ("movie", "film"),
    ("movies", "films"),
    ("buy", "purchase", "get"),
    ("start", "begin"),
    ("big", "large"),
    ("house", "home"),
    ("car", "vehicle"),
    ("trip", "journey", "vacation"),
    ("pet", "animal"),
    ("pets", "animals"),
    ("hobby", "pastime", "interest"),
    ("hobbies", "pastimes", "interests"),
    ("for fun", "in their free time", "in their spare time"),
    ("food", "dish", "meal"),
    ("meet", "get to know"),
    ("live", "reside"),
    ("want", "wish", "plan"),
    ("study", "learn", "major in"),
    ("songs", "music", "tracks"),
    ("band", "group"),
    ("talk about", "discuss", "mention"),
    ("suggest", "recommend", "propose"),
    ("suggested", "recommended", "proposed"),
    ("cook", "make", "prepare"),
    ("bike", "bicycle"),
    ("doctor", "physician"),
    ("sick", "ill"),
    ("happy", "glad", "pleased"),
    ("scared of", "afraid of"),
    ("beautiful", "lovely"),
    ("work as", "do for work as"),
    ("look for", "search for", "try to find"),
    ("town", "city"),
    ("price", "cost"),
    ("give", "provide"),
    ("choose", "pick"),
    ("help", "assist"),
    ("workout", "exercise"),
    ("married", "wed"),
    ("spouse", "partner"),
    ("brother", "sibling"),
    ("sister", "sibling"),
    ("college", "university"),
    ("store", "shop"),
    ("visit", "go to", "travel to"),
)
_BY_WORD = {word: group for group in _SYNONYMS for word in group}
_KNOWN = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _BY_WORD), key=len, reverse=True)) + r")\b"
)


def reworded(text: str, random: Random, *, share: float = 0.4) -> str:
    """Replace each word that has synonyms by one of them, with probability `share`."""

    def replaced(match: re.Match[str]) -> str:
        if random.random() >= share:
            return match[0]
        return random.choice([word for word in _BY_WORD[match[0]] if word != match[0]])

    return _KNOWN.sub(replaced, text)
