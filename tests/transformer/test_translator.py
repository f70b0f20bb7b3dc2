"""The shipped model as a visitor and a programmer meet it, good input and bad."""

import copy
import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from training.assets import model_dir
from transformer import Translator, kernels
from transformer.evaluate import losses
from transformer.scoring import rank_by_reading_back
from transformer.search import Candidate, beam_search, length_penalty
from transformer.text.sentences import split_clauses, split_sentences
from transformer.tokenizer import Tokenizer
from transformer.translate import DEFAULT_MODEL, main
from transformer.translator import MARGIN, has_letters


@pytest.fixture(scope="module")
def translator(device):
    return Translator.from_pretrained("multi30k-en-de", device)


def test_translates_a_caption(translator):
    out = translator.translate("A man is riding a bicycle.", "en", "de")
    assert out.text in ("Ein Mann fährt auf einem Fahrrad.", "Ein Mann fährt Fahrrad.")
    assert out.source_text == "A man is riding a bicycle."
    assert out.source_tokens[-1] == "</s>" and "".join(out.tokens).replace("\u2581", " ").strip() == out.text
    assert out.score == out.hypotheses[0].score < 0 and out.trace is None


def test_n_best_is_sorted_and_different(translator):
    out = translator.translate("Two dogs play in the snow.", beam=5, n_best=5)
    scores = [h.score for h in out.hypotheses]
    assert len({h.text for h in out.hypotheses}) == 5 and scores == sorted(scores, reverse=True)
    for hypothesis in out.hypotheses:
        penalty = ((5 + len(hypothesis.tokens) + 1) / 6) ** 0.6
        assert hypothesis.score == pytest.approx(hypothesis.logprob / penalty, rel=1e-5)


def test_lines_and_sentences_keep_their_places(translator):
    text = "A dog runs.\n\n  A girl smiles. A boy  jumps!\r\nTwo men talk."
    out = translator.translate(text)
    lines = out.text.split("\n")
    assert len(lines) == 4 and lines[1] == ""
    alone = translator.translate(["A dog runs.", "A girl smiles.", "A boy jumps!", "Two men talk."])
    assert lines == [alone[0].text, "", f"{alone[1].text} {alone[2].text}", alone[3].text]
    assert len(out.sentences) == 4


def test_a_list_is_translated_like_each_alone(translator):
    long = "A woman in a red dress is walking down the street with a small dog."
    texts = ["A man is sleeping.", long, "Children play."]
    assert [t.text for t in translator.translate(texts)] == [translator.translate(t).text for t in texts]


def test_attention_has_the_right_shapes_and_labels(translator):
    out = translator.translate("A girl eats an apple. A man sleeps.", beam=3, n_best=3)
    for sentence, hypothesis in ((0, 0), (0, 2), (1, 1)):
        att = translator.attend(out, hypothesis, sentence)
        layers, heads, T, S = att.cross.shape
        assert (layers, heads) == (4, 4)
        assert att.encoder.shape == (4, 4, S, S) and att.decoder.shape == (4, 4, T, T)
        assert att.source_tokens == translator.source_tokens(out.sentences[sentence]) and len(att.source_tokens) == S
        assert att.target_tokens == [*out.sentences[sentence].hypotheses[hypothesis].tokens, "</s>"]
        assert att.decoder_tokens == ["<s>", *att.target_tokens[:-1]] and len(att.target_tokens) == T
        for weights in (att.encoder, att.decoder, att.cross):
            assert weights.dtype == np.float32 and weights.min() >= 0
            np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
        assert not np.triu(att.decoder[0, 0], 1).any()


def test_attention_finds_the_aligned_word(translator):
    """In some layer's mean over heads, 'Hund' looks at 'dog' more than at any other word."""
    att = translator.attend(translator.translate("A brown dog is running."))
    row = next(i for i, t in enumerate(att.target_tokens) if "Hund" in t)
    words = att.cross[:, :, row].mean(1)[:, :-2]  # without the full stop and eos, where heads rest
    assert any("dog" in att.source_tokens[int(layer.argmax())] for layer in words)


