"""Normalisation, tables of text, the tokenizer, and batches."""

import gzip
import itertools
import random
from dataclasses import replace

import pytest
import torch

from transformer.data import ParallelData, alike, collate, find_split, read_parallel
from transformer.tokenizer import BOS, EOS, PAD, Tokenizer, language_token, normalise

WORDS = ["red", "green", "blue", "small", "large", "dog", "cat", "house", "tree", "runs", "sleeps", "stands"]


def sentences(count):
    return [" ".join(WORDS[(i * 7 + j * (i % 5 + 1)) % 12] for j in range(2 + i % 6)) for i in range(count)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(sentences(300), 34, languages=["de"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  A   man ", "A man"),
        ("Fahrra\u0308der", "Fahrr\u00e4der"),  # NFC
        ("no\u00a0break\u2009thin\tline\nend", "no break thin line end"),
        ("it\u2019s", "it's"),
        ("zero\u200bwidth\ufeff soft\u00adhyphen", "zerowidth softhyphen"),
        ("bell\u0007 null\u0000", "bell null"),
        ("👩\u200d🚀 “x”", "👩\u200d🚀 “x”"),  # joined emoji and quotation marks stay
        ("\u200b \n", ""),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected
    assert normalise(expected) == expected


def test_tsv_is_read_without_quoting(tmp_path):
    text = 'en\tde\tfr\nHe said "hi\tEr sagte "hallo\tx\n  two  words \tzwei\u00a0Wörter\ty\nempty\t\tz\n'
    for name, opener in (("a.tsv", open), ("a.tsv.gz", gzip.open)):
        with opener(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(text)
        expected = [('He said "hi', 'Er sagte "hallo'), ("two words", "zwei Wörter")]
        assert read_parallel(tmp_path / name, "en", "de") == expected
    assert read_parallel(tmp_path / "a.tsv", "de", "fr")[0] == ('Er sagte "hallo', "x")


def test_csv_is_read_with_quoting_and_any_columns(tmp_path):
    path = tmp_path / "service.csv"
    path.write_text(
        '\ufeffInstruction,Input,Response\r\n요금제 변경,질문,"네, 고객님.\n가능합니다."\r\n', encoding="utf-8"
    )
    assert read_parallel(path, "Instruction", "Response") == [("요금제 변경", "네, 고객님. 가능합니다.")]


def test_bad_tables_say_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing.tsv"):
        read_parallel(tmp_path / "missing.tsv", "en", "de")
    (tmp_path / "a.txt").write_text("en\tde\nx\ty\n")
    with pytest.raises(ValueError, match="endings"):
        read_parallel(tmp_path / "a.txt", "en", "de")
    (tmp_path / "a.tsv").write_text("en\tfr\nx\ty\n")
    with pytest.raises(ValueError, match="line 1: there is no column 'de'; the columns are en, fr"):
        read_parallel(tmp_path / "a.tsv", "en", "de")
    (tmp_path / "b.tsv").write_text("en\tde\n\t\n")
    with pytest.raises(ValueError, match="no pair"):
        read_parallel(tmp_path / "b.tsv", "en", "de")
    (tmp_path / "c.tsv.gz").write_bytes(b"not gzip")
    with pytest.raises(ValueError, match="cannot be read"):
        read_parallel(tmp_path / "c.tsv.gz", "en", "de")
    (tmp_path / "d.tsv").write_bytes(b"en\tde\n\xff\xfe\t\xff\n")
    with pytest.raises(ValueError, match="UTF-8"):
        read_parallel(tmp_path / "d.tsv", "en", "de")


def test_splits_are_found_by_name(tmp_path):
    (tmp_path / "val.csv").write_text("en,de\na,b\n")
    assert find_split(tmp_path, "val") == tmp_path / "val.csv" and find_split(tmp_path, "train") is None
    with pytest.raises(FileNotFoundError):
        find_split(tmp_path / "nowhere", "train")


def test_tokenizer_round_trip(tokenizer, tmp_path):
    assert len(tokenizer) == 34
    for text in sentences(20):
        ids = tokenizer.encode(text)
        assert min(ids) > EOS and tokenizer.decode([BOS, *ids, EOS, PAD]) == text
        assert "".join(tokenizer.pieces(ids)).replace("\u2581", " ").strip() == text
    assert tokenizer.pieces([PAD, BOS, EOS]) == ["<pad>", "<s>", "</s>"]
    assert tokenizer.encode(language_token("de"))[-1] == tokenizer.id("<2de>") > EOS
    tokenizer.save(tmp_path / "tokenizer.model")
    assert Tokenizer.load(tmp_path / "tokenizer.model").encode("red dog") == tokenizer.encode("red dog")
    again = Tokenizer.train(sentences(300), 34, languages=["de"])
    assert again.model == tokenizer.model  # the same text, the same pieces


def test_bad_tokenizers_say_so(tmp_path):
    with pytest.raises(ValueError, match="tokenizer.model is missing"):
        Tokenizer.load(tmp_path / "tokenizer.model")
    with pytest.raises(ValueError, match="damaged"):
        Tokenizer(b"no model")
    with pytest.raises(ValueError, match="No vocabulary of 10"):
        Tokenizer.train(sentences(300), 10)


def test_a_small_text_gets_a_small_vocabulary():
    assert 10 < len(Tokenizer.train(sentences(300), 5000)) < 100


def test_collate_shifts_the_target_and_masks_padding():
    batch = collate([([5, 6, 7], [8, 9]), ([10], [11, 12, 13])])
    assert batch.src.tolist() == [[5, 6, 7, EOS], [10, EOS, PAD, PAD]]
    assert batch.tgt.tolist() == [[BOS, 8, 9, PAD], [BOS, 11, 12, 13]]
    assert batch.labels.tolist() == [8, 9, EOS, 11, 12, 13, EOS]
    assert batch.positions.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert batch.src_mask[:, 0, 0].tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.tgt_mask[0, 0].tolist() == torch.ones(4, 4).tril().bool().tolist()


def padded(lengths, groups, part):
    return sum(len(group) * max(lengths[i] for i in group) + part for group in groups)


def test_sentences_are_parted_where_that_costs_least():
    draw = random.Random(3)
    for part in (0, 4, 40):
        lengths = [draw.randint(1, 9) for _ in range(7)]
        found = alike(lengths, part)
        assert sorted(i for group in found for i in group) == list(range(7))
        # Each way to deal seven sentences out; the first goes to group 0, the second to one of two, and so on.
        every = itertools.product(*(range(number + 1) for number in range(7)))
        ways = {tuple(tuple(i for i in range(7) if deal[i] == g) for g in set(deal)) for deal in every}
        assert padded(lengths, found, part) == min(padded(lengths, way, part) for way in ways)
    assert alike([5, 5, 5], 0) == [[0, 1, 2]]


def test_parts_of_a_batch_say_the_same_with_less_padding():
    draw = random.Random(1)
    pairs = [([draw.randint(4, 90) for _ in range(n)], [5 + n % 7] * (1 + n % 5)) for n in [*[9] * 60, *[80] * 9]]
    whole = replace(collate(pairs), dropout=0.1)
    whole.guide = torch.rand(*whole.tgt.shape, whole.src.shape[1])
    parts = whole.parts()
    assert [len(part.src) for part in parts] == [60, 9] and parts[0].src.shape[1] == 10
    first = 0
    for part in parts:
        alone = collate(pairs[first : first + len(part.src)])
        for name in ("src", "tgt", "labels", "positions", "src_mask", "tgt_mask"):
            assert torch.equal(getattr(part, name), getattr(alone, name)), name
        assert part.dropout == 0.1
        rows = slice(first, first + len(part.src))
        assert torch.equal(part.guide, whole.guide[rows, : part.tgt.shape[1], : part.src.shape[1]])
        first += len(part.src)
    even = collate(pairs[:60])
    assert even.parts() == [even]


def test_batches_hold_each_pair_once_within_the_limit(tokenizer):
    data = ParallelData.encode([(s, t) for s, t in zip(sentences(500), reversed(sentences(500)))], tokenizer, 50)
    epochs = [data.batches(128, seed=1, epoch=e) for e in (0, 1)]
    for batches in epochs:
        assert sorted(i for b in batches for i in b) == list(range(500))
        for indices in batches:
            batch = data.collate(indices)
            assert max(batch.src.numel(), batch.tgt.numel()) <= 128
    assert epochs[0] != epochs[1]
    assert data.batches(128, seed=1, epoch=0) == epochs[0]  # a pure function of (seed, epoch)
    assert data.batches(128, seed=2, epoch=0) != epochs[0]
    used = [data.collate(b) for b in epochs[0]]
    real = sum(b.labels.numel() for b in used)
    assert real / sum(b.tgt.numel() for b in used) > 0.9  # little padding


def test_long_pairs_are_left_out(tokenizer):
    data = ParallelData.encode([("red dog", "cat"), ("red " * 30, "cat")], tokenizer, 10)
    assert len(data.pairs) == 1
    with pytest.raises(ValueError, match="longer than"):
        ParallelData.encode([("red " * 30, "cat")], tokenizer, 10)
