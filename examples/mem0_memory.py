"""Code that was written for mem0, with its import changed. No key, no model, no server.

pip install ekphory
python examples/mem0_memory.py
"""

from __future__ import annotations

from ekphory.frameworks.mem0 import Memory


def main() -> None:
    """Remember a dialogue, find it, change it."""
    memory = Memory()
    messages = [
        {"role": "user", "content": "I'm a vegetarian and allergic to nuts"},
        {"role": "assistant", "content": "Got it! I'll keep that in mind."},
        {"role": "user", "content": "On Saturdays I play tennis with Kai"},
    ]
    added = memory.add(messages, user_id="alice", metadata={"app": "chat"})
    found = memory.search("Am I allergic to anything?", filters={"user_id": "alice"}, top_k=1)
    for entry in found["results"]:
        print(f"found: {entry['memory']}")
    tennis = added["results"][2]["id"]
    memory.update(tennis, "On Sundays I play tennis with Kai")
    for event in memory.history(tennis):
        print(f"{event['event']}: {event['new_memory']}")
    memory.delete(tennis)
    print(f"left: {len(memory.get_all(user_id='alice')['results'])}")
    memory.delete_all(user_id="alice")


if __name__ == "__main__":
    main()
