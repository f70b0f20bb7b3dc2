"""Sources drawn by their worth: shares, directions, batches, lengths, and a run with Muon on a mixture."""

import copy
import dataclasses
import gzip
import itertools
import json
import random
from collections import Counter

import numpy as np
import pytest
import torch

import training
from lab.translator.mixture import (
    GROWTH,
    Mixture,
    Row,
    Sampler,
    factor_of,
    parse_factors,
    read_rows,
    shares,
    spread,
    token_lengths,
)
from lab.translator.phrasebook import KINDS as TABLES
from lab.translator.train import KINDS, AnchoredTask, MixtureRecipe, MixtureTask, task_of, trapezoid
from tests.transformer.words import ENGLISH, GERMAN
from training.optimizers import muon_and_adam
from training.run import Run
from transformer import config as configs
from transformer.model import Transformer
from transformer.tokenizer import Tokenizer
from transformer.train import TranslationRecipe
from transformer.train import main as train_plainly

DIRECTIONS = {("en", "de"): [4], ("de", "en"): [5]}


def sentences(count, seed=0):
    draw = random.Random(seed)
    chosen = [[draw.randrange(16) for _ in range(draw.randrange(2, 7))] for _ in range(count)]
    return [(" ".join(ENGLISH[i] for i in ids), " ".join(GERMAN[i] for i in ids)) for ids in chosen]


@pytest.fixture(scope="module")
def tokenizer():
    pairs = sentences(300)
    return Tokenizer.train([t for pair in pairs for t in pair], 120, ["en", "de", "fr"], stand_ins=True)


def rows(sizes):
    return [
        Row(name, ("en", "de"), pair) for seed, (name, n) in enumerate(sizes.items()) for pair in sentences(n, seed)
    ]


def test_shares_follow_worth_and_temperature():
    assert shares({"a": 300, "b": 100}, {}, 1.0) == {"a": 0.75, "b": 0.25}
    assert shares({"a": 300, "b": 100}, {"b": 3.0}, 1.0) == {"a": 0.5, "b": 0.5}
    assert shares({"a": 400, "b": 100}, {}, 2.0)["a"] == pytest.approx(2 / 3)
    assert (
        factor_of("news_old.en-de", {"news": 2.0, "news_old": 5.0}) == 5.0 and factor_of("chat", {"news": 2.0}) == 1.0
    )
    assert parse_factors("news=3 manuals=0") == {"news": 3.0, "manuals": 0.0}
    for wrong in ("news", "news=", "news=x", "=2", "news=-1", "news=inf"):
        with pytest.raises(ValueError, match="NAME=WORTH"):
            parse_factors(wrong)
    with pytest.raises(ValueError, match="above 0"):
        shares({"a": 3}, {"a": 0.0}, 1.0)


def test_an_epoch_draws_every_source_as_often_as_it_is_worth(tokenizer):
    mixture = Mixture(
        rows({"news.en-de": 100, "manuals.en-de": 900}), tokenizer, 60, DIRECTIONS, factors={"manuals": 1 / 9}
    )
    assert mixture.share["news.en-de en-de"] == pytest.approx(0.5)
    order = mixture.draw(1, 0)
    counts = Counter(mixture.origin(i) for i in order)
    assert len(order) == pytest.approx(len(mixture), rel=0.05)
    assert counts["news.en-de"] == 1000 and counts["manuals.en-de"] == pytest.approx(1000, rel=0.1)
    assert (mixture.draw(1, 0) == order).all() and (mixture.draw(1, 1)[:50] != order[:50]).any()
    # within a source, every pair has the same chance
    each = Counter(int(i) for i in order if mixture.origin(i) == "news.en-de")
    assert set(each.values()) == {5}


