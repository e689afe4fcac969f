import base64
import io

import numpy as np
import pytest
from PIL import Image
from tests.services.wire import running_service, says

from ekphory.documents.settings import RemotePageReader, find_page_reader
from ekphory.errors import InvalidInput, ServiceError
from ekphory.http_service import ServiceSettings

PAGE = np.full((40, 30, 3), (10, 20, 30), np.uint8)
ONCE = ServiceSettings(retries=0)


def telling(text, **choice):
    """A chat service that answers so."""
    message = {"message": {"role": "assistant", "content": text}, **choice}
    return running_service(lambda _: says({"choices": [message]}))


def test_a_page_is_sent_as_a_picture_and_the_answer_is_its_text():
    with telling("Lease agreement\n850 euros") as service:
        reader = RemotePageReader(service.host, model="sees", api_key="key")
        assert reader.read(PAGE) == "Lease agreement\n850 euros"
    (request,), (asked,) = service.asked, service.bodies
    assert (request.path, asked["model"]) == ("/v1/chat/completions", "sees")
    assert request.headers["Authorization"] == "Bearer key"
    sent = asked["messages"][0]["content"][1]["image_url"]["url"]
    picture = Image.open(io.BytesIO(base64.b64decode(sent.removeprefix("data:image/png;base64,"))))
    assert (picture.size, picture.getpixel((0, 0))) == ((30, 40), (10, 20, 30))


def test_a_page_without_text_is_empty():
    with telling(None) as service:
        assert RemotePageReader(service.host, model="sees").read(PAGE) == ""


CUT_OFF = {"message": {"content": "half a pa"}, "finish_reason": "length"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "answered no message"),
        ({"choices": []}, "answered no message"),
        ({"choices": [{"message": {"content": ["x"]}}]}, "answered a list in place of text"),
        ({"choices": [CUT_OFF]}, "stopped before the end of the page"),
    ],
)
def test_an_answer_that_is_no_page_is_a_service_error(answer, message):
    with running_service(lambda _: says(answer)) as service:
        reader = RemotePageReader(service.host, model="sees", settings=ONCE)
        with pytest.raises(ServiceError, match=message):
            reader.read(PAGE)


def test_a_service_that_cannot_be_reached_is_a_service_error():
    reader = RemotePageReader("http://127.0.0.1:9/v1", model="sees", settings=ONCE)
    with pytest.raises(ServiceError, match="The page reading service at http"):
        reader.read(PAGE)


def test_a_name_means_a_reader():
    assert find_page_reader("off") is None
    assert find_page_reader().name == "rapidocr"
    assert find_page_reader("http://localhost:1/v1", model="sees").name == "sees"


@pytest.mark.parametrize(
    ("name", "message"),
    [("eyes", "no such page reader"), ("http://localhost:1/v1", "is asked for a model")],
)
def test_a_name_that_means_none_is_refused(name, message):
    with pytest.raises(InvalidInput, match=message):
        find_page_reader(name)
