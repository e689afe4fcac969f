"""The bundled capture reader: its layout, the spans that it marks, its answers."""

import numpy as np
import pytest

from ekphory.errors import ModelError
from ekphory.models.captures import (
    BUNDLED,
    MESSAGE_CLASSES,
    DialogueMessage,
    bundled_capture_reader,
)
from ekphory.models.onnx_capture_reader import (
    SPAN_KINDS,
    TAG_COUNT,
    TOKENS_BEFORE,
    WINDOW,
    CaptureLayout,
    OnnxCaptureReader,
    find_spans,
)
from ekphory.models.shared_layers import SharedLayers


@pytest.fixture(scope="module")
def tokenizer():
    return SharedLayers().tokenizer


@pytest.fixture(scope="module")
def layout(tokenizer):
    return CaptureLayout(tokenizer)


def shown(tokenizer, window):
    return tokenizer.decode(window.tokens.ids, skip_special_tokens=False)


def test_a_message_is_read_behind_the_ends_of_the_two_before_it(tokenizer, layout):
    messages = [
        DialogueMessage("user", "never read"),
        DialogueMessage("user", "hello"),
        DialogueMessage("assistant", "Which one?"),
        DialogueMessage("user", "the red one", speaker="Ilse"),
    ]
    (window,) = layout.windows(messages, since=3)
    assert shown(tokenizer, window) == (
        "[CLS] user : hello assistant : which one? [SEP] ilse : the red one [SEP]"
    )
    first = window.tokens.ids.index(102) + 1
    assert window.tokens.type_ids == [0] * first + [1] * (len(window.tokens) - first)
    assert [messages[3].text[a:b] for a, b in window.offsets] == ["the", "red", "one"]
    assert window.tokens.ids[window.begins :][: len(window.offsets)] == window.tokens.ids[-4:-1]


def test_before_the_first_message_a_greeting_is_read(tokenizer, layout):
    (window,) = layout.windows([DialogueMessage("user", "We use tabs")])
    assert shown(tokenizer, window) == (
        "[CLS] user : hi assistant : hello! what are we doing? [SEP] user : we use tabs [SEP]"
    )


def test_of_a_long_message_before_the_end_is_read(tokenizer, layout):
    messages = [DialogueMessage("user", "start " * 200 + "the end"), DialogueMessage("user", "yes")]
    (window,) = layout.windows(messages, since=1)
    assert "the end [SEP]" in shown(tokenizer, window)
    assert len(window.tokens) <= TOKENS_BEFORE[1] + 6


def test_a_long_message_is_read_in_windows_that_overlap(layout):
    text = " ".join(f"word{number}" for number in range(300))
    windows = list(layout.windows([DialogueMessage("user", text)]))
    assert len(windows) > 2
    assert all(len(each.offsets) <= WINDOW for each in windows)
    assert windows[0].offsets[-1][1] > windows[1].offsets[0][0]
    assert windows[-1].offsets[-1][1] == len(text)


def test_an_empty_message_has_one_window(layout):
    (window,) = layout.windows([DialogueMessage("user", "")])
    assert window.offsets == []


def logits(count, **tags):
    """Logits of so many tokens that are sure of the given tags, as in `t2=tag`."""
    made = np.zeros((count, TAG_COUNT), np.float32)
    made[:, 0] = 9.0
    for name, tag in tags.items():
        made[int(name[1:]), 0], made[int(name[1:]), tag] = 0.0, 9.0
    return made


def begin(kind):
    return 1 + 2 * SPAN_KINDS.index(kind)


def test_a_span_goes_from_its_beginning_over_its_inside():
    text = "ask ada byron now"
    offsets = [(0, 3), (4, 7), (8, 13), (14, 17)]
    read = logits(4, t1=begin("person"), t2=begin("person") + 1)
    (span,) = find_spans(text, [(offsets, read)])
    assert (text[span.start : span.end], span.kind) == ("ada byron", "person")
    assert span.probability > 0.9


def test_parts_of_a_word_belong_to_its_span_and_a_full_stop_does_not():
    text = "in settings.py."
    offsets = [(0, 2), (3, 11), (11, 12), (12, 14), (14, 15)]
    (span,) = find_spans(text, [(offsets, logits(5, t1=begin("file")))])
    assert text[span.start : span.end] == "settings.py"


def test_the_first_slash_of_a_path_belongs_to_it():
    text = "see /etc/hosts"
    offsets = [(0, 3), (4, 5), (5, 8), (8, 9), (9, 14)]
    read = logits(5, t2=begin("file"), t3=begin("file") + 1, t4=begin("file") + 1)
    (span,) = find_spans(text, [(offsets, read)])
    assert text[span.start : span.end] == "/etc/hosts"


def test_where_windows_overlap_the_earlier_one_counts():
    text = "ask ada now"
    offsets = [(0, 3), (4, 7), (8, 11)]
    read = logits(3, t1=begin("person"))
    again = logits(2, t0=begin("place"))
    (span,) = find_spans(text, [(offsets, read), (offsets[1:], again)])
    assert span.kind == "person"


def test_what_looks_like_a_name_needs_less_to_be_one():
    text = "then Imke came"
    offsets = [(0, 4), (5, 9), (10, 14)]
    doubtful = logits(3)
    doubtful[:, begin("person")] = 8.0  # one in four
    (span,) = find_spans(text, [(offsets, doubtful)])
    assert (text[span.start : span.end], span.kind) == ("Imke", "person")


@pytest.fixture(scope="module")
def read():
    reader = bundled_capture_reader()

    def read(*texts, role="user"):
        return reader.read([DialogueMessage(role, text) for text in texts])

    return read


def test_what_is_lasting_is_told_from_what_is_not(read):
    hello, kept = read("hello there", "I'm allergic to hazelnuts, please never suggest any")
    assert hello.nothing > 0.9
    assert sum(kept.classes) > bundled_capture_reader().least > sum(hello.classes)
    assert len(kept.classes) == len(MESSAGE_CLASSES)
    assert kept.nothing + kept.steers + sum(kept.classes) == pytest.approx(1, abs=1e-4)


def test_the_first_message_needs_none_before_it(read):
    assert [each.reaches for each in read("yes, that one")] == [0]


def test_no_messages_have_no_readings(read):
    assert read() == []


def test_a_reading_does_not_depend_on_what_is_read_beside_it(read):
    alone = read("we moved to Bonn in May")[0]
    beside = bundled_capture_reader().read(
        [DialogueMessage("user", "we moved to Bonn in May"), DialogueMessage("user", "x " * 200)]
    )[0]
    assert beside.classes == pytest.approx(alone.classes, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"revision": "d0d7f9b62c78e32c"', '"revision": "0000000000000000"'), "Train it anew"),
        (('"layout": "ekphory-capture-1"', '"layout": "ekphory-capture-9"'), "of another layout"),
        (('"classes": [', '"class": ['), "not the record of a capture reader"),
    ],
)
def test_a_model_that_does_not_belong_here_is_refused(tmp_path, change, message):
    for file in BUNDLED.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    record = (tmp_path / "model.json").read_text(encoding="utf-8")
    assert change[0] in record
    (tmp_path / "model.json").write_text(record.replace(*change), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        OnnxCaptureReader(tmp_path)
