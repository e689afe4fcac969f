import pytest

from ekphory.errors import InvalidInput
from ekphory.http_service import Service, ServiceSettings


def test_an_error_says_which_service_where_which_model_what_and_what_to_do():
    service = Service(kind="chat service", url="https://a:b@host/v1?k=1", model="small")

    assert str(service.error("broke", "Mend it.")) == (
        "The chat service at https://host/v1 (model 'small') broke. Mend it."
    )


def test_a_service_without_a_model_names_none():
    service = Service(kind="reranking service", url="https://host/rerank")

    assert service.describe() == "reranking service at https://host/rerank"


@pytest.mark.parametrize("key", ["ge\nheim", "geheim ", "gehüm-ü", "geheim\0"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    with pytest.raises(InvalidInput, match="api_key") as caught:
        Service(kind="chat service", url="https://host", api_key=key)

    assert "ge" not in caught.value.value


def test_the_key_is_not_in_the_repr():
    assert "geheim" not in repr(Service(kind="k", url="https://u:geheim@h", api_key="geheim"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("timeout", 0), ("most_bytes", 0), ("failures", 0), ("retries", -1), ("cool_down", -1.0)],
)
def test_settings_that_no_service_can_be_called_with_are_refused(name, value):
    with pytest.raises(InvalidInput, match=name):
        ServiceSettings(**{name: value})
