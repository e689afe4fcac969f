"""Models of Amazon Bedrock, in its own protocol: embedding, chat and reranking.

Requests are signed and repeated by boto3, which finds credentials as AWS's tools do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import numpy as np

from ekphory import http_service as http
from ekphory.errors import InvalidInput, MissingExtra, ServiceError
from ekphory.models import embedder, reranker
from ekphory.models.chat import (
    ChatCompletions,
    ChatDialect,
    ChatSettings,
    name_refused_field,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockSettings:
    """Which model is asked, and with whose credentials.

    Attributes:
        model_id: The model's id or ARN, such as `amazon.titan-embed-text-v2:0`.
        region: AWS's region; None leaves it to boto3, which reads `AWS_DEFAULT_REGION` and the
            configuration of AWS's tools.
        aws_access_key_id, aws_secret_access_key, aws_session_token: Credentials, never shown; None
            leaves them to boto3 likewise.
        additional_model_request_fields: What else the model is sent with a chat or a reranking.
        service: How long and how often it is asked.
    """

    model_id: str
    region: str | None = None
    aws_access_key_id: str | None = field(default=None, repr=False)
    aws_secret_access_key: str | None = field(default=None, repr=False)
    aws_session_token: str | None = field(default=None, repr=False)
    additional_model_request_fields: Mapping[str, Any] = field(default_factory=dict)
    service: http.ServiceSettings = http.DEFAULT_SERVICE_SETTINGS

    def __post_init__(self) -> None:
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            missing = "access_key_id" if self.aws_access_key_id is None else "secret_access_key"
            problem = "an access key and its secret go together"
            raise InvalidInput(f"aws_{missing}", None, problem, "Give both, or neither")


# The one way in which Bedrock is called.

_ApiName = Literal["bedrock-runtime", "bedrock-agent-runtime"]
_ASK_AWS = "Check the model's id, the region, and what the credentials may do."


class _Bedrock:
    """Calls one of Bedrock's two APIs. Safe to use from several threads."""

    def __init__(self, api: _ApiName, kind: str, settings: BedrockSettings) -> None:
        self._api = api
        self._settings = settings
        self._client = self._connect()
        self._process = os.getpid()
        self.service = http.Service(
            kind=f"{kind} of Amazon Bedrock",
            url=self._client.meta.endpoint_url,
            model=settings.model_id,
        )

    @property
    def client(self) -> Any:  # noqa: ANN401  boto3 makes the class when it is called
        """The client; a fork that used its parent's connections would read its answers."""
        if self._process != os.getpid():
            self._client = self._connect()
            self._process = os.getpid()
        return self._client

    def _connect(self) -> Any:  # noqa: ANN401
        try:
            from boto3.session import Session
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ProfileNotFound
        except ImportError as error:
            raise MissingExtra("bedrock", "A model of Amazon Bedrock") from error
        settings, asked = self._settings, self._settings.service
        config = Config(
            connect_timeout=asked.timeout,
            read_timeout=asked.timeout,
            retries={"mode": "standard", "total_max_attempts": 1 + asked.retries},
        )
        try:
            session = Session(
                aws_access_key_id=settings.aws_access_key_id,
                aws_secret_access_key=settings.aws_secret_access_key,
                aws_session_token=settings.aws_session_token,
                region_name=settings.region,
            )
            return session.client(self._api, config=config)
        except ProfileNotFound as error:
            remedy = "Name a profile that the files of AWS's tools have"
            profile = os.environ.get("AWS_PROFILE")
            raise InvalidInput("AWS_PROFILE", profile, self._hide(str(error)), remedy) from error
        except (BotoCoreError, ValueError) as error:
            remedy = "Give a region, or set AWS_DEFAULT_REGION"
            raise InvalidInput("region", settings.region, self._hide(str(error)), remedy) from error

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Word what boto3 raises as errors of a service."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionError,  # noqa: A004  boto3's own
            HTTPClientError,
        )

        try:
            yield
        except ClientError as error:
            raise self._refuse(error.response) from error
        except (ConnectionError, HTTPClientError) as error:
            message = self.service.message(f"could not be asked: {self._hide(str(error))}")
            raise http.ServiceUnavailable(message) from error
        except BotoCoreError as error:
            problem = f"could not be asked: {self._hide(str(error))}"
            raise self.service.error(problem, _ASK_AWS) from error

    def _refuse(self, answer: Mapping[str, Any]) -> ServiceError:
        status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
        told = answer.get("Error", {})
        said = self._hide(f"{told.get('Code', '')}: {told.get('Message', '')}")
        return self.service.refusal(status, said, body=name_refused_field(said), remedy=_ASK_AWS)

    def _hide(self, said: str) -> str:
        """Leave the credentials out of what AWS quotes of a request."""
        settings = self._settings
        for secret in (
            settings.aws_access_key_id,
            settings.aws_secret_access_key,
            settings.aws_session_token,
        ):
            said = said.replace(secret, "***") if secret else said
        return said

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


