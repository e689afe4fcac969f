"""The bundled capture reader: its layout, the spans that it marks, its answers."""

from itertools import accumulate

import numpy as np
import pytest

from ekphory.models.captures import MESSAGE_CLASSES, DialogueMessage, bundled_capture_reader
from ekphory.models.changes import bundled_change_reader
from ekphory.models.onnx_capture_reader import (
    SPAN_KINDS,
    TAG_COUNT,
    TOKENS_BEFORE,
    WINDOW,
    CaptureLayout,
    find_spans,
)
from ekphory.models.shared_layers import SharedLayers, load_shared_layers


@pytest.fixture(scope="module")
def tokenizer():
    return SharedLayers().tokenizer


@pytest.fixture(scope="module")
def layout(tokenizer):
    return CaptureLayout(tokenizer)


@pytest.fixture(scope="module")
def shown(tokenizer):
    return lambda window: tokenizer.decode(window.tokens.ids, skip_special_tokens=False)


def test_a_message_is_read_behind_the_ends_of_the_two_before_it(shown, layout):
    messages = [
        DialogueMessage("user", "never read"),
        DialogueMessage("user", "hello"),
        DialogueMessage("assistant", "Which one?"),
        DialogueMessage("user", "the red one", speaker="Ilse"),
    ]
    (window,) = layout.windows(messages, since=3)
    expected = "[CLS] user : hello assistant : which one? [SEP] ilse : the red one [SEP]"
    assert shown(window) == expected
    first = window.tokens.ids.index(102) + 1
    assert window.tokens.type_ids == [0] * first + [1] * (len(window.tokens) - first)
    assert [messages[3].text[a:b] for a, b in window.offsets] == ["the", "red", "one"]
    assert window.tokens.ids[window.begins :][: len(window.offsets)] == window.tokens.ids[-4:-1]


def test_before_the_first_message_a_greeting_is_read(shown, layout):
    (window,) = layout.windows([DialogueMessage("user", "We use tabs")])
    assert shown(window) == (
        "[CLS] user : hi assistant : hello! what are we doing? [SEP] user : we use tabs [SEP]"
    )


def test_of_a_long_message_before_the_end_is_read(shown, layout):
    messages = [DialogueMessage("user", "start " * 200 + "the end"), DialogueMessage("user", "yes")]
    (window,) = layout.windows(messages, since=1)
    assert "the end [SEP]" in shown(window)
    assert len(window.tokens) <= TOKENS_BEFORE[1] + 6


def test_a_long_message_is_read_in_windows_that_overlap(layout):
    text = " ".join(f"word{number}" for number in range(300))
    windows = list(layout.windows([DialogueMessage("user", text)]))
    assert len(windows) > 2
    assert all(len(each.offsets) <= WINDOW for each in windows)
    assert windows[0].offsets[-1][1] > windows[1].offsets[0][0]
    assert windows[-1].offsets[-1][1] == len(text)
    # An empty message has one.
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


PERSON, FILE = begin("person"), begin("file")


@pytest.mark.parametrize(
    ("parts", "tags", "marked", "least"),
    [
        # A span goes from its beginning over its inside.
        (["ask ", "ada ", "byron ", "now"], {"t1": PERSON, "t2": PERSON + 1}, "ada byron", 0.9),
        # Parts of a word belong to its span, and a full stop does not.
        (["in ", "settings", ".", "py", "."], {"t1": FILE}, "settings.py", 0.5),
        # The first slash of a path belongs to it.
        (["see ", "/", "etc", "/", "hosts"], {"t2": FILE, "t3": FILE + 1, "t4": FILE + 1},
         "/etc/hosts", 0.9),
    ],
)  # fmt: skip
def test_a_span_is_made_of_whole_words(parts, tags, marked, least):
    text, ends = "".join(parts), list(accumulate(map(len, parts)))
    starts = [end - len(part) for end, part in zip(ends, parts, strict=True)]
    offsets = [(n, n + len(part.strip())) for n, part in zip(starts, parts, strict=True)]
    (span,) = find_spans(text, [(offsets, logits(len(parts), **tags))])
    kind = "person" if PERSON in tags.values() else "file"
    assert (text[span.start : span.end], span.kind) == (marked, kind)
    assert span.probability >= least


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
    return lambda *texts: reader.read([DialogueMessage("user", text) for text in texts])


def test_what_is_lasting_is_told_from_what_is_not(read):
    hello, kept = read("hello there", "I'm allergic to hazelnuts, please never suggest any")
    assert hello.nothing > 0.9
    assert sum(kept.classes) > bundled_capture_reader().least > sum(hello.classes)
    assert len(kept.classes) == len(MESSAGE_CLASSES)
    assert kept.nothing + kept.steers + sum(kept.classes) == pytest.approx(1, abs=1e-4)


def test_the_first_message_needs_none_before_it_and_no_message_has_no_reading(read):
    assert [each.reaches for each in read("yes, that one")] == [0]
    assert read() == []


def test_a_reading_does_not_depend_on_what_is_read_beside_it(read):
    (alone,) = read("we moved to Bonn in May")
    beside, _ = read("we moved to Bonn in May", "x " * 200)
    assert beside.classes == pytest.approx(alone.classes, abs=1e-4)


def test_both_readers_share_their_lower_layers():
    readers = bundled_capture_reader(), bundled_change_reader()
    assert {id(reader._upper._shared) for reader in readers} == {id(load_shared_layers())}