def test_a_direction_comes_as_often_as_it_is_worth(tokenizer):
    table = rows({"news.en-de": 200})
    mixture = Mixture(table, tokenizer, 60, DIRECTIONS, factors={"de-en": 3.0})
    counts = Counter(mixture.directions[mixture.direction[i]] for i in mixture.draw(1, 0))
    assert counts == {("de", "en"): pytest.approx(300, abs=30), ("en", "de"): pytest.approx(100, abs=30)}
    with pytest.raises(ValueError, match="no direction"):
        Mixture(table, tokenizer, 60, DIRECTIONS, factors={"de-en": 0.0, "en-de": 0.0})


def test_teacher_text_is_learned_in_one_direction_only(tokenizer):
    mixture = Mixture(rows({"teacher.de-en": 20, "news.en-de": 20}), tokenizer, 60, DIRECTIONS, one_way="teacher")
    seen = Counter((mixture.origin(i), mixture.directions[mixture.direction[i]]) for i in range(len(mixture)))
    assert seen == {
        ("teacher.de-en", ("de", "en")): 20,
        ("news.en-de", ("en", "de")): 20,
        ("news.en-de", ("de", "en")): 20,
    }
    source, target = mixture.ids(next(i for i in range(60) if mixture.origin(i) == "teacher.de-en"))
    assert source[0] == 5 and tokenizer.decode(source[1:]).split()[0] in GERMAN
    assert tokenizer.decode(target).split()[0] in ENGLISH


def test_batches_hold_no_more_than_they_may_and_every_drawn_item(tokenizer):
    mixture = Mixture(rows({"a": 200}), tokenizer, 60, DIRECTIONS)
    batches = mixture.batches(128, 3, 0)
    assert Counter(itertools.chain(*batches)) == Counter(mixture.draw(3, 0).tolist())
    for indices in batches:
        batch = mixture.collate(indices)
        assert max(batch.src.numel(), batch.tgt.numel()) <= 128
    assert batches == mixture.batches(128, 3, 0) != mixture.batches(128, 3, 1)


def test_long_pairs_stay_out_and_changed_ones_never_grow_too_long(tokenizer):
    pairs = rows({"a": 50})
    longest = int(token_lengths(pairs, tokenizer).max())
    short = Mixture(pairs, tokenizer, longest, DIRECTIONS)
    assert short.omissions > 0 and short.lengths.max() < longest
    doubled = Mixture(pairs, tokenizer, longest + 2, DIRECTIONS, change=lambda s, t, _: (s + " " + s, t))
    assert doubled.omissions == 0
    for index in range(len(doubled)):
        assert max(map(len, doubled.ids(index, random.Random(0)))) < longest + 2
    with pytest.raises(ValueError, match="no pair"):
        Mixture(pairs, tokenizer, 2, DIRECTIONS)


def test_lengths_are_kept_for_next_time(tokenizer, tmp_path):
    pairs = rows({"a": 10})
    first = token_lengths(pairs, tokenizer, tmp_path)
    assert first.tolist() == [[len(tokenizer.encode(t)) for t in row.texts] for row in pairs]
    (file,) = tmp_path.iterdir()
    np.save(file, first + 1)
    assert (token_lengths(pairs, tokenizer, tmp_path) == first + 1).all()
    assert (token_lengths(pairs[:5], tokenizer, tmp_path) == first[:5]).all()  # another table


def test_development_data_of_every_source_and_direction(tokenizer):
    mixture = Mixture(rows({"a": 100, "b": 3}), tokenizer, 60, DIRECTIONS)
    found = spread(mixture, 10)
    assert {name: len(indices) for name, indices in found.items()} == {
        "a en-de": 10, "a de-en": 10, "b en-de": 3, "b de-en": 3,
    }  # fmt: skip


def test_the_trapezoid_rises_stays_and_ends_at_zero():
    rates = [trapezoid(step, 100, 10, 0.4) for step in range(1, 101)]
    assert rates[0] == 0.1 and rates[9:60] == [1.0] * 51 and rates[99] == 0.0
    assert rates[79] == pytest.approx(0.5) and all(a >= b for a, b in itertools.pairwise(rates[9:]))
    assert trapezoid(100, 100, 10, 0.0) == 1.0
    with pytest.raises(ValueError, match="decay"):
        trapezoid(1, 10, 1, 1.5)


