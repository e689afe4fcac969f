"""OpenAI's Responses API on this machine: answers what it is told to."""

from tests.services.wire import says


def response(*items):
    return says(
        {
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
            "model": "m", "output": list(items), "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [],
            "usage": {
                "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
    )  # fmt: skip


def said(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [part],
    }  # fmt: skip


def called(name, arguments):
    return {
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
        "arguments": arguments, "status": "completed",
    }  # fmt: skip


def thought(text):
    return {
        "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}],
    }  # fmt: skip
