"""Statistical word alignment, and the training that follows it for a while."""

import itertools
import random

import pytest
import torch

import training
from training.run import Run
from transformer import align
from transformer.data import ParallelData
from transformer.train import TranslationRecipe, TranslationTask

PAIRS = 40
SOURCES, TARGETS = range(10, 10 + PAIRS), range(60, 60 + PAIRS)


@pytest.fixture(scope="module")
def data():
    """Sentences of a language whose every word has one translation, in another order."""
    draw = random.Random(0)
    pairs = []
    for _ in range(600):
        chosen = draw.sample(range(PAIRS), draw.randint(3, 8))
        target = [TARGETS[i] for i in chosen]
        target[0], target[-1] = target[-1], target[0]
        pairs.append(([SOURCES[i] for i in chosen], target))
    return ParallelData(pairs)


@pytest.fixture(scope="module")
def table(data):
    return align.model_1(data, 100, rounds=4)


def test_model_1_finds_the_dictionary(table):
    assert table.shape == (100, 100) and table.dtype == torch.float16
    assert torch.allclose(table[list(SOURCES)].float().sum(1), torch.ones(PAIRS), atol=0.02)
    best = table[list(SOURCES)].argmax(1)
    assert (best == torch.tensor(list(TARGETS))).float().mean() > 0.95


def test_positions_are_shared_out(table):
    src, labels = torch.tensor([[10, 11, 12, 3, 0], [15, 3, 0, 0, 0]]), torch.tensor([[62, 61, 60, 3], [65, 3, 0, 0]])
    share = align.posterior(table, src, labels)
    assert share.shape == (2, 4, 5) and (share >= 0).all() and (share.sum(-1) < 1.01).all()
    assert share[0].argmax(-1).tolist() == [2, 1, 0, 3] and share[1, :2].argmax(-1).tolist() == [0, 1]
    assert (share[:, :, 4] == 0).all() and (share[1, :, 2:] == 0).all()  # padding is nobody's
    rows = align.target_rows(torch.tensor([7, 8, 9]), torch.tensor([0, 1, 3]), torch.Size((2, 3)))
    assert rows.tolist() == [[7, 8, 0], [9, 0, 0]]
    assert align.diagonal(3, 3)[1].argmax() == 1 and align.diagonal(1, 4).shape == (1, 4)


def test_a_head_learns_to_look_there(tmp_path):
    """After as many updates, a guided model's head looks at the right word far more often than an unguided one's."""
    draw = random.Random(1)
    words = [f"{a}{b}" for a, b in itertools.product("bdfgk", "aeiou")]
    lines = ["en\tde"]
    for _ in range(400):
        chosen = draw.sample(words, 5)
        lines.append(" ".join(chosen) + "\t" + " ".join(chosen[i][::-1] for i in (1, 0, 3, 2, 4)))
    (tmp_path / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = {}
    for weight in (0.0, 1.0):
        options = TranslationRecipe(
            size="mini",
            data=str(tmp_path),
            vocab_size=70,
            tokens=512,
            max_length=40,
            warmup=30,
            rate_scale=0.4,
            dropout=0.0,
            steps=60,
            log_every=10,
            save_every=60,
            evaluate_every=0,
            threads=1,
            align=weight,
            align_updates=1000,
        )
        options.check()
        task = TranslationTask(options)
        assert training.fit(task, options, tmp_path / f"run{weight}", quiet=True) == "finished"
        assert (task.table is not None) == bool(weight)
        losses = [e["losses"] for e in Run(tmp_path / f"run{weight}").events() if e["event"] == "log"]
        assert ("align" in losses[-1]) == bool(weight)
        batch = task.data.collate(range(100))
        with torch.no_grad():
            model = task.modules["model"].eval()
            _, first, last = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask, cross=True)
        rows = align.target_rows(batch.labels, batch.positions, batch.tgt.shape)
        table = task.table if weight else align.model_1(task.data, len(task.tokenizer))
        truth = align.posterior(table, batch.src, rows)
        real = (rows > 3) & (truth.amax(-1) > 0.5)
        wanted = truth.argmax(-1)
        ahead = (last[:, 0].argmax(-1) == wanted)[real].float().mean()
        behind = (first[:, -1, 1:].argmax(-1) == wanted[:, :-1])[real[:, :-1]].float().mean()
        found[weight] = float(ahead), float(behind)
    assert all(guided > 0.6 and guided > free + 0.2 for guided, free in zip(found[1.0], found[0.0])), found


def test_its_weight_falls_to_nothing(tmp_path):
    (tmp_path / "train.tsv").write_text("en\tde\n" + "a b\tb a\nb a\ta b\nb b\ta a\n" * 20, encoding="utf-8")
    options = TranslationRecipe(
        size="mini", data=str(tmp_path), vocab_size=12, tokens=64, max_length=20, align=0.5, align_updates=4
    )
    task = TranslationTask(options)
    sums = [task.batch(step, 0, 0, 1).guide for step in (1, 3, 5)]
    assert sums[2] is None and sums[0].amax() <= 0.5 and sums[1].amax() <= 0.25
    assert sums[1].amax() > 0.05
    with pytest.raises(ValueError, match="align"):
        TranslationRecipe(data="x", align=-1.0).check()
