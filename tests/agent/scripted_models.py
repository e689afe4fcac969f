"""What the two services answer, as server-sent events, from scripts."""

import json
from pathlib import Path

from tests.services.wire import Reply

TEMPLATES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
OPENAI, ANTHROPIC = TEMPLATES["openai"], TEMPLATES["anthropic"]
SSE = {"Content-Type": "text/event-stream"}


def events(*rows):
    """Frame rows as server-sent events; each has a `type`."""
    lines = (f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows)
    return Reply(body="".join(lines).encode(), headers=SSE)


def fails(status, content):
    """Answer that something went wrong."""
    headers = {"Content-Type": "application/json"}
    return Reply(status=status, body=json.dumps(content).encode(), headers=headers)


def arguments(query):
    """Return the arguments of a search for a query, or what is given in their place."""
    return query if query.startswith(("{", "[")) else json.dumps({"query": query})


class OpenAIScript:
    """The Responses API."""

    provider = "openai"
    path = "/v1/responses"

    def calls(self, *queries, name="memmachine_search"):
        named = OPENAI["call"] | {"name": name}
        return self.items(
            *(
                named
                | {"id": f"fc_{number}", "call_id": f"call_{number}", "arguments": arguments(query)}
                for number, query in enumerate(queries)
            )
        )

    def shell(self, command):
        return self.items(OPENAI["shell"] | {"action": {"commands": [command]}})

    def says(self, text):
        return self._message({"type": "output_text", "text": text, "annotations": []})

    def refuses(self):
        return self._message(OPENAI["refusal"])

    def is_cut_off(self):
        response = self._response([], status="incomplete") | OPENAI["cut off"]
        return events({"type": "response.incomplete", "sequence_number": 1, "response": response})

    def items(self, *items):
        response = self._response(list(items))
        return events(
            {"type": "response.created", "sequence_number": 0, "response": self._response([])},
            {"type": "response.completed", "sequence_number": 1, "response": response},
        )

    def tool_answers(self, body):
        return [
            item["output"] for item in body["input"] if item.get("type") == "function_call_output"
        ]

    def error(self, status, message="no"):
        return fails(status, {"error": OPENAI["error"] | {"message": message}})

    def _message(self, part):
        return self.items(OPENAI["message"] | {"content": [part]})

    @staticmethod
    def _response(items, status="completed"):
        return OPENAI["response"] | {"status": status, "output": items}


class AnthropicScript:
    """The Messages API."""

    provider = "anthropic"
    path = "/v1/messages"

    def calls(self, *queries, name="memmachine_search"):
        blocks = [
            (
                {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
                {"type": "input_json_delta", "partial_json": arguments(query)},
            )
            for number, query in enumerate(queries)
        ]
        return self._message(blocks, "tool_use")

    def says(self, text):
        block = ({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
        return self._message([block], "end_turn")

    def refuses(self):
        return self._message([], "refusal")

    def is_cut_off(self):
        return self._message([], "max_tokens")

    def tool_answers(self, body):
        contents = [message["content"] for message in body["messages"]]
        blocks = [block for each in contents if isinstance(each, list) for block in each]
        return [block["content"] for block in blocks if block["type"] == "tool_result"]

    def error(self, status, message="no"):
        return fails(status, {"type": "error", "error": {"type": "api_error", "message": message}})

    @staticmethod
    def _message(blocks, stop_reason):
        rows = [{"type": "message_start", "message": ANTHROPIC["message"]}]
        for index, (block, delta) in enumerate(blocks):
            rows += [
                {"type": "content_block_start", "index": index, "content_block": block},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        ending = {"stop_reason": stop_reason, "stop_sequence": None}
        rows += [
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 10}},
            {"type": "message_stop"},
        ]
        return events(*rows)


SCRIPTS = [OpenAIScript(), AnthropicScript()]
