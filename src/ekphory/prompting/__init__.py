"""Memories for a prompt: escaped, framed as data, filtered, without repeats, within a budget."""

from ekphory.prompting.block import (
    BlockSettings,
    LeftOut,
    PromptBlock,
    already_said,
    estimate_tokens,
    fit_token_budget,
    measure_overlap,
    prompt_block,
)
from ekphory.prompting.injection import InjectionVerdict, find_injection

__all__ = [
    "BlockSettings",
    "InjectionVerdict",
    "LeftOut",
    "PromptBlock",
    "already_said",
    "estimate_tokens",
    "find_injection",
    "fit_token_budget",
    "measure_overlap",
    "prompt_block",
]