def test_a_kept_encoding_gives_the_same_attention(translator, monkeypatch):
    encode, counted = translator.model.encode, []
    monkeypatch.setattr(translator.model, "encode", lambda *a, **k: counted.append(1) or encode(*a, **k))
    out = translator.translate("A brown dog is running.")
    kept = translator.attend(out)
    assert len(counted) == 1  # the sentence is not encoded again
    out.sentences[0].encoding = None
    again = translator.attend(out)
    assert len(counted) == 2
    for name in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(getattr(kept, name), getattr(again, name), atol=1e-6)
    several = translator.translate("A dog runs. A girl eats.")  # a batch keeps none
    assert all(sentence.encoding is None for sentence in several.sentences)


def test_another_models_encoding_is_not_used(translator):
    other = Translator(copy.deepcopy(translator.model), translator.tokenizer, translator.pairs)
    with torch.no_grad():
        other.model.encoder[0].attention.qkv.weight.mul_(0.5)
    out = translator.translate("A brown dog is running.")
    own, others = translator.attend(out).encoder, other.attend(out).encoder
    out.sentences[0].encoding = None
    assert np.array_equal(other.attend(out).encoder, others) and not np.allclose(own, others, atol=1e-3)


def test_trace_holds_every_step(translator):
    out = translator.translate("A dog runs.", trace=True)
    (steps,) = out.trace
    assert len(steps) >= len(out.tokens) + 1
    assert all(len(s.tokens) <= 4 for s in steps) and sum(len(s.finished) for s in steps) >= 4


@pytest.mark.parametrize("text", ["", "   \n \t ", "\u200b"])
def test_empty_text_asks_for_some(translator, text):
    with pytest.raises(ValueError, match="enter some text"):
        translator.translate(text)


def test_an_empty_text_in_a_list_is_named(translator):
    with pytest.raises(ValueError, match="Text 2 of 3"):
        translator.translate(["A dog.", "", "A cat."])


@pytest.mark.parametrize("text", ["😀", "🙂 👩\u200d🚀", "12345", "!?", "3.14 + 2"])
def test_what_has_no_letters_passes_unharmed(translator, text):
    out = translator.translate(text)
    assert out.text == text
    with pytest.raises(ValueError, match="no words"):
        translator.attend(out)


def test_emoji_around_a_sentence_stay(translator):
    plain = translator.translate("A dog runs.").text
    assert translator.translate("🐕 A dog runs. 🙂 🙂").text == f"🐕 {plain} 🙂 🙂"


@pytest.mark.parametrize("text", ["Привет, мир", "你好世界", "مرحبا"])
def test_an_unknown_script_is_refused_in_one_sentence(translator, text):
    with pytest.raises(ValueError, match="cannot read the script") as error:
        translator.translate(text)
    assert str(error.value).count(".") == 1


def test_long_texts(translator):
    sentence = "A man in a blue shirt is standing on a ladder. "
    out = translator.translate(sentence * 213, beam=1)  # 10,000 characters
    assert len(out.sentences) == 213 and len({s.hypotheses[0].text for s in out.sentences}) == 1
    with pytest.raises(ValueError, match="break it into shorter sentences"):
        translator.translate("word " * 2000)


def test_the_length_limit_is_reported(translator):
    out = translator.translate("A man in a blue shirt is standing on a ladder cleaning a window.", max_length=3)
    assert len(out.tokens) == 3 and "length limit" in out.notes[0]


