"""URLs of services: completed for calling, and stripped for showing."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx

from ekphory.errors import InvalidInput

_CREDENTIALS = re.compile(r"//[^/?#]*@")


def endpoint(url: str, *, prefix: str, operation: str) -> str:
    """Complete a service's URL to that of one operation.

    Args:
        url: The endpoint itself (`https://host/v1/rerank`), its base (`https://host/v1`), or the
            host alone (`https://host`). A query is kept.
        prefix: What stands between host and operation where the URL names no path: `/v1`.
        operation: `/rerank` and the like.

    Raises:
        InvalidInput: The URL is not one.
    """
    parts = urlsplit(_checked(url))
    path = parts.path.rstrip("/")
    if not path.endswith(operation):
        path = f"{path or prefix}{operation}"
    return parts._replace(path=path, fragment="").geturl()


def shown(url: str) -> str:
    """Leave out user, password and query: they may hold a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def secrets_in(url: str) -> set[str]:
    """Give what of a URL is never shown: its password and the values of its query."""
    parts = urlsplit(url)
    password = parts.password or ""
    return {password, unquote(password), *(value for _, value in parse_qsl(parts.query))} - {""}


def _checked(url: str) -> str:
    try:
        host = httpx.URL(url).host
        host.encode("idna")  # as connecting will, and would raise an error that is not ours
        parts = urlsplit(url)
        possible = parts.scheme in ("http", "https") and host != "" and parts.port != 0
    except (httpx.InvalidURL, ValueError, TypeError):  # a port out of range is a ValueError
        possible = False
    if not possible:
        raise InvalidInput(
            "url", _masked(url), "not an http(s) URL", "Give one like http://localhost:8080/v1."
        )
    return url


def _masked(url: object) -> str:
    return _CREDENTIALS.sub("//***@", str(url)).partition("?")[0]
