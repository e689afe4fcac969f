"""What the two services answer, as server-sent events, from scripts."""

import json

from tests.services.wire import Reply

SSE = {"Content-Type": "text/event-stream"}


def events(*rows):
    """Frame rows as server-sent events; each has a `type`."""
    lines = (f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows)
    return Reply(body="".join(lines).encode(), headers=SSE)


class OpenAIScript:
    """The Responses API."""

    provider = "openai"
    path = "/v1/responses"

    def calls(self, *queries, name="memmachine_search"):
        return self.items(
            *(
                {
                    "type": "function_call",
                    "id": f"fc_{number}",
                    "call_id": f"call_{number}",
                    "name": name,
                    "arguments": query
                    if query.startswith(("{", "["))
                    else json.dumps({"query": query}),
                    "status": "completed",
                }
                for number, query in enumerate(queries)
            )
        )

    def shell(self, command):
        return self.items(
            {
                "type": "shell_call",
                "id": "sc_1",
                "call_id": "call_s",
                "status": "completed",
                "action": {"commands": [command]},
            }
        )

    def says(self, text):
        return self.items(self._message({"type": "output_text", "text": text, "annotations": []}))

    def refuses(self):
        return self.items(self._message({"type": "refusal", "refusal": "I would rather not"}))

    def is_cut_off(self):
        response = self._response([], status="incomplete")
        response["incomplete_details"] = {"reason": "max_output_tokens"}
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
        body = json.dumps({"error": {"message": message, "type": "error", "code": None}})
        return Reply(
            status=status, body=body.encode(), headers={"Content-Type": "application/json"}
        )

    @staticmethod
    def _message(part):
        return {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [part],
        }  # fmt: skip

    @staticmethod
    def _response(items, status="completed"):
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "m",
            "output": items, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "usage": {
                "input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }  # fmt: skip


class AnthropicScript:
    """The Messages API."""

    provider = "anthropic"
    path = "/v1/messages"

    def calls(self, *queries, name="memmachine_search"):
        blocks = []
        for number, query in enumerate(queries):
            given = query if query.startswith(("{", "[")) else json.dumps({"query": query})
            blocks.append(
                (
                    {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
                    {"type": "input_json_delta", "partial_json": given},
                )
            )
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
        return [
            block["content"]
            for content in contents
            if isinstance(content, list)
            for block in content
            if block["type"] == "tool_result"
        ]

    def error(self, status, message="no"):
        body = json.dumps({"type": "error", "error": {"type": "api_error", "message": message}})
        return Reply(
            status=status, body=body.encode(), headers={"Content-Type": "application/json"}
        )

    @staticmethod
    def _message(blocks, stop_reason):
        start = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        }  # fmt: skip
        rows = [{"type": "message_start", "message": start}]
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
