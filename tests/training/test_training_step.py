"""What a step encodes, and where."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

if torch:
    from ekphory.models.onnx_export import Prompts
    from ekphory_lab.training.embedder_run import StepBatch, lay_out
    from ekphory_lab.training.memories import GeneratedMemory, HardNegative, MemorySample
    from ekphory_lab.training.question_groups import Question, QuestionGroup
    from ekphory_lab.training.sources import WrittenPassages

GROUP = QuestionGroup("words", ("the cat", "the dog"), (Question("who ran?", (1,)),))
SAMPLE = MemorySample(
    "who sat?",
    GeneratedMemory("the cat sat", 1.0, "episodic", 0.5),
    (HardNegative("temporal", GeneratedMemory("the dog sat", 9.0, "episodic", 0.5)),),
)


def test_each_text_is_encoded_after_the_prompt_of_its_side():
    written = WrittenPassages(("a house",), base=None, given=None)
    batch = StepBatch([GROUP], [], [], lay_out([SAMPLE]), written)

    assert batch.prompted(Prompts(query="Q: ", passage="P: ")) == [
        "P: the cat",
        "P: the dog",
        "Q: who ran?",
        "Q: who sat?",
        "P: the cat sat",
        "P: the dog sat",
        "P: a house",
    ]
    assert batch.prompted(Prompts()) == batch.texts
