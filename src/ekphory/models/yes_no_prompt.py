"""How Qwen3-Reranker and MemReranker are asked whether a document is what a query wants.

Source of the texts: the model cards of Qwen/Qwen3-Reranker-4B and IAAR-Shanghai/MemReranker-4B,
section Transformers. Their section vLLM ends the user's turn twice and has empty lines between the
parts; here both runtimes get the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekphory.errors import ModelError
from ekphory.models.encodable import encodable
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.rerank_wording import passage_in_words, query_in_words
from ekphory.models.telling_window import CHARACTERS_PER_TOKEN

MOST_TOKENS = 8192
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


class YesNoPrompt:
    """Turns queries and passages into token ids that end where the answer begins."""

    def __init__(self, tokenizer: Any, *, most_tokens: int = MOST_TOKENS) -> None:  # noqa: ANN401  transformers'
        """Look up what the tokenizer calls prefix, suffix, yes and no.

        Args:
            tokenizer: A tokenizer of transformers.
            most_tokens: Longest input, prefix and suffix included.

        Raises:
            ModelError: It has no single token for `yes` or for `no`.
        """
        self._tokenizer = tokenizer
        self.yes, self.no = _token_id(tokenizer, "yes"), _token_id(tokenizer, "no")
        self._prefix: list[int] = tokenizer.encode(PREFIX, add_special_tokens=False)
        self._suffix: list[int] = tokenizer.encode(SUFFIX, add_special_tokens=False)
        self._room = most_tokens - len(self._prefix) - len(self._suffix)

    def token_ids(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[list[int]]:
        """Give the token ids for each passage; of what is too long the end is cut off.

        A mark of the dialogue's format, such as `<|im_end|>`, in a text is text.
        """
        if not passages:
            return []
        bodies = [
            _body(query, passage)[: self._room * CHARACTERS_PER_TOKEN] for passage in passages
        ]
        encoded = self._tokenizer(
            bodies,
            padding=False,
            truncation="longest_first",
            return_attention_mask=False,
            max_length=self._room,
            split_special_tokens=True,
        )
        return [[*self._prefix, *ids, *self._suffix] for ids in encoded["input_ids"]]


def _body(query: RerankQuery, passage: RerankPassage) -> str:
    instruction = INSTRUCTION if query.instruction is None else query.instruction
    asked, told = query_in_words(query), passage_in_words(passage)
    return encodable(f"<Instruct>: {instruction}\n<Query>: {asked}\n<Document>: {told}")


def _token_id(tokenizer: Any, token: str) -> int:  # noqa: ANN401  transformers'
    known = tokenizer.convert_tokens_to_ids(token)
    if known is None or known == tokenizer.unk_token_id:
        raise ModelError(
            f"The tokenizer of {tokenizer.name_or_path} has no token {token!r}. Take a model that "
            "answers yes or no, such as Qwen3-Reranker or MemReranker."
        )
    return int(known)
