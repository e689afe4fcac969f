"""What is left of a query when time and the words of any question are taken away."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")

# What a question about a time is made of, whatever the time; none of these is looked for.
_FILLER = frozenset(
    # questions and requests
    "what what's whats which who whom when how please tell show give list find get fetch recall "
    "remind remember summarize summarise summary summaries "
    "recap overview describe outline review repeat "
    "let know want need see look looking pull bring search do does did done doing can could would "
    "will should may might shall must ok okay hey hi hello so well also just again exactly "
    "actually really maybe perhaps only even yet still "
    # what was said
    "talk talked talking talks discuss discussed discussing discussion discussions chat chatted "
    "chatting chats speak spoke spoken speaking say said saying mention mentioned mentioning "
    "conversation conversations converse conversed dialogue dialogues dialog session sessions "
    "exchange exchanged cover covered come came up brought bring go went going gone over through "
    "happen happened happening happens occur occurred place took take meeting meetings call calls "
    "message messages memory memories note notes entry entries record records recorded stored "
    "log logs history share shared "
    "topic topics subject subjects thing things stuff sort sorts kind kinds type types matter "
    "matters something anything everything all any some every each point points detail details "
    "content contents highlight highlights main key one ones "
    # everything that carries nothing
    "a an the this that these those there here he she they him her them his their it its it's i me "
    "my mine we us our ours you your yours and or but not no nor "
    "if then than as at by for from in into of off on onto out to "
    "toward towards with within without about around between during since until till before after "
    "while through throughout across back ago ever be been being am are is was were has have had "
    "having i'd i've i'm we'd we've we're you've you're didn't don't did n't s t d ve re ll m "
    "over up down per together both more most very much many lot first last next previous past "
    "earlier later latest recent time times date dates day days on whole entire according per "
    "early late".split()
)


def without_filler(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Give the words of a text outside of these spans that say what is looked for."""
    kept: list[str] = []
    taken = sorted(spans)
    for match in _WORD.finditer(text):
        if any(start <= match.start() < end for start, end in taken):
            continue
        if match[0].lower().removesuffix("'s") not in _FILLER:
            kept.append(match[0])
    return " ".join(kept)
