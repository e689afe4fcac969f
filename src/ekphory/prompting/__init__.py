"""Memories for a prompt: escaped, framed as data, filtered, without repeats, within a budget."""

from ekphory.prompting.block import BlockSettings, LeftOut, PromptBlock, prompt_block
from ekphory.prompting.context_overlap import already_said, overlap
from ekphory.prompting.injection import InjectionVerdict, find_injection
from ekphory.prompting.token_budget import estimate_tokens, within_budget

__all__ = [
    "BlockSettings",
    "InjectionVerdict",
    "LeftOut",
    "PromptBlock",
    "already_said",
    "estimate_tokens",
    "find_injection",
    "overlap",
    "prompt_block",
    "within_budget",
]
