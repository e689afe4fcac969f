"""Secrets in the messages that a tool sends reach no file of the hooks."""

from .payloads import OPENCODE_LINES


def test_a_secret_of_an_earlier_turn_is_cut_out_of_a_later_one(send, capture, folder, tmp_path):
    def told(text, role="user"):
        return {"info": {"role": role}, "parts": [{"type": "text", "text": text}]}

    earlier = [*OPENCODE_LINES, told("pw: Sommer2024!"), *[told("hm")] * 8]
    send(earlier, folder=folder)
    capture()
    send([*earlier, told("I wrote Sommer2024! into the file", "assistant")], folder=folder)
    kept = (tmp_path / "state" / "hooks.sqlite3").read_bytes()
    assert b"I wrote [redacted] into the file" in kept
    assert b"Sommer2024" not in kept