def test_pairs_and_beams_that_do_not_exist(translator):
    assert translator.pairs == [("en", "de")]
    with pytest.raises(ValueError, match="does not translate de to en; it translates en to de"):
        translator.translate("Ein Hund.", "de", "en")
    with pytest.raises(ValueError, match="beam"):
        translator.translate("A dog.", beam=2, n_best=3)
    out = translator.translate("A dog.")
    with pytest.raises(ValueError, match="no number 1"):
        translator.attend(out, hypothesis=1)
    with pytest.raises(ValueError, match="no number 3"):
        translator.attend(out, sentence=3)


@pytest.fixture
def copied(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model_dir("multi30k-en-de"), folder)
    return folder


def test_a_folder_loads_like_a_name(copied, translator):
    text = "A woman is reading a book."
    assert Translator.from_pretrained(copied, "cpu").translate(text).text == translator.translate(text).text


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "model.safetensors").write_bytes(b"nothing"), "damaged"),
        (lambda f: (f / "model.safetensors").unlink(), "missing"),
        (lambda f: (f / "tokenizer.model").write_bytes(b"nothing"), "damaged"),
        (lambda f: (f / "tokenizer.model").unlink(), "missing"),
        (lambda f: Tokenizer.train(["a few words"], 16).save(f / "tokenizer.model"), "do not belong together"),
        (lambda f: (f / "config.json").write_text("{}"), "another format"),
        (lambda f: (f / "config.json").write_text("{"), "JSON"),
        (lambda f: edit(f, decoder_layers=3), "fit"),
        (lambda f: edit(f, vocab_size=7000), "fit"),
        (lambda f: edit(f, colour="red"), "colour"),
    ],
)
def test_damaged_and_foreign_folders_say_so(copied, damage, words):
    damage(copied)
    with pytest.raises(ValueError, match=words) as error:
        Translator.from_pretrained(copied, "cpu")
    assert "\n" not in str(error.value)


