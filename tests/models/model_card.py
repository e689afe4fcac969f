"""The section Transformers of MemReranker-4B's model card, as functions of model and tokenizer.

Source: huggingface.co/IAAR-Shanghai/MemReranker-4B, Apache-2.0; the same as Qwen3-Reranker's.
"""

PREFIX = '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'  # noqa: E501  as published
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def format_instruction(instruction, query, doc):
    if instruction is None:
        instruction = "Given a web search query, retrieve relevant passages that answer the query"
    return f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {doc}"


def process_inputs(tokenizer, pairs, max_length):
    prefix_tokens = tokenizer.encode(PREFIX, add_special_tokens=False)
    suffix_tokens = tokenizer.encode(SUFFIX, add_special_tokens=False)
    inputs = tokenizer(
        pairs,
        padding=False,
        truncation="longest_first",
        return_attention_mask=False,
        max_length=max_length - len(prefix_tokens) - len(suffix_tokens),
    )
    for i, ele in enumerate(inputs["input_ids"]):
        inputs["input_ids"][i] = prefix_tokens + ele + suffix_tokens
    # The card names a longest length too, which is ignored with a warning.
    return tokenizer.pad(inputs, padding=True, return_tensors="pt")


def compute_logits(model, tokenizer, inputs):
    import torch

    batch_scores = model(**inputs).logits[:, -1, :]
    true_vector = batch_scores[:, tokenizer.convert_tokens_to_ids("yes")]
    false_vector = batch_scores[:, tokenizer.convert_tokens_to_ids("no")]
    batch_scores = torch.stack([false_vector, true_vector], dim=1)
    batch_scores = torch.nn.functional.log_softmax(batch_scores, dim=1)
    return batch_scores[:, 1].exp().tolist()


def card_scores(directory, query, documents, *, instruction=None, max_length=8192):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(directory).eval()
    pairs = [format_instruction(instruction, query, doc) for doc in documents]
    return compute_logits(model, tokenizer, process_inputs(tokenizer, pairs, max_length))
