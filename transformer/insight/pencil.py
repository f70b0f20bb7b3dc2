"""One head and one block with numbers that can be worked out by hand: two words, d_model = 4.

The numbers are chosen, not learned: the two weights of a row come out as 0.75 and 0.25, as e^1.1 = 3.00, and every
norm divides by 1 or 2. The computation is the project's own `EncoderLayer`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.attention import attention_weights
from transformer.config import TransformerConfig
from transformer.model import EncoderLayer

WORDS = ("first", "second")
X = [[2, 0, 1, 1], [0, 2, 1, 1]]  # embedding and position, added up
W_Q = [[1.1, 0, 0, 0], [0, 1.1, 0.5, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
W_K = [[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, -1]]
W_V = [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 3, 0]]
W_O = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
W_1 = [[1, 0], [0, 1], [0, 1], [1, 0]]
B_1 = [0, 1]
W_2 = [[1, 2, 1, 0], [0, 0, 2, -2]]
B_2 = [0, 0, 0, 0]


@dataclass(frozen=True)
class Step:
    """One table of the sheet: `values` (rows, columns) are to be worked out by the rule from what stands above it.

    inputs: names and matrices that the rule needs besides the tables above. source: where the paper says it.
    """

    name: str
    symbol: str
    rule: str
    source: str
    values: np.ndarray
    columns: tuple[str, ...] = ()  # names of the columns, where they are words
    inputs: tuple[tuple[str, list], ...] = ()


def layer() -> EncoderLayer:
    """The encoder layer with the numbers above, in evaluation."""
    config = TransformerConfig(
        vocab_size=4, encoder_layers=1, decoder_layers=1, d_model=4, d_ff=2, heads=1, dropout=0.0, attention_bias=False
    )
    block = EncoderLayer(config).eval().requires_grad_(False)
    # The sheet writes x W as the paper does, a Linear keeps the transpose of W.
    block.attention.qkv.weight.copy_(torch.cat([torch.tensor(w).T for w in (W_Q, W_K, W_V)]))
    block.attention.output.weight.copy_(torch.tensor(W_O).T)
    inner, outer = block.feed_forward.inner, block.feed_forward.outer
    for linear, weight, bias in ((inner, W_1, B_1), (outer, W_2, B_2)):
        linear.weight.copy_(torch.tensor(weight).T)
        linear.bias.copy_(torch.tensor(bias))
    return block


@torch.inference_mode()
def sheet() -> list[Step]:
    """All tables from the words' vectors to the block's output, each (2, columns) float32."""
    block, x = layer(), torch.tensor(X, dtype=torch.float32)[None]
    query, key, value = block.attention.project(x)
    products = query @ key.transpose(-2, -1)
    weights = attention_weights(query, key)
    head = weights @ value
    attention = block.attention.merge(head)
    first = block.attention_norm(x + attention)
    inner = block.feed_forward.inner(first)
    forward = block.feed_forward(first)
    out = block.feed_forward_norm(first + forward)

    def step(name: str, symbol: str, rule: str, source: str, values: Tensor, **more) -> Step:
        return Step(name, symbol, rule, source, values.reshape(2, -1).numpy(), **more)

    return [
        step("Queries", "Q = X W^Q", "each word’s row times the matrix", "3.2.2", query, inputs=(("W^Q", W_Q),)),
        step("Keys", "K = X W^K", "the same with another matrix", "3.2.2", key, inputs=(("W^K", W_K),)),
        step("Values", "V = X W^V", "and with a third one", "3.2.2", value, inputs=(("W^V", W_V),)),
        step("Scores", "Q K^T", "each query times each key, component by component, added up", "eq. 1", products,
             columns=WORDS),  # fmt: skip
        step("Scaled", "Q K^T / √d_k", "d_k = 4, so divide by 2", "eq. 1", products / query.shape[-1] ** 0.5,
             columns=WORDS),  # fmt: skip
        step("Weights", "softmax", "e to each score, divided by the sum of its row; e^1.1 = 3.00, e^0.5 = 1.65, "
             "e^1.6 = 4.95", "eq. 1", weights, columns=WORDS),  # fmt: skip
        step("The head’s output", "A V", "each value times its weight, added up", "eq. 1", head),
        step("Output of the attention", "(A V) W^O", "with more heads they would first be put side by side", "3.2.2",
             attention, inputs=(("W^O", W_O),)),  # fmt: skip
        step("Residual connection", "X + attention", "what came in is added", "3.1", x + attention),
        step("Norm", "LayerNorm", "subtract the row’s mean, divide by its standard deviation", "3.1", first),
        step("Inside the feed-forward", "x W_1 + b_1", "each word by itself", "eq. 2", inner,
             inputs=(("W_1", W_1), ("b_1", [B_1]))),  # fmt: skip
        step("ReLU", "max(0, …)", "what is below 0 becomes 0", "eq. 2", inner.relu()),
        step("Output of the feed-forward", "… W_2 + b_2", "back to four numbers", "eq. 2", forward,
             inputs=(("W_2", W_2), ("b_2", [B_2]))),  # fmt: skip
        step("Residual connection", "x + feed-forward", "what came in is added", "3.1", first + forward),
        step("The block’s output", "LayerNorm", "again minus the mean, over the standard deviation", "3.1", out),
    ]  # fmt: skip