def edit(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config["transformer"].update(changes)
    (folder / "config.json").write_text(json.dumps(config))


def test_unknown_names_list_the_known_ones():
    with pytest.raises(FileNotFoundError, match="multi30k-en-de"):
        Translator.from_pretrained("multi30k-en-xx")


def test_every_weight_counts(translator):
    """Each kind of shipped weight changes the output when it is disturbed: nothing is for show."""
    sentence = "A man is riding a bicycle."
    plain = translator.translate(sentence, beam=1).score
    for name, parameter in translator.model.named_parameters():
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter.add_(torch.randn_like(parameter) * 0.05)
            changed = translator.translate(sentence, beam=1).score
            parameter.copy_(kept)
        assert changed != plain, name
    assert translator.translate(sentence, beam=1).score == plain


def test_the_command_prints_only_the_translation(translator, capsys):
    sentence = "A man is riding a bicycle."
    assert main(["--model", "multi30k-en-de", sentence]) == 0
    assert capsys.readouterr().out == translator.translate(sentence).text + "\n"
    assert main([sentence]) == 0  # the default model, from English to German
    default = Translator.from_pretrained(DEFAULT_MODEL)
    assert capsys.readouterr().out == default.translate(sentence, "en", "de").text + "\n"
    assert main([""]) == 2 and "enter some text" in capsys.readouterr().err
    assert main(["--model", "nothing", "A dog."]) == 2 and "multi30k-en-de" in capsys.readouterr().err
    assert main(["--n-best", "2", "A dog."]) == 0 and capsys.readouterr().out.count("\t") == 2


def test_the_command_takes_one_language_of_a_pair_of_the_default_model(capsys):
    pairs = Translator.from_pretrained(DEFAULT_MODEL).pairs
    sources, targets = {("--source", one) for one, _ in pairs}, {("--target", one) for _, one in pairs}
    for option, language in sources | targets:
        assert main([option, language, "A man."]) == 0 and capsys.readouterr().out.strip(), (option, language)
    assert main(["--source", "xx", "A man."]) == 2 and "does not translate xx to" in capsys.readouterr().err


def test_the_command_runs_as_a_module_and_reads_standard_input():
    command = [sys.executable, "-m", "transformer.translate"]
    done = subprocess.run(command, input="A dog runs.\nA girl smiles.", capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Smith met Dr. Brown. They talked.", ["Mr. Smith met Dr. Brown.", "They talked."]),
        ("J. R. Smith sat.", ["J. R. Smith sat."]),
        ("He said “Go.” She went.", ["He said “Go.”", "She went."]),
        ("It costs 3.50 euros. Cheap!", ["It costs 3.50 euros.", "Cheap!"]),
        ("Write to a.b@example.com. Thanks.", ["Write to a.b@example.com.", "Thanks."]),
        ("and so on... it went", ["and so on... it went"]),
        ("Heute ist z. B. der 3. Oktober. Ja.", ["Heute ist z. B. der 3. Oktober.", "Ja."]),
        ("The U.S. Army left. It rained.", ["The U.S. Army left.", "It rained."]),
        ("On Jan. 5 Sen. Smith spoke. Nobody came.", ["On Jan. 5 Sen. Smith spoke.", "Nobody came."]),
        ("Es kostet 3 Mio. Euro. Gut!", ["Es kostet 3 Mio. Euro.", "Gut!"]),
        ("She said no. He asked for No. 5.", ["She said no.", "He asked for No. 5."]),
        ("(He left.) She stayed.", ["(He left.)", "She stayed."]),
        ("1. Buy milk. 2. Go home.", ["1. Buy milk.", "2. Go home."]),
        ("He lives in the U.S. He likes it.", ["He lives in the U.S.", "He likes it."]),
        ("We met at 5 p.m. He was late.", ["We met at 5 p.m.", "He was late."]),
        ("Dogs, cats, etc. They are animals.", ["Dogs, cats, etc.", "They are animals."]),
        ("The answer is 5. It was clear.", ["The answer is 5.", "It was clear."]),
        ("Er kam 1990. Berlin war groß.", ["Er kam 1990.", "Berlin war groß."]),
        ("Born on Jan. 5. He died in 1990.", ["Born on Jan. 5.", "He died in 1990."]),
        ("Dr. Müller sagt z. B. Hunden ab. Gut.", ["Dr. Müller sagt z. B. Hunden ab.", "Gut."]),
        ("Prof. Dr. h. c. Meier sprach. Alle hörten.", ["Prof. Dr. h. c. Meier sprach.", "Alle hörten."]),
        ("Ludwig XIV. war König. Er starb.", ["Ludwig XIV. war König.", "Er starb."]),
        ("M. Dupont et Mme. Elle sont là. Il part.", ["M. Dupont et Mme. Elle sont là.", "Il part."]),
        ("1. They go. 2. She stays.", ["1. They go.", "2. She stays."]),
        ("a) Ja. b) Nein.", ["a) Ja. b) Nein."]),
        ("• One. • Two.", ["• One.", "• Two."]),
        ("- First point. - Second point.", ["- First point.", "- Second point."]),
        ("« Va. » « Non. »", ["« Va. »", "« Non. »"]),
        ("Il dit : « Va ! » Puis il part.", ["Il dit : « Va ! »", "Puis il part."]),
        ("« Va ! » dit-il. Elle part.", ["« Va ! » dit-il.", "Elle part."]),
        ("„Ich will schlafen“, sagte sie. Dann ging sie.", ["„Ich will schlafen“, sagte sie.", "Dann ging sie."]),
        ("He asked, “Why?” and left. She stayed.", ["He asked, “Why?” and left.", "She stayed."]),
        ("He waited... Then he left.", ["He waited...", "Then he left."]),
        ("Version 2.0.1 is out. Get it.", ["Version 2.0.1 is out.", "Get it."]),
        ("Go to https://a.example.com/b.c?d=e. Then click.", ["Go to https://a.example.com/b.c?d=e.", "Then click."]),
        ("J. R. R. Tolkien wrote it. C. S. Lewis read it.", ["J. R. R. Tolkien wrote it.", "C. S. Lewis read it."]),
        ("", []),
    ],
)
def test_split_sentences(line, expected):
    assert split_sentences(line) == expected


