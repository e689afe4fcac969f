"""Embeddings as LangChain's client of OpenAI asks for them."""

import numpy as np
import openai
import pytest
from langchain_openai import OpenAIEmbeddings

from ekphory.testing.models import HashEmbedder

TEXTS = ["I prefer tea", "it rained"]


def test_langchains_client_gets_the_embedders_vectors(server):
    client = OpenAIEmbeddings(
        base_url=f"{server.url}/v1", api_key="any", check_embedding_ctx_length=False
    )
    np.testing.assert_allclose(
        client.embed_documents(TEXTS), HashEmbedder().encode(TEXTS), atol=1e-7
    )
    np.testing.assert_allclose(
        client.embed_query(TEXTS[0]), HashEmbedder().encode(TEXTS[:1])[0], atol=1e-7
    )


def test_tokens_that_it_sends_by_default_are_refused_with_the_remedy(server):
    client = OpenAIEmbeddings(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.UnprocessableEntityError, match="check_embedding_ctx_length=False"):
        client.client.create(input=[[40, 10108, 15600]], model="any")
