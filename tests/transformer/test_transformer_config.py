"""Table 3: every row by its name, with the printed number of parameters."""

import dataclasses

import pytest
import torch

from transformer.config import PRESETS, TransformerConfig, preset
from transformer.model import Transformer

# The last column of Table 3, in millions; rows without a figure there are as large as base.
PRINTED = {
    "base": 65,
    "B-dk16": 58,
    "B-dk32": 60,
    "C-n2": 36,
    "C-n4": 50,
    "C-n8": 80,
    "C-d256": 28,
    "C-d1024": 168,
    "C-ff1024": 53,
    "C-ff4096": 90,
    "big": 213,
    "A-h1": 65,
    "A-h4": 65,
    "A-h16": 65,
    "A-h32": 65,
    "D-drop0.0": 65,
    "D-drop0.2": 65,
    "D-ls0.0": 65,
    "D-ls0.2": 65,
}


def parameters(config: TransformerConfig) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in Transformer(config).parameters())


@pytest.mark.parametrize("row", PRINTED)
def test_parameter_counts_of_table_3(row):
    # The vocabulary is not printed; 41,000 (big: 36,000) makes all of the printed sizes right.
    vocab = 36000 if row == "big" else 41000
    assert parameters(preset(row, vocab_size=vocab)) / 1e6 == pytest.approx(PRINTED[row], abs=0.5)


def test_learned_positions_are_row_e():
    row, base = preset("E"), preset("base")
    assert dataclasses.replace(row, positions="sinusoidal") == base
    assert parameters(row) - parameters(base) == base.max_length * base.d_model


def test_rows_change_only_what_the_table_prints():
    base = preset("base")
    assert (base.d_model, base.d_ff, base.heads, base.key_width, base.value_width) == (512, 2048, 8, 64, 64)
    assert (preset("big").d_model, preset("big").heads, preset("big").dropout) == (1024, 16, 0.3)
    assert (preset("B-dk16").key_width, preset("B-dk16").value_width) == (16, 64)
    assert preset("D-ls0.2").label_smoothing == 0.2
    tiny = preset("tiny")
    assert (tiny.encoder_layers, tiny.decoder_layers, tiny.d_model, tiny.d_ff, tiny.heads) == (4, 4, 128, 256, 4)


def test_round_trip_through_plain_values():
    for name in PRESETS:
        config = preset(name)
        assert TransformerConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heads": 7}, "does not divide"),
        ({"dropout": 1.0}, "dropout"),
        ({"positions": "rotary"}, "sinusoidal, learned"),
        ({"vocab_size": 2}, "special tokens"),
        ({"bos": -1}, "special tokens"),
        ({"max_length": 0}, "max_length"),
        ({"activation": "tanh"}, "activation"),
    ],
)
def test_senseless_configurations_say_so(changes, words):
    with pytest.raises(ValueError, match=words):
        TransformerConfig(**changes)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match="base"):
        preset("huge")
    with pytest.raises(ValueError, match="d_modell"):
        TransformerConfig.from_dict({"d_modell": 512})
