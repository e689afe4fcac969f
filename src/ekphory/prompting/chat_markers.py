"""What chat templates mark turns and roles with, in the forms that models were trained on."""

from __future__ import annotations

import re

_NAMED = "|".join(
    (
        r"/?INST",
        r"/?SYS",
        r"/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|PREFIX|SUFFIX)",
    )
)
_MARKER = re.compile(
    # <|im_start|>, also with the full-width brackets and bars that some tokenizers use or fold
    r"[<＜][|｜]([\w▁./ -]{1,64})[|｜][>＞]"
    # [INST], [/INST], [SYSTEM_PROMPT]
    rf"|[\[［]({_NAMED})[\]］]"
    # <<SYS>>, <</SYS>>
    r"|[<＜]{2}(/?SYS)[>＞]{2}"
    # <s>, </s>, <bos>, <start_of_turn>, <end_of_turn>
    r"|[<＜](/?s|bos|eos|(?:start|end)_of_turn)[>＞]",
    re.IGNORECASE,
)

_OPENS_A_TURN = re.compile(
    r"[<＜][|｜][\w▁./-]{2,64}[|｜][>＞]"
    rf"|[\[［](?:{_NAMED})[\]］]"
    r"|[<＜]{2}/?SYS[>＞]{2}"
    r"|[<＜](?:start|end)_of_turn[>＞]"
    # <system>, </user>, [system message]
    r"|</?(?:system|assistant|developer)(?:[ _-](?:prompt|message|instructions?))?>"
    r"|\[(?:system|developer)(?:[ _-](?:prompt|message|note|instructions?|override|update))?\]"
    # ### System:
    r"|^#{2,4} ?(?:system|instructions?|assistant|human)(?: prompt)? ?:",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST_SIGNS = frozenset("<＜[［#")
"""With one of them every such marker begins."""


def neutralised(text: str) -> str:
    """Put round brackets around the names of markers: `<|im_start|>` becomes `(im_start)`."""
    return _MARKER.sub(lambda match: f"({match[match.lastindex or 0]})", text)


def opens_a_turn(text: str) -> bool:
    """Say whether a text holds a marker that has no use but to open or close a chat turn.

    `<s>` is none of them: it is also HTML.
    """
    return not _FIRST_SIGNS.isdisjoint(text) and _OPENS_A_TURN.search(text) is not None