def test_muon_has_the_matrices_of_linear_layers_and_adam_all_else():
    model = Transformer(configs.preset("mini", vocab_size=50))
    optimizers = muon_and_adam(model)
    names = {id(p): name for name, p in model.named_parameters()}
    own = {key: {names[id(p)] for g in o.param_groups for p in g["params"]} for key, o in optimizers.items()}
    assert not own["matrices"] & own["model"] and own["matrices"] | own["model"] == set(names.values())
    assert "embedding.weight" in own["model"] and "encoder.0.attention.qkv.weight" in own["matrices"]
    assert all(name.endswith("weight") and "norm" not in name for name in own["matrices"])


def write(path, pairs):
    lines = ["en\tde\tfr\torigin", *(f"{row.texts[0]}\t{row.texts[1]}\t\t{row.origin}" for row in pairs)]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    made = tmp_path_factory.mktemp("sources")
    write(made / "train.tsv.gz", rows({"wmt_news.en-de": 60, "manuals.en-de": 120}))
    write(made / "val.tsv.gz", rows({"manuals.en-de": 5, "wmt_news.en-de": 4}))
    tokenizer.save(made / "tokenizer.model")
    return made


def test_a_table_says_where_each_pair_is_from(folder):
    found = read_rows(folder / "val.tsv.gz", ["en", "de"])
    assert [row.origin for row in found] == ["manuals.en-de"] * 5 + ["wmt_news.en-de"] * 4
    assert found[0].languages == ("en", "de") and found[0].texts[1].split()[0] in GERMAN
    with pytest.raises(ValueError, match="no column 'it'"):
        read_rows(folder / "val.tsv.gz", ["en", "it"])


def test_a_run_on_a_mixture_with_muon_resumes_bit_for_bit(folder, tmp_path):
    def recipe(steps):
        return MixtureRecipe(
            size="mini", data=str(folder), directions="en-de de-en", mixture="manuals=0.5", noise=0.3, stand_ins=0.3,
            sampled=0.5, optimizer="muon", rate=3e-3, warmup=3, tokens=256, max_length=60, steps=steps, log_every=1,
            save_every=4, evaluate_every=4, threads=1, bleu=0,
        )  # fmt: skip

    def finish(folder):
        return training.checkpoint.module_state(training.latest_checkpoint(Run(folder).checkpoints))

    whole = recipe(8)
    training.fit(task_of(whole), whole, tmp_path / "whole", quiet=True)
    # The rate of the last updates depends on their number, so the first part has the same.
    part = recipe(8)
    stopped = task_of(part)
    stopped.recipe.max_minutes = 1e-9
    assert training.fit(stopped, part, tmp_path / "parts", quiet=True) == "stopped"
    again = recipe(8)
    training.fit(task_of(again), again, tmp_path / "parts", resume=True, quiet=True)
    one, two = finish(tmp_path / "whole"), finish(tmp_path / "parts")
    assert all(torch.equal(value, two[name]) for name, value in one.items())
    events = list(Run(tmp_path / "whole").events())
    logs = [event for event in events if event["event"] == "log"]
    assert logs[-1]["losses"]["nll"] < logs[0]["losses"]["nll"]
    assert logs[-1]["learning_rates"] == {"matrices": 0.0, "model": 0.0}
    figures = next(event for event in events if event["event"] == "evaluation")["figures"]
    assert figures["loss"] == figures["wmt_news"] and figures["narrow"] != figures["loss"]