def test_long_sentences_are_cut_at_the_strongest_clause_mark_and_nothing_is_lost():
    text = "He came home late; the door, which was old, stood open, and nobody had seen him"
    few = split_clauses(text, lambda part: len(part.split()) <= 11)
    assert few == ["He came home late;", "the door, which was old, stood open,", "and nobody had seen him"]
    assert " ".join(split_clauses(text, lambda part: len(part) < 12)) == text
    assert split_clauses(text, lambda part: True) == [text]
    assert split_clauses("word " * 9 + "end", lambda part: len(part) < 9) == ["word " * 9 + "end"]
    assert split_clauses("one, two – three", lambda part: len(part) < 12) == ["one, two", "– three"]


def test_a_sentence_longer_than_the_trained_ones_is_translated_in_parts_and_says_so(translator):
    short = Translator(translator.model, translator.tokenizer, translator.pairs, longest=12)
    text = "A man in a blue shirt is standing on a ladder, and two dogs are playing in the snow. A girl smiles."
    out = short.translate(text)
    assert [s.source_text for s in out.sentences][:2] == text.removesuffix(" A girl smiles.").replace(
        ", and", ",\nand"
    ).split("\n")
    assert len([note for note in out.notes if "translated in 2 parts" in note]) == 1
    assert not translator.translate(text).notes
    assert "Hunde" in out.text and "Leiter" in out.text and "Mädchen" in out.text


def test_the_length_of_the_trained_sentences_is_read_from_the_model_s_header(translator):
    header = {"pairs": [["en", "de"]], "longest_words": 12}
    assert Translator.of_header(translator.model, translator.tokenizer, header, "one").longest_words == 12
    for odd in ("many", -3, None):
        header["longest_words"] = odd
        assert Translator.of_header(translator.model, translator.tokenizer, header, "one").longest_words == 0


@pytest.mark.skipif(not kernels.has_int8(), reason="no processor for products of 8 bits")
def test_quick_mode_rounds_products_and_says_where_it_cannot(translator, monkeypatch):
    text = "A man in a blue shirt is standing on a ladder."
    exact = translator.translate(text)
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", 0)
    rounded = translator.translate(text, quick=True)
    assert "Mann" in rounded.text and not rounded.notes
    assert rounded.score != exact.score and rounded.score == pytest.approx(exact.score, abs=0.3)
    again = translator.translate(text)
    assert again.text == exact.text and again.score == pytest.approx(exact.score, abs=1e-4)
    # A map is that of the exact products, whichever made the translation.
    rounded.sentences[0].ids[0] = exact.sentences[0].ids[0]
    assert np.allclose(translator.attend(rounded).encoder, translator.attend(exact).encoder, atol=1e-4)
    monkeypatch.setattr(Translator, "int8_available", lambda self: False)
    slow = translator.translate(text, quick=True)
    assert slow.text == exact.text and any("in 32 bits" in note for note in slow.notes)


@pytest.mark.skipif(not kernels.has_int8(), reason="no processor for products of 8 bits")
def test_only_a_quick_search_for_one_translation_gives_hypotheses_up(translator, monkeypatch):
    margins = []

    def search(decoder, limits, bos, eos, options, *args, **more):
        margins.append(options.margin)
        return beam_search(decoder, limits, bos, eos, options, *args, **more)

    monkeypatch.setattr("transformer.translator.beam_search", search)
    for options in ({"quick": True}, {"quick": True, "n_best": 2}, {}):
        assert translator.translate("A man sings.", **options).text
    assert margins == [MARGIN, math.inf, math.inf]


