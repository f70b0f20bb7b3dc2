"""The recipe learns trees; what it exports parses; the commands print brackets and figures."""

import gzip

import numpy as np
import pytest
import torch

from training import fit
from transformer import parse, train
from transformer.attention import causal_mask, key_mask
from transformer.insight.interpret import ablation, swap_words
from transformer.insight.intervene import continue_from, decode_from, follow, open_decoder
from transformer.insight.through import walk
from transformer.options import SearchOptions
from transformer.parsing import words
from transformer.parsing.parser import Parser, from_pretrained, phrase_weights
from transformer.parsing.recipe import ParseRecipe, ParseTask, schedule
from transformer.parsing.trees import parse_brackets
from transformer.text.verbatim import word_numbers
from transformer.translator import Translator

NOUNS = ["cell", "gene", "mouse", "protein", "strain", "region", "model", "tissue"]
VERBS = ["divides", "grows", "moves", "sleeps", "changes", "starts"]


def sentences() -> list[str]:
    return [
        f"( (S (NP-SBJ (DT The) (NN {noun})) (VP (VBZ {verb}) (ADVP (-NONE- *)) (PP (IN in) (NP "
        f"(DT a) (NN {other})))) (. .)))"
        if len(noun + verb + other) % 2
        else f"( (S (NP-SBJ (DT The) (NN {noun})) (VP (VBZ {verb})) (. .)))"
        for noun in NOUNS
        for verb in VERBS
        for other in NOUNS
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    (folder / "train.mrg.gz").write_bytes(gzip.compress("\n".join(sentences()).encode()))
    (folder / "dev.mrg").write_text("\n".join(sentences()[::37]))
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A run of a few seconds, and the folder of its weights."""
    torch.set_num_threads(1)
    recipe = ParseRecipe(
        size="mini", data=str(data), vocab_size=120, tokens=1024, max_length=64, steps=45, warmup=5, cooldown=20,
        rate=1e-2, dropout=0.0, align=0.5, align_updates=30, evaluate_every=45, save_every=45, scored=10,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("run")
    task = ParseTask(recipe)
    assert fit(task, recipe, folder / "run", quiet=True) == "finished"
    task.modules["model"].eval()
    task.export(folder / "parse")
    return task, folder


def test_it_learns_trees_and_writes_what_parses(trained):
    task, folder = trained
    assert task.f1()["f1"] > 90
    parser = from_pretrained(folder / "parse")
    assert isinstance(parser, Parser)
    with pytest.raises(ValueError, match="writes trees and does not translate"):
        Translator.from_pretrained(folder / "parse")
    (found,) = parser.parse("The gene moves in a region.")
    assert str(found.trees[0]) == (
        "( (S (NP (XX The) (XX gene)) (VP (XX moves) (PP (XX in) (NP (XX a) (XX region)))) (XX .)))"
    )
    assert found.words == ["The", "gene", "moves", "in", "a", "region", "."]
    assert "(S" in next((folder / "run/samples").rglob("trees.txt")).read_text()


def test_what_is_no_token_of_a_tree_is_never_said(trained):
    task, _ = trained
    parser = task.parser()
    found = parser.translate("The cell divides.")
    sentence, ids = found.sentence_and_ids()
    src = torch.tensor([sentence.source_ids])
    only = parser.trees([sentence.source_ids], [50])
    assert [parser.tokenizer.pieces([i])[0].lstrip("\u2581") for i in only.words[0]][0].startswith("T")
    logits = task.modules["model"].output_bias.detach()
    assert (logits[task.kinds :] == -1e4).all() and (logits[: task.kinds] > -100).all()
    assert src.shape[1] == len(found.source_tokens)
    assert all(i < task.kinds for i in ids)


def test_the_walk_through_the_model_reads_words_where_the_leaves_are(trained):
    task, _ = trained
    parser, config = task.parser(), task.config
    found = parser.translate("The strain grows in a tissue.", beam=3)
    sentence, ids = found.sentence_and_ids()
    src, tgt = (torch.tensor([row]) for row in (sentence.source_ids, parser.reads(sentence.source_ids, ids)))
    assert tgt[0].tolist() != [config.bos, *ids]
    with torch.inference_mode():
        own = task.model(src, tgt, key_mask(src, config.pad), causal_mask(tgt.shape[1]))[0].log_softmax(-1)
    for step in range(len(ids) + 1):
        walked = walk(parser, found, 1, step, decoder_layer=config.decoder_layers - 1)
        np.testing.assert_allclose(walked.logprobs, own[step], atol=2e-4)


def test_a_parse_that_is_followed_holds_no_weights_and_its_forks_watch_nothing(trained):
    task, _ = trained
    parser = task.parser()
    sentence, ids = parser.translate("The strain grows.").sentence_and_ids()
    decoding = follow(parser, sentence.source_ids, ids)
    assert decoding.state.take_weights() == {}
    assert decoding.inputs == parser.reads(sentence.source_ids, ids) != [task.config.bos, *ids]
    watched = open_decoder(parser, sentence.source_ids, watch=True)
    for token in (task.config.bos, *ids[:2]):
        with torch.inference_mode():
            watched.step(torch.tensor([[token]]))
    twin = watched.fork(2)
    with torch.inference_mode():
        twin.step(torch.tensor([[ids[1]]]))
    assert twin.take_weights() == {}
    kept = watched.take_weights()
    assert [len(kept[kind]) for kind in ("decoder", "cross")] == [task.config.decoder_layers] * 2
    assert watched.take_weights() == {}


def test_a_search_reads_what_a_teacher_forced_pass_reads(trained):
    task, _ = trained
    parser = task.parser()
    found = parser.translate("The strain grows in a tissue.", beam=3)
    logprob, changes = ablation(parser, found)
    assert logprob == pytest.approx(found.hypotheses[0].logprob, abs=1e-3)
    assert {kind: array.shape for kind, array in changes.items()} == dict.fromkeys(
        ("encoder", "decoder", "cross"), (2, 2)
    )
    attention = parser.attend(found)
    assert attention.target_tokens == [*found.tokens, "</s>"]
    assert found.tokens[:4] == ["(S", "(NP", "▁The", "▁strain"]
    weights = phrase_weights(attention, found.sentences[0])
    assert weights.shape == (5 + 7, 7)  # S, NP, VP, PP, NP, then the words
    assert (weights >= 0).all() and (weights.sum(1) <= 1.0001).all() and weights.sum(1).min() > 0
    # the leaf of a word of one piece: the row of its step, all heads together
    step = found.tokens.index("▁strain")
    pieces = [i for i, piece in enumerate(attention.source_tokens) if word_numbers(attention.source_tokens)[i] == 1]
    assert weights[5 + 1, 1] == pytest.approx(attention.cross[-1][:, step, pieces].mean(0).sum(), abs=1e-6)


def test_the_views_of_a_translation_open_on_a_parse(trained):
    task, _ = trained
    parser = task.parser()
    found = parser.translate("The strain grows in a tissue.")
    sentence, ids = found.sentence_and_ids()
    decoding = follow(parser, sentence.source_ids, ids)
    assert decoding.logprobs.sum() == pytest.approx(sentence.hypotheses[0].logprob, abs=1e-3)
    again = decode_from(parser, sentence.source_ids, ids[:3], SearchOptions(2, 0.3))
    assert again.candidates[0].ids == ids and again.hypotheses[0].text.startswith("(S (NP XX")
    forced = continue_from(parser, decoding, 1, parser.symbols.leaf)  # no NP around the first word
    assert forced.candidates[0].ids[1] == parser.symbols.leaf
    assert forced.candidates[0].ids.count(parser.symbols.leaf) == 7
    with pytest.raises(ValueError, match="No tree of this sentence can go on with"):
        continue_from(parser, decoding, 0, parser.symbols.leaf)
    assert parser.target_ids("(S (NP The XX )NP") == [*ids[:2], parser.symbols.leaf, parser.symbols.leaf, ids[4]]
    swapped = swap_words(parser, found, 1, 5, options=SearchOptions(2))
    assert all(text.startswith("(S") for texts in swapped.translations.values() for text in texts)


def test_beams_of_every_width_end_in_trees(trained):
    task, _ = trained
    parser = task.parser()
    text = "Cells we never saw do not divide, as (it) was said by nobody"
    for beam in (1, 4, 21):
        found = parser.translate(text, beam=beam, alpha=0.3, n_best=beam)
        for tree in found.sentences[0].trees:
            assert tree.words() == words.split_words(text)
        assert parse_brackets(found.sentences[0].hypotheses[0].text) == found.sentences[0].trees[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Die Zelle teilt sich und das ist gut.", "looks German"),
        ("La cellule se divise dans le tissu.", "looks French"),
        ("12 + 30 = 42", "no word to parse"),
        (" ", "enter some text"),
        ("cell " * 200, "200 words and the parser takes 100"),
        ("세포가 나뉜다", "cannot read the script"),
    ],
)
def test_what_cannot_be_parsed_is_one_sentence(trained, text, says):
    with pytest.raises(ValueError, match=says) as error:
        trained[0].parser().parse(text)
    assert "\n" not in str(error.value)


def test_the_command(trained, capsys):
    _, folder = trained
    assert parse.main(["The cell divides.", "--model", str(folder / "parse"), "--flat"]) == 0
    assert capsys.readouterr().out == "( (S (NP (XX The) (XX cell)) (VP (XX divides)) (XX .)))\n"
    assert parse.main(["The cell.", "--model", "multi30k-en-de"]) == 2
    assert "writes no trees" in capsys.readouterr().err


def test_mistakes_of_the_command_are_one_sentence(tmp_path, capsys):
    (tmp_path / "train.mrg").write_text("(S (NN a)")
    assert train.main(["--preset", "parse", "--data", str(tmp_path), "--run", str(tmp_path / "run")]) == 2
    assert "train.mrg, line 1" in capsys.readouterr().err
    assert train.main(["--preset", "parse", "--run", str(tmp_path / "run")]) == 2
    assert "say where the trees are" in capsys.readouterr().err


def test_the_rate_rises_stays_and_falls_to_nothing():
    rates = [schedule(step, 10, 1.0, 2, 4) for step in range(1, 12)]
    assert rates == [0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know what's CIA-induced, e.g. in Fig. 3B (A/J).",
         "I do n't know what 's CIA - induced , e.g. in Fig. 3B ( A / J ) ."),
        ("27,000 mice, 3.5% more; they've gone.", "27,000 mice , 3.5 % more ; they 've gone ."),
        ("It was said by J. Smith et al. 1999...", "It was said by J. Smith et al. 1999 ..."),
    ],
)  # fmt: skip
def test_words_are_cut_as_in_the_treebank(text, expected):
    assert " ".join(words.split_words(text)) == expected


def test_english_is_known_by_its_small_words():
    assert words.foreign_language(["The", "cell", "divides", "."]) is None
    assert words.foreign_language(["Mice", "sleep", "."]) is None
    assert words.foreign_language(["Das", "Haus", "ist", "nicht", "groß"]) == "German"
    assert words.foreign_language(["He", "was", "in", "die", "house"]) is None


def test_leaves_are_read_as_the_first_piece_with_letters():
    starts = torch.tensor([False, False, False, False, False, True, True, False, False])  # 5 is a blank alone
    src = torch.tensor([[6, 7, 5, 8, 7, 6, 3], [6, 3, 0, 0, 0, 0, 0]])
    tgt = torch.tensor([[2, 1, 4, 4, 1, 4], [2, 4, 1, 0, 0, 0]])
    read_ = words.leaves_to_words(src, tgt, starts, 4, 5)
    assert read_.tolist() == [[2, 1, 6, 8, 1, 6], [2, 6, 1, 0, 0, 0]]
    assert words.leaf_words([6, 7, 5, 8, 7, 6, 3], starts, 5) == [6, 8, 6]


@pytest.mark.parametrize(
    "argv, trees",
    [
        (["--preset", "parse", "--data", "trees"], True),
        (["--preset=parse", "--help"], True),
        (["--preset", "tiny", "--run", "RUN"], False),
        (["--run", "RUN", "--resume", "--steps", "9"], True),
        (["--run=NEW", "--fork", "RUN"], True),
        (["--run", "NEW", "--data", "pairs.tsv"], False),
        (["--help"], False),
    ],
)
def test_a_run_that_goes_on_is_known_for_one_on_trees(argv, trees, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text('{"task": "ParseTask"}')
    argv = [arg.replace("RUN", str(tmp_path / "run")).replace("NEW", str(tmp_path / "new")) for arg in argv]
    assert (train.load_recipe(argv).get("task") == "ParseTask") is trees
