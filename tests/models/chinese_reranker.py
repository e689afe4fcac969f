"""A cross-encoder of two layers that a test trains to read some Chinese."""

import random
from pathlib import Path

from tests.models.tiny_rerankers import word_tokenizer

from ekphory.models.onnx_reranker import PROBES

ASKED = {
    "hobby": ["用户喜欢做什么", "用户有什么爱好", "业余时间用户做什么", "有哪些爱好", "业余爱好"],
    "work": ["用户做什么工作", "用户的职业是什么", "用户在哪里上班", "用户从事哪一行"],
    "home": ["用户住在哪里", "用户的家在哪个城市", "用户搬到了哪里"],
}
SAID = {
    "hobby": ["用户喜欢{}", "用户爱{}", "用户很喜欢{}"],
    "work": ["用户在{}做{}", "用户是{}的{}", "用户在{}当{}"],
    "home": ["用户住在{}", "用户搬到了{}", "用户的家在{}"],
}
FILLED = {
    "hobby": ["游泳", "摄影", "钓鱼", "下棋", "画画", "足球", "爬山", "书法", "网球", "唱歌"],
    "work": ["北京", "上海", "深圳", "成都", "学校", "医院", "银行", "工厂"],
    "home": ["北京", "上海", "深圳", "成都", "南京", "西安"],
}
JOBS = ["老师", "医生", "会计", "后端开发", "测试", "设计师", "律师"]
UNSEEN = "羽毛球杭州前端有哪业余"
"""Characters of the questions that a test asks; the words that they form are not trained on."""

STEPS = 250


def write_chinese_reranker(directory: Path) -> Path:
    """Train from random weights which of three things a question asks for, and write the model."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    raw, tokenizer = directory / "raw", _tokenizer()
    raw.mkdir(parents=True)
    tokenizer.save(str(raw / "tokenizer.json"))
    words = BertTokenizerFast(tokenizer_file=str(raw / "tokenizer.json"), model_max_length=64)
    words.save_pretrained(raw)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
        num_labels=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    drawn = random.Random(0)
    for _ in range(STEPS):
        questions, passages, labels = zip(*_pairs(drawn), strict=True)
        inputs = words(list(questions), list(passages), padding=True, return_tensors="pt")
        logits = model(**inputs).logits[:, 0]
        wanted = torch.tensor(labels)
        torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(raw)
    CrossEncoder(str(raw)).save(str(directory / "model"))
    return directory / "model"


def _pairs(drawn: random.Random) -> list[tuple[str, str, float]]:
    found = [
        (question, passage, float(passage == answer))
        for question, answer, other in PROBES
        for passage in (answer, other)
    ]
    for _ in range(30):
        asked, said = drawn.choice(list(ASKED)), drawn.choice(list(SAID))
        filled = (drawn.choice(FILLED[said]), drawn.choice(JOBS))
        passage = drawn.choice(SAID[said]).format(*filled)
        found.append((drawn.choice(ASKED[asked]), passage, float(asked == said)))
    return found


def _tokenizer():
    tokenizer = word_tokenizer()
    lists = [*ASKED.values(), *SAID.values(), *FILLED.values(), JOBS, [UNSEEN]]
    letters = {letter for texts in lists for text in texts for letter in text if letter > "一"}
    tokenizer.add_tokens(sorted(letters))
    return tokenizer