def test_reading_back_ranks_a_beam_by_the_way_back_too():
    """The score is (log p + a quarter of the way back's) / length penalty, and the way back is what teacher forcing
    says.
    """
    both = Translator.from_pretrained("everyday")
    text = "The tall man asked for a glass of water and the bill."
    plain = both.translate(text, "en", "de", n_best=4)
    read = both.translate(text, "en", "de", n_best=4, read_back=True)
    assert {h.text for h in read.hypotheses} == {h.text for h in plain.hypotheses}
    assert all(h.back is None for h in plain.hypotheses)
    for hypothesis, ids in zip(read.hypotheses, read.sentences[0].ids, strict=True):
        ((loss, _),) = losses(both, [(hypothesis.text, text)], "en")
        assert hypothesis.back == pytest.approx(-loss, abs=1e-3)
        penalty = length_penalty(len(ids) + 1, 0.6)
        assert hypothesis.score == pytest.approx((hypothesis.logprob + 0.25 * hypothesis.back) / penalty, abs=1e-4)
    scores = [h.score for h in read.hypotheses]
    assert scores == sorted(scores, reverse=True)


def test_a_model_of_one_direction_says_that_nothing_was_read_back(translator):
    text = "A man in a blue shirt is standing on a ladder."
    read = translator.translate(text, read_back=True)
    assert read.text == translator.translate(text).text and "nothing was read back" in read.notes[-1]


def test_what_is_read_back_is_ranked_anew():
    found = [Candidate([5, 6], -2.0, -1.0, True), Candidate([7, 8], -2.2, -1.1, True)]
    ranked = rank_by_reading_back(found, [-9.0, -3.0], 0.0)
    assert [c.ids for c in ranked] == [[7, 8], [5, 6]] and [c.score for c in ranked] == [-2.95, -4.25]


def test_has_letters():
    assert has_letters("a1") and has_letters("你") and not has_letters("12 🙂 !?")


def test_a_model_may_say_which_length_penalty_suits_its_languages(translator, copied):
    sentence = "Two young girls are playing with a ball in the park."
    assert translator.length_penalty("en", "de") == 0.6
    assert translator.translate(sentence).score == translator.translate(sentence, alpha=0.6).score
    header = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**header, "length_penalty": {"en-de": 1.5}}))
    own = Translator.from_pretrained(copied, str(translator.device))
    found = own.translate(sentence)
    assert found.score == own.translate(sentence, alpha=1.5).score != own.translate(sentence, alpha=0.6).score
    best = found.hypotheses[0]
    assert best.score == pytest.approx(best.logprob / length_penalty(len(best.tokens) + 1, 1.5), rel=1e-5)


@pytest.mark.parametrize("told", [1.4, {"en-de": "long"}, {"en-de": True}, {"en-de": 3}, ["en-de"]])
def test_a_length_penalty_that_is_none_is_one_sentence(copied, told):
    header = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**header, "length_penalty": told}))
    with pytest.raises(ValueError, match="length_penalty.*from 0 to 2"):
        Translator.from_pretrained(copied)


def test_the_shipped_weight_file_matters(translator, tmp_path):
    """What is translated comes out of the weights: with noise in the file the answer is another one."""
    folder = tmp_path / "model"
    shutil.copytree(model_dir("multi30k-en-de"), folder)
    state, generator = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(0)
    for name, value in state.items():
        if value.is_floating_point() and value.dim() > 1:
            noise = torch.randn(value.shape, generator=generator)
            state[name] = value + (noise * value.float().std()).to(value.dtype)
    save_file(state, folder / "model.safetensors")
    sentence = "A man is riding a bicycle."
    changed = Translator.from_pretrained(folder, device="cpu").translate(sentence, source="en", target="de")
    assert changed.text != translator.translate(sentence, source="en", target="de").text


def test_the_french_model_translates_a_caption():
    french = Translator.from_pretrained("multi30k-en-fr", "cpu")
    assert french.pairs == [("en", "fr")]
    text = french.translate("Two dogs play in the snow.").text.lower()
    assert "chiens" in text and "neige" in text
