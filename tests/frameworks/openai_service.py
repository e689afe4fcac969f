"""OpenAI's Responses API on this machine: answers what it is told to."""

from tests.cases import read_tables
from tests.services.wire import says

SHAPES = read_tables(__file__)


def response(*items):
    return says({**SHAPES["response"], "output": list(items)})


def said(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {**SHAPES["message"], "content": [part]}


def called(name, arguments):
    return {**SHAPES["call"], "name": name, "arguments": arguments}


def thought(text):
    return {**SHAPES["reasoning"], "summary": [{"type": "summary_text", "text": text}]}
