"""A larger model that begins where a smaller one stands: another vocabulary, wider layers, more heads.

    python -m lab.translator.grow --model SMALLER --size everyday-wide --tokenizer NEW/tokenizer.model --out OUT

What can be kept is kept. New units of a feed-forward layer give nothing to its output at first, so the wider network
computes the same function (Chen et al. 2016, "Net2Net"). A wider d_model and new heads are copies that share what the
old ones gave; there layer normalisation, whose mean and variance are over more numbers, makes it nearly the same. Of a
feed-forward layer that is to be narrower its strongest units stay. A piece that the old vocabulary has keeps its
embedding; a new one gets the mean of those of the pieces that the old vocabulary writes it with. Train OUT by
`--initial OUT`.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import torch
from torch import Tensor

from training import assets
from training.arguments import CommandLine, a_folder_to_write, a_seed, an_existing_file
from training.command import one_sentence
from training.weights import load_model, save_model
from transformer import config as configs
from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.tokenizer import SPACE, UNK, Tokenizer


def grow_embedding(old: Tensor, before: Tokenizer, after: Tokenizer) -> Tensor:
    """The embedding matrix (V', d_model) of vocabulary `after`, from that (V, d_model) of `before`.

    old: embedding matrix of the vocabulary `before`.
    Pieces that cannot be written in the old vocabulary get the mean of all.
    """
    rows = []
    for piece in after.pieces(range(len(after))):
        same = before.id(piece)
        if same != UNK or piece == before.pieces([UNK])[0]:
            rows.append(old[same])
            continue
        # A piece inside a word is written without the blank that SentencePiece puts before a text.
        parts = before.encode(piece.replace(SPACE, " ").strip()) if piece.startswith(SPACE) else before.inside(piece)
        parts = [part for part in parts if part != UNK]
        rows.append(old[parts].mean(0) if parts else old.mean(0))
    return torch.stack(rows)


def widen(value: Tensor, shape: torch.Size, fresh: Tensor) -> Tensor:
    """`value` in the first rows and columns of a tensor of a larger shape, whose others are those of `fresh`.

    Raises `ValueError` where the shape is smaller.
    """
    if any(new < old for new, old in zip(shape, value.shape)) or len(shape) != value.dim():
        raise ValueError(f"A model can only grow; {tuple(value.shape)} does not fit into {tuple(shape)}.")
    out = fresh.clone()
    out[tuple(slice(size) for size in value.shape)] = value
    return out


def grow_weights(
    state: dict[str, Tensor], before: Tokenizer, after: Tokenizer, config: TransformerConfig, seed: int = 1
) -> dict[str, Tensor]:
    """The weights of a larger model from those of a smaller one.

    state: weights of the smaller one.
    before, after: its vocabulary, and the larger one's.
    config: of the larger model; layers, width and heads as before, d_ff at least as large.
    seed: of the new units' incoming weights; their outgoing ones are 0.
    Raises `ValueError` where something other than vocabulary and d_ff differs.
    """
    torch.manual_seed(seed)
    fresh = Transformer(config).state_dict()
    if fresh.keys() != state.keys():
        raise ValueError(
            "Only the vocabulary and the feed-forward layers can grow; the layers have to be as many as before."
        )
    out = {}
    for name, value in state.items():
        if name == "embedding.weight":
            out[name] = grow_embedding(value, before, after)
        elif name == "output_bias":
            raise ValueError("A model with a bias on its logits cannot get another vocabulary.")
        elif ".feed_forward.outer.weight" in name:
            out[name] = widen(value, fresh[name].shape, torch.zeros_like(fresh[name]))
        elif ".feed_forward." in name:
            out[name] = widen(value, fresh[name].shape, fresh[name])
        elif value.shape != fresh[name].shape:
            raise ValueError(f"Only the vocabulary and the feed-forward layers can grow; {name} has another shape.")
        else:
            out[name] = value
    return out


def copy_of_dimensions(before: int, after: int) -> Tensor:
    """(after,) which of `before` dimensions each of a wider d_model copies: sines and cosines of the nearest frequency.

    So a copy finds nearly the positional encodings that it knows (section 3.5).
    """
    pair = torch.arange(after // 2) * before / after
    pair = pair.round().long().clamp(max=before // 2 - 1)
    return torch.stack((2 * pair, 2 * pair + 1), 1).flatten()


def shares(source: Tensor, rows: int) -> Tensor:
    """(rows, copies) random shares; in each row those of all copies of one original sum to 1.

    source: (copies,) the original of each copy. Copies of unequal shares learn different things from now on.
    """
    noise = 0.5 + torch.rand(rows, len(source))
    sums = noise.new_zeros(rows, int(source.max()) + 1).index_add_(1, source, noise)
    return noise / sums[:, source]


def widen_model(
    state: dict[str, Tensor], old: TransformerConfig, new: TransformerConfig, seed: int = 1
) -> dict[str, Tensor]:
    """The weights of a model with a larger d_model, and perhaps more heads and fewer feed-forward units.

    state: weights of the model `old`.
    new: same layers and widths of a head; sinusoidal positions, no biases of attention or output.
    seed: of the shares by which copies divide what the originals gave.
    Raises `ValueError` where something else differs.
    """
    layers = ("encoder_layers", "decoder_layers", "key_width", "value_width", "positions", "activation")
    plain = not (old.attention_bias or new.attention_bias or old.output_bias) and old.positions == "sinusoidal"
    if not plain or new.d_model < old.d_model or new.heads < old.heads or new.d_ff > old.d_ff or any(
        getattr(old, name) != getattr(new, name) for name in layers
    ):  # fmt: skip
        raise ValueError(
            "With d_model only the number of heads can grow, and d_ff shrink; layers and the width of a head stay."
        )
    torch.manual_seed(seed)
    dims = copy_of_dimensions(old.d_model, new.d_model)
    heads = torch.arange(new.heads) % old.heads
    scale = math.sqrt(new.d_model / old.d_model)  # embeddings are multiplied by sqrt(d_model) (section 3.4)
    copies = torch.bincount(dims, minlength=old.d_model)[dims]

    def reading(weight: Tensor) -> Tensor:
        """(m, d_model) -> (m, wider): copies are read in shares."""
        return weight[:, dims] * shares(dims, len(weight))

    def columns(width: int) -> Tensor:
        return (heads[:, None] * width + torch.arange(width)).flatten()

    out = {}
    for name, value in state.items():
        if name == "embedding.weight":
            out[name] = value[:, dims] / scale
        elif name.endswith("qkv.weight"):
            widths = (old.key_width, old.key_width, old.value_width)
            parts = value.split([old.heads * width for width in widths])
            out[name] = reading(torch.cat([part[columns(width)] for part, width in zip(parts, widths)]))
        elif name.endswith("output.weight"):
            values = columns(old.value_width)
            out[name] = (value[:, values] * shares(values, len(value)))[dims]
        elif ".feed_forward." in name:
            layer = name.rsplit(".", 2)[0]
            inner, outer = state[f"{layer}.inner.weight"], state[f"{layer}.outer.weight"]
            units = (inner.norm(dim=1) * outer.norm(dim=0)).topk(new.d_ff).indices.sort().values
            if name.endswith("inner.weight"):
                out[name] = reading(value[units])
            elif name.endswith("inner.bias"):
                out[name] = value[units]
            else:
                out[name] = value[dims][:, units] if name.endswith("weight") else value[dims]
        elif name.startswith(f"decoder.{old.decoder_layers - 1}.feed_forward_norm."):
            out[name] = value[dims] * scale / copies  # before the output, whose matrix is that of the embeddings
        else:
            out[name] = value[dims]
    return out


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = CommandLine(prog="python -m lab.translator.grow", description="Make a larger model of a smaller one.")
    parser.add_argument("--model", required=True, help="name of a shipped model, or a folder")
    parser.add_argument("--size", required=True, help="a size of transformer.config")
    parser.add_argument(
        "--tokenizer", type=an_existing_file, default=None, help="the new vocabulary; the model's own by default"
    )
    parser.add_argument("--seed", type=a_seed, default=1, help="of the new units")
    parser.add_argument("--out", required=True, type=a_folder_to_write)
    options = parser.parse_args(argv)
    folder = assets.model_or_dir(options.model)
    header, state = load_model(folder)
    before = Tokenizer.load(folder / "tokenizer.model")
    after = Tokenizer.load(options.tokenizer) if options.tokenizer else before
    old = TransformerConfig.from_dict(header["transformer"])
    config = configs.preset(options.size, vocab_size=len(after), max_length=old.max_length)
    if config.d_model != old.d_model:
        between = replace(config, vocab_size=old.vocab_size)
        state, old = widen_model(state, old, between, options.seed), between
    save_model(
        options.out,
        {**header, "transformer": config.to_dict()},
        grow_weights(state, before, after, config, options.seed),
    )
    after.save(options.out / "tokenizer.model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
