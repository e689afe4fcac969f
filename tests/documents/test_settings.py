import base64
import io
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from ekphory.documents.settings import RemotePageReader, find_page_reader
from ekphory.errors import InvalidInput, ServiceError
from ekphory.http_service import ServiceSettings

PAGE = np.full((40, 30, 3), (10, 20, 30), np.uint8)
ONCE = ServiceSettings(retries=0)


class Handler(BaseHTTPRequestHandler):
    """Answers what the server was told, and keeps what it was asked."""

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, self.headers["Authorization"], json.loads(content)))
        answer = json.dumps(self.server.answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format, *arguments):  # noqa: A002  as inherited
        """Keep the test's output clean."""


@contextmanager
def service(answer):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answer, server.asked = answer, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def says(text, **choice):
    return {"choices": [{"message": {"role": "assistant", "content": text}, **choice}]}


def test_a_page_is_sent_as_a_picture_and_the_answer_is_its_text():
    with service(says("Lease agreement\n850 euros")) as (server, url):
        reader = RemotePageReader(url, model="sees", api_key="key")
        assert reader.read(PAGE) == "Lease agreement\n850 euros"
    ((path, key, asked),) = server.asked
    assert (path, key, asked["model"]) == ("/v1/chat/completions", "Bearer key", "sees")
    sent = asked["messages"][0]["content"][1]["image_url"]["url"]
    picture = Image.open(io.BytesIO(base64.b64decode(sent.removeprefix("data:image/png;base64,"))))
    assert (picture.size, picture.getpixel((0, 0))) == ((30, 40), (10, 20, 30))


def test_a_page_without_text_is_empty():
    with service(says(None)) as (_, url):
        assert RemotePageReader(url, model="sees").read(PAGE) == ""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "answered no message"),
        ({"choices": []}, "answered no message"),
        (says(["x"]), "answered a list in place of text"),
        (says("half a pa", finish_reason="length"), "stopped before the end of the page"),
    ],
)
def test_an_answer_that_is_no_page_is_a_service_error(answer, message):
    with service(answer) as (_, url):
        reader = RemotePageReader(url, model="sees", settings=ONCE)
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
