"""A language model behind OpenAI's wire protocol that finds in a message what it was told to."""

import json
import time
from contextlib import contextmanager

from tests.services.wire import running_service, says

from ekphory.http_service import ServiceSettings
from ekphory.models.chat import ChatSettings, OpenAIChat
from ekphory.service.handles import ServiceModels
from ekphory.service.learning import ExtractionSettings
from ekphory.service.memory_service import MemoryService
from ekphory.testing import HashEmbedder

QUICK = ExtractionSettings(
    attempts=3, backoff=0.02, longest_wait=0.05, poll=0.05, group=4, stop=2.0
)
CALLED = ServiceSettings(timeout=5.0, retries=0, failures=1000)


def completion(content, **fields):
    """An answer of the model, in words."""
    message = {"role": "assistant", "content": content, **fields}
    return says({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def command(action, tag, feature, value=""):
    return {"command": action, "tag": tag, "feature": feature, "value": value}


class Teacher:
    """Answers with the commands of a lesson whose text is in the message, else with none."""

    def __init__(self):
        self.lessons = {}
        self.mergers = []
        self.asked = []
        self.prompts = []

    def knows(self, text, *commands):
        self.lessons[text] = list(commands)

    def __call__(self, request):
        system, user = (each["content"] for each in request.body["messages"])
        data = json.loads(user.removeprefix("<data>\n").removesuffix("\n</data>"))
        self.prompts.append(system)
        self.asked.append(data)
        if "message" not in data:
            return completion(json.dumps({"merged": self.mergers}))
        text = data["message"]["text"]
        found = [each for known, each in self.lessons.items() if known in text]
        return completion(json.dumps({"commands": found[0] if found else []}))

    def texts(self):
        """The texts of the messages that it was asked about, in order."""
        return [data["message"]["text"] for data in self.asked if "message" in data]


@contextmanager
def learning_service(store, host, *, settings=QUICK, **changed):
    """A service on a store, which asks the chat service at an address."""
    chat = OpenAIChat(host, settings=ChatSettings(model="small", service=CALLED))
    models = ServiceModels(embedder=HashEmbedder(), chat=chat, **changed)
    with MemoryService(store, models=models, extraction=settings) as service:
        yield service
    chat.close()


@contextmanager
def taught():
    """Runs the model, and returns the wire, whose `answer` is a teacher."""
    with running_service() as wire:
        yield wire


def until(condition, seconds=20.0):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
