"""Language models: how well is the next token foreseen, and is the likeliest one the reference's?

The model takes the tokens of a text, [1, length], and gives scores of the next token at each place,
[1, length, vocabulary]. Shorter texts are filled up with token 0, which changes nothing before it.
"""

from pathlib import Path
from typing import Annotated

import numpy as np

import evaltools as et


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """Logarithms of softmax over the last axis."""
    shifted = scores.astype(np.float64) - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def perplexity(rows) -> float:
    """exp of the mean negative logarithm over the tokens of all texts; a row is its sum and their number."""
    surprise, tokens = np.sum(rows, axis=0)
    return float(np.exp(surprise / tokens))


@et.task
def language_model(tokens: Annotated[Path, "File with a text on each line: the numbers of its tokens."]) -> et.Task:
    """Perplexity of a language model, and how often its likeliest next token is the reference's."""
    texts = [[int(word) for word in line.split()] for line in tokens.read_text().splitlines()]

    def prepare(text, tensors):
        padded = np.zeros(tensors[0].shape, np.int32)
        padded[0, : len(text)] = text
        return [padded]

    def score(outputs, text):
        foreseen = log_probabilities(outputs.real(0)[0, : len(text) - 1])
        surprise = -foreseen[np.arange(len(text) - 1), text[1:]]
        return {"perplexity": np.array([surprise.sum(), surprise.size])}

    def agree(outputs, reference, text):
        ours, theirs = (side.real(0)[0, : len(text)].argmax(-1) for side in (outputs, reference))
        return {"same_next_token": float((ours == theirs).mean())}

    return et.Task(
        examples=[et.Example(f"line {number}", text, text) for number, text in enumerate(texts, 1)],
        prepare=prepare,
        score=score,
        agree=agree,
        metrics=[et.pooled("perplexity", perplexity, better="lower"), et.mean("same_next_token")],
    )