def test_some_sources_are_learned_and_the_others_hold_the_model(folder, tmp_path):
    """Learning goes on from the same weights, with news to hold them and without: with, what they say of news changes
    less.
    """
    common = {
        "size": "mini", "data": str(folder), "directions": "en-de de-en", "rate": 2e-3, "warmup": 2, "tokens": 256,
        "max_length": 60, "log_every": 1, "save_every": 30, "evaluate_every": 0, "threads": 1, "bleu": 0,
        "dropout": 0.0, "label_smoothing": 0.0,
    }  # fmt: skip
    first = MixtureRecipe(**common, steps=30, mixture="manuals=0")
    begun = task_of(first)
    training.fit(begun, first, tmp_path / "first", quiet=True)
    begun.export(tmp_path / "model")
    of_news = [index for index in range(len(begun.data)) if begun.data.origin(index).startswith("wmt_news")]
    news, before = begun.data.collate(of_news), begun.model

    def finished(name, **fields):
        recipe = MixtureRecipe(**{**common, **fields}, steps=20, initial=str(tmp_path / "model"))
        task = task_of(recipe)
        training.fit(task, recipe, tmp_path / name, quiet=True)
        task.before = copy.deepcopy(before)
        logs = [event["losses"] for event in Run(tmp_path / name).events() if event["event"] == "log"]
        return AnchoredTask.divergence(task, news).item(), logs

    free, _ = finished("free", mixture="wmt_news=0")
    held, logs = finished("held", mixture="wmt_news=2", learned="manuals")
    assert held < 0.5 * free
    assert logs[0]["held"] == pytest.approx(0.0, abs=1e-3) and logs[-1]["held"] > 0.01
    assert logs[-1]["nll"] < logs[1]["nll"]


def test_learned_and_holding_sentences_are_told_apart(folder, tmp_path):
    recipe = MixtureRecipe(
        size="mini", data=str(folder), directions="en-de de-en", mixture="manuals=1", tokens=256, max_length=60,
        bleu=0, dropout=0.0,
    )  # fmt: skip
    task_of(recipe).export(tmp_path)
    recipe = dataclasses.replace(recipe, learned="manuals", initial=str(tmp_path))
    task, plain = task_of(recipe), task_of(dataclasses.replace(recipe, learned=""))
    batch, whole = task.batch(1, 0, 0, 1), plain.batch(1, 0, 0, 1)
    assert isinstance(task, AnchoredTask) and type(plain) is MixtureTask
    assert torch.equal(whole.src, batch.src) and 0 < batch.anchors.sum() < len(batch.src)
    terms = task.terms(batch)
    alone = plain.terms(whole.rows((~batch.anchors).nonzero()[:, 0]))
    torch.testing.assert_close(terms["loss"], alone["loss"])
    torch.testing.assert_close(terms["nll"], alone["nll"])
    assert plain.terms(whole)["nll"] > 1.2 * terms["nll"]  # of both kinds
    only = dataclasses.replace(batch, anchors=torch.ones_like(batch.anchors))
    assert task.terms(only)["nll"] == 0 and task.terms(only)["held"] >= 0
    with pytest.raises(ValueError, match="no source letters"):
        task_of(dataclasses.replace(recipe, learned="manuals letters"))


def test_a_share_of_the_batches_is_cut_into_pieces_anew(tokenizer):
    common = (rows({"news.en-de": 200}), tokenizer, 200, DIRECTIONS)
    plain, some, every = (Mixture(*common, sampled=share) for share in (0.0, 0.5, 1.0))

    def changed(mixture, seed):
        batch, as_it_is = mixture.collate(range(40), 0, random.Random(seed)), mixture.collate(range(40))
        return batch.src.shape != as_it_is.src.shape or not torch.equal(batch.src, as_it_is.src)

    seeds = range(60)
    assert not any(changed(plain, seed) for seed in seeds) and all(changed(every, seed) for seed in seeds)
    assert [changed(some, seed) for seed in seeds] == [changed(some, seed) for seed in seeds]
    assert np.mean([changed(some, seed) for seed in seeds]) == pytest.approx(0.5, abs=0.2)
    for i in range(50):
        source, target = some.ids(i, random.Random(i), sampled=True)
        assert (tokenizer.decode(source[1:]), tokenizer.decode(target)) == some.text(i)


