"""What is captured, over REST, with the bundled model."""

ALSO_OVER_A_CLUSTER = True


def test_a_dialogue_is_captured_without_its_secret(server, project):
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": "I'm allergic to hazelnuts, never suggest any"},
        {"role": "user", "content": "the wifi password is hedgehog-Lamp-91"},
    ]
    answer = server.answer("/memories/capture", {**project, "messages": messages, "session": "s"})
    assert answer["redactions"] == 1
    assert [1] in [each["evidence"] for each in answer["kept"]]
    assert 0 in answer["dropped"]
    listed = server.answer("/memories/list", project)
    assert "hazelnuts" in str(listed)
    assert "hedgehog" not in str(listed)


def test_a_role_that_is_none_is_refused(server, project):
    said = {"messages": [{"role": "robot", "content": "x"}]}
    status, message = server.refusal("/memories/capture", {**project, **said})
    assert (status, "role" in message) == (422, True)


def test_a_capture_of_no_messages_is_refused_and_makes_no_project(server, project):
    status, message = server.refusal("/memories/capture", {**project, "messages": []})
    assert (status, message.startswith("Invalid request payload: messages: ")) == (422, True)
    assert project not in server.answer("/projects/list")
