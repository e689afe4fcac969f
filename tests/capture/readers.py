"""What a capture reader says of messages, as a test wants it."""

from ekphory.models.captures import MESSAGE_CLASSES, MessageReading


def reading(class_=None, *, reaches=0, steers=0.0, spans=()):
    """A reading that is sure: of a class, or of nothing."""
    classes = tuple(float(each == class_) for each in MESSAGE_CLASSES)
    return MessageReading(0.0 if class_ else 1.0 - steers, steers, classes, reaches, spans)


class Reader:
    """A reader that says of each text what a test wants."""

    name, least = "test", 0.5

    def __init__(self, by_text):
        self.by_text = by_text

    def read(self, messages, *, since=0):
        return [self.by_text.get(each.text, reading()) for each in messages[since:]]


def said(*texts, role="user"):
    return [{"role": role, "content": text} for text in texts]