def test_noise_that_would_pad_a_whole_batch_is_left_out(tokenizer):
    """Neighbours in length share a batch; one that is drawn twice as long would double it."""
    common = (rows({"news.en-de": 50}), tokenizer, 200, DIRECTIONS)
    longer = Mixture(*common, change=lambda source, target, _: (f"{source} {source}", target))
    little = Mixture(*common, change=lambda source, target, _: (source.split(" ")[0], target))
    for i in range(50):
        assert longer.ids(i, random.Random(0)) == longer.ids(i)
        assert len(little.ids(i, random.Random(0))[0]) <= GROWTH * little.lengths[i].max() + 2
    assert any(little.ids(i, random.Random(0)) != little.ids(i) for i in range(50))


def test_segmentations_are_drawn_by_their_smoothed_probability(tokenizer):
    pieces, word = tokenizer._pieces, ENGLISH[0]
    ways = pieces.nbest_encode(word, nbest_size=8)
    chances = np.exp(0.2 * np.array([sum(map(pieces.get_score, way)) for way in ways]))
    draw = random.Random(3)
    sampler = Sampler(tokenizer)
    counts = Counter(tuple(sampler.encode(word, draw)) for _ in range(4000))
    assert len(ways) > 1 and set(counts) == set(map(tuple, ways))
    for way, chance in zip(ways, chances / chances.sum()):
        assert counts[tuple(way)] / 4000 == pytest.approx(chance, abs=0.03)
    held = tokenizer.encode("<x1>,")
    assert all(sampler.encode(f"{word} <x1>,", random.Random(seed))[-len(held) :] == held for seed in range(30))


def test_the_preset_of_kinds_learns_every_table_of_kinds_and_weighs_what_it_learns(folder):
    recipe = MixtureRecipe(**{**KINDS, "data": str(folder), "initial": "everyday"})
    recipe.check()
    learned, factors = recipe.learned.split(), parse_factors(recipe.mixture)
    assert set(TABLES) <= set(learned) <= set(factors) and factors["ding"] == 0


def test_recipes_that_make_no_sense_say_so(folder):
    base = dict(size="mini", data=str(folder), max_length=60, tokens=256)  # noqa: C408
    for wrong, match in (
        ({"optimizer": "sgd"}, "adam, muon"),
        ({"noise": 1.5}, "noise must be at most 1"),
        ({"names": 2.0}, "names must be at most 1"),
        ({"sampled": -0.1}, "sampled must be at least 0"),
        ({"mixture": "news"}, "NAME=WORTH"),
        ({"mixture": "news=1", "directions": "en-de de-fr fr-it"}, "one language in common"),
        ({"rate": 2.0}, "rate has to be"),
        ({"temperature": 0.0}, "temperature has to be above 0"),
        ({"learned": "manuals", "mixture": "manuals=1"}, "needs the trained weights"),
    ):
        with pytest.raises(ValueError, match=match):
            MixtureRecipe(**base, **wrong).check()


def test_a_plain_run_from_before_mixtures_had_a_recipe_goes_on_and_one_on_a_mixture_is_sent_here(
    folder, tmp_path, capsys
):
    old = {
        "task": "TranslationTask",
        "data": str(folder),
        "mixture": "",
        "temperature": 1.5,
        "one_way": "",
        "noise": 0.0,
    }
    assert TranslationRecipe.restore(old).data == str(folder)
    with pytest.raises(ValueError, match="'mixture'"):
        TranslationRecipe.restore({**old, "mixture": "manuals=1"})
    assert MixtureRecipe.restore({**old, "mixture": "manuals=1"}).mixture == "manuals=1"
    (tmp_path / "recipe.json").write_text(json.dumps({**old, "mixture": "manuals=1"}))
    assert train_plainly(["--resume", "--run", str(tmp_path)]) == 2
    assert "lab.translator.train" in capsys.readouterr().err
