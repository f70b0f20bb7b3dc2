"""The sheet to be worked out by hand: its numbers by hand, and the layer's own output at its end."""

import numpy as np
import pytest
import torch

from transformer.insight import pencil

BY_HAND = [
    [[2.2, 0, 1, 1], [0, 2.2, 2, 1]],
    [[1, 0, 1, -1], [0, 1, 1, -1]],
    [[4, 0, 4, 0], [0, 4, 4, 0]],
    [[2.2, 0], [1, 3.2]],
    [[1.1, 0], [0.5, 1.6]],
    [[0.75, 0.25], [0.25, 0.75]],
    [[3, 1, 4, 0], [1, 3, 4, 0]],
    [[3, 1, 0, 4], [1, 3, 0, 4]],
    [[5, 1, 1, 5], [1, 5, 1, 5]],
    [[1, -1, -1, 1], [-1, 1, -1, 1]],
    [[2, -1], [0, 1]],
    [[2, 0], [0, 1]],
    [[2, 4, 2, 0], [0, 0, 2, -2]],
    [[3, 3, 1, 1], [-1, 1, 1, -1]],
    [[1, 1, -1, -1], [-1, 1, 1, -1]],
]


def test_every_table_is_what_comes_out_by_hand():
    sheet = pencil.sheet()
    assert len(sheet) == len(BY_HAND)
    for step, expected in zip(sheet, BY_HAND):
        # Half a unit of the second decimal, what a sheet of paper keeps: e^1.1 is 3.004, not 3.
        assert np.abs(step.values - np.array(expected)).max() < 0.005, step.name


def test_the_last_table_is_the_layers_own_output():
    with torch.inference_mode():
        out, weights = pencil.layer()(torch.tensor(pencil.X, dtype=torch.float32)[None], None, need_weights=True)
    sheet = {step.symbol: step for step in pencil.sheet()}
    np.testing.assert_allclose(pencil.sheet()[-1].values, out[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(sheet["softmax"].values, weights[0, 0].numpy(), atol=1e-6)
    assert sheet["softmax"].values.sum(-1) == pytest.approx([1, 1])
