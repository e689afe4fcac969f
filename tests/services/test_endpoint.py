from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory.http_service import complete_url, shown


@pytest.mark.parametrize(
    ("url", "completed"),
    [
        ("http://host:8080", "http://host:8080/v1/rerank"),
        ("http://host/", "http://host/v1/rerank"),
        ("https://host/v1", "https://host/v1/rerank"),
        ("https://host/proxy/v3/", "https://host/proxy/v3/rerank"),
        ("https://host/rerank", "https://host/rerank"),
        ("https://host/v1?version=2#part", "https://host/v1/rerank?version=2"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1/rerank"),
    ],
)
def test_a_host_a_base_and_an_endpoint_become_the_endpoint(url, completed):
    assert complete_url(url, prefix="/v1", operation="/rerank") == completed


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:80",
        "ftp://host/v1",
        "http://",
        "http://:80/",
        "http://host:abc",
        "http://host:99999",
        "http://[",
        " http://host",
        "http://host:0",
        "http://" + "a" * 64,
        None,
    ],
)
def test_what_is_no_url_is_refused(url):
    with pytest.raises(InvalidInput, match=r"url=.*not an http"):
        complete_url(url, prefix="/v1", operation="/rerank")


def test_a_refused_url_does_not_show_its_password_or_query():
    with pytest.raises(InvalidInput) as caught:
        complete_url("ftp://user:geheim@host/v1?key=geheim", prefix="/v1", operation="/rerank")

    assert "geheim" not in f"{caught.value} {caught.value.value}"


@given(st.text())
def test_whatever_follows_http_is_refused_or_a_url_that_can_be_called(text):
    try:
        completed = complete_url(f"http://{text}", prefix="/v1", operation="/rerank")
    except InvalidInput:
        return
    assert httpx.URL(completed).host.encode("idna")
    assert urlsplit(completed).path.endswith("/rerank")


def test_what_is_shown_has_no_user_password_or_query():
    assert shown("https://user:pass@host:81/v1/rerank?key=1") == "https://host:81/v1/rerank"