# Embedding.

_TITAN_THREADS = 8
"""Titan takes one text a request; so many are sent at a time."""
_COHERE_TEXTS = 96
"""Most texts of one request to Cohere's models."""
_MAX_TOKENS = 512
"""Window of Cohere's models, the shorter ones, in tokens that are counted with a margin."""
_CohereInput = Literal["search_query", "search_document"]


class BedrockEmbedder:
    """An embedding model of Titan or Cohere on Bedrock. Safe to call from several threads.

    Attributes:
        identity: The model's id, and the dimension that it gave.
    """

    def __init__(self, settings: BedrockSettings) -> None:
        """Ask for one vector, to learn the dimension.

        Raises:
            InvalidInput: The model is of another family, or the region cannot be one.
            MissingExtra: It needs the `[bedrock]` extra.
            ServiceError: Bedrock cannot be reached, refuses, or answers nonsense.
        """
        families = [name for name in ("cohere", "titan") if name in settings.model_id]
        if not families:
            problem = "must be an embedding model of Amazon Titan or Cohere"
            raise InvalidInput("model_id", settings.model_id, problem, "Name another")
        self._is_cohere = families == ["cohere"]
        self._settings = settings
        self._bedrock = _Bedrock("bedrock-runtime", "embedding model", settings)
        self._queries = embedder.VectorCache()
        dimension = self._ask(["dimension"], "search_document").shape[1]
        self.identity = embedder.EmbedderIdentity(settings.model_id, "bedrock", dimension)

    def __repr__(self) -> str:
        return f"BedrockEmbedder({self._settings!r})"

    def encode(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed passages; returns shape (len(texts), dimension), rows of length 1.

        Raises:
            ServiceError: Bedrock failed after all repeats, or its answer is malformed.
        """
        if not texts:
            return np.empty((0, self.identity.dimension), np.float32)
        return self._encode(texts, "search_document")

    def encode_query(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed queries; the vectors of the last ones are kept and not asked for again."""
        if not texts:
            return self.encode([])
        return self._queries.encode(
            texts, missing=lambda asked: self._encode(asked, "search_query")
        )

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into pieces that fit the model, by a count on the safe side."""
        return embedder.split_behind_prefix(
            text, prefix, room=_MAX_TOKENS - 2, tokenise=embedder.overestimate_tokens
        )

    def close(self) -> None:
        """Close the connections."""
        self._bedrock.close()

    def _encode(self, texts: Sequence[str], purpose: _CohereInput) -> embedder.FloatMatrix:
        vectors, dimension = self._ask(texts, purpose), self.identity.dimension
        if vectors.shape[1] != dimension:
            problem = f"gave vectors of length {vectors.shape[1]}, before {dimension}"
            raise self._bedrock.service.error(problem)
        return vectors

    def _ask(self, texts: Sequence[str], purpose: _CohereInput) -> embedder.FloatMatrix:
        if self._is_cohere:
            starts = range(0, len(texts), _COHERE_TEXTS)
            batches = [list(texts[start : start + _COHERE_TEXTS]) for start in starts]
            rows = [row for batch in batches for row in self._ask_cohere(batch, purpose)]
        else:
            with ThreadPoolExecutor(_TITAN_THREADS) as threads:
                rows = list(threads.map(self._ask_titan, texts))
        try:
            vectors = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            problem = "gave vectors of several lengths, or what holds no numbers"
            raise self._bedrock.service.error(problem) from error
        try:
            return embedder.as_unit_rows(vectors)
        except ValueError as error:
            raise self._bedrock.service.error(str(error)) from error

    def _ask_titan(self, text: str) -> Any:  # noqa: ANN401  whatever JSON holds
        return self._find_rows(self._invoke({"inputText": text}), "embedding")

    def _ask_cohere(self, texts: list[str], purpose: _CohereInput) -> Any:  # noqa: ANN401
        body = {"texts": texts, "input_type": purpose, "truncate": "END"}
        answer = self._invoke(body)
        found = self._find_rows(answer, "embeddings")
        # Version 4 answers by the type of its numbers.
        rows = self._find_rows(found, "float") if isinstance(found, dict) else found
        if len(rows) != len(texts):
            problem = f"was sent {len(texts)} texts and gave {len(rows)} embeddings"
            raise self._bedrock.service.error(problem)
        return rows

    def _find_rows(self, answer: Any, name: str) -> Any:  # noqa: ANN401
        try:
            return answer[name]
        except (KeyError, TypeError) as error:
            said = self._bedrock.service.quote(str(answer))
            raise self._bedrock.service.error(f"answered no {name}: {said}") from error

    def _invoke(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401
        with self._bedrock.errors():
            answer = self._bedrock.client.invoke_model(
                modelId=self._settings.model_id,
                body=http.as_json(body),
                contentType="application/json",
                accept="application/json",
            )
            content = answer["body"].read()
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            said = self._bedrock.service.quote(content.decode("utf-8", "replace"))
            raise self._bedrock.service.error(f"answered what is not JSON: {said}") from error


# Chat, by Bedrock's operation Converse.

_ENDINGS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}
"""Why an answer ended, in the words of chat completions."""


class BedrockChat(ChatCompletions):
    """A chat model on Bedrock."""

    def __init__(self, settings: BedrockSettings) -> None:
        """Prepare the connection; nothing is sent before the first question.

        Raises:
            InvalidInput: The region cannot be one.
            MissingExtra: It needs the `[bedrock]` extra.
        """
        transport = _Converse(settings)
        super().__init__(
            transport.service,
            transport,
            settings=ChatSettings(model=settings.model_id),
            # Converse names no form of an answer that all of its models understand.
            dialect=ChatDialect(json_format="text"),
        )


class _Converse:
    """Carries a chat completion as a conversation of Bedrock."""

    def __init__(self, settings: BedrockSettings) -> None:
        self._settings = settings
        self._bedrock = _Bedrock("bedrock-runtime", "chat model", settings)
        self.service = self._bedrock.service

    def post(self, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the answer, in the form of a chat completion."""
        sent = json.loads(http.as_json(body))
        said = [(each["role"], {"text": each["content"]}) for each in sent["messages"]]
        limits = {"maxTokens": body["max_tokens"]}
        if "temperature" in body:
            limits["temperature"] = body["temperature"]
        fields = dict(self._settings.additional_model_request_fields)
        with self._bedrock.errors():
            answer = self._bedrock.client.converse(
                modelId=self._settings.model_id,
                system=[text for role, text in said if role == "system"],
                messages=[
                    {"role": role, "content": [text]} for role, text in said if role != "system"
                ],
                inferenceConfig=limits,
                **({"additionalModelRequestFields": fields} if fields else {}),
            )
        return _as_completion(answer)

    def close(self) -> None:
        """Close the connections."""
        self._bedrock.close()


def _as_completion(answer: Mapping[str, Any]) -> dict[str, Any]:
    parts = answer.get("output", {}).get("message", {}).get("content", [])
    ending = answer.get("stopReason", "")
    used = answer.get("usage", {})
    return {
        "choices": [
            {
                # Other parts are tools and what the model thought aloud.
                "message": {"content": "".join(part.get("text", "") for part in parts)},
                "finish_reason": _ENDINGS.get(ending, ending),
            }
        ],
        "usage": {
            "prompt_tokens": used.get("inputTokens"),
            "completion_tokens": used.get("outputTokens"),
        },
    }


# Reranking.

_MOST_SOURCES = 1_000


class BedrockReranker:
    """A reranking model on Bedrock. Safe to call from several threads.

    Attributes:
        name: `bedrock:` and the model's id.
        batch_size: Most passages of one request; more are sent in several.
    """

    is_remote = True
    batch_size = _MOST_SOURCES

    def __init__(self, settings: BedrockSettings) -> None:
        """Prepare the connection; nothing is sent before the first passages are scored.

        Raises:
            InvalidInput: The region cannot be one.
            MissingExtra: It needs the `[bedrock]` extra.
        """
        self.name = f"bedrock:{settings.model_id}"
        self._settings = settings
        self._bedrock = _Bedrock("bedrock-agent-runtime", "reranking model", settings)

    def __repr__(self) -> str:
        return f"BedrockReranker({self._settings!r})"

    def score(
        self, query: reranker.RerankQuery, passages: Sequence[reranker.RerankPassage], /
    ) -> reranker.RelevanceScores:
        """Score each passage, in the order given; returns shape (len(passages),), in [0, 1].

        What is known of question and passages is put into words, neighbours excepted. No passages
        ask nothing.

        Raises:
            ServiceError: Bedrock failed after all repeats, or left a passage out, doubled one, or
                gave a score that is not in [0, 1].
        """
        asked = "\n".join([*filter(None, [query.instruction]), reranker.format_query(query)])
        told = [reranker.format_passage(passage) for passage in passages]
        starts = range(0, len(told), _MOST_SOURCES)
        parts = [self._ask(asked, told[start : start + _MOST_SOURCES]) for start in starts]
        return np.concatenate([np.empty(0, dtype=np.float32), *parts])

    def close(self) -> None:
        """Close the connections."""
        self._bedrock.close()

    def _ask(self, query: str, passages: Sequence[str]) -> reranker.RelevanceScores:
        sources = [
            {
                "type": "INLINE",
                "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": passage}},
            }
            for passage in passages
        ]
        asked = {
            "queries": [{"type": "TEXT", "textQuery": {"text": query}}],
            "sources": sources,
            "rerankingConfiguration": self._configure(len(passages)),
        }
        with self._bedrock.errors():
            rerank = self._bedrock.client.get_paginator("rerank")
            pages = rerank.paginate(**json.loads(http.as_json(asked)))
            rows = list(chain.from_iterable(page.get("results", []) for page in pages))
        try:
            return reranker.read_scores_in_order(
                rows, count=len(passages), score_field="relevanceScore", scale="probability"
            )
        except ValueError as error:
            raise self._bedrock.service.error(str(error)) from error

    def _configure(self, count: int) -> dict[str, Any]:
        model_id, meta = self._settings.model_id, self._bedrock.client.meta
        arn = f"arn:{meta.partition}:bedrock:{meta.region_name}::foundation-model/{model_id}"
        model: dict[str, Any] = {"modelArn": model_id if model_id.startswith("arn:") else arn}
        if fields := dict(self._settings.additional_model_request_fields):
            model["additionalModelRequestFields"] = fields
        told = {"numberOfResults": count, "modelConfiguration": model}
        return {"type": "BEDROCK_RERANKING_MODEL", "bedrockRerankingConfiguration": told}
