"""Embeddings as LangChain's client of OpenAI asks for them."""

import numpy as np
from langchain_openai import OpenAIEmbeddings

from ekphory.testing import HashEmbedder

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
