"""The recipe end to end on generated sentences: it learns, stops, resumes bit for bit, averages and exports."""

import itertools
import json
import random

import pytest
import torch

import training
from tests.transformer.words import ENGLISH, GERMAN
from training.run import Run
from transformer.data import Batch, collate
from transformer.schedule import dropout_at
from transformer.train import PRESETS, TranslationRecipe, TranslationTask, load_splits, main
from transformer.translator import Translator

WORD = dict(zip(ENGLISH, GERMAN))


def corpus(path, count=600):
    """Word-by-word translations of generated sentences, two to five words long."""
    generator = torch.Generator().manual_seed(0)
    lines = ["en\tde"]
    for _ in range(count):
        length = int(torch.randint(2, 6, (1,), generator=generator))
        words = [ENGLISH[i] for i in torch.randint(16, (length,), generator=generator).tolist()]
        lines.append(" ".join(words) + "\t" + " ".join(WORD[w] for w in words))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    corpus(folder / "train.tsv")
    return folder


def recipe(data, **changes):
    base = {
        "size": "mini",
        "data": str(data),
        "vocab_size": 200,
        "tokens": 512,
        "max_length": 40,
        "warmup": 60,
        "dropout": 0.1,
        "steps": 12,
        "log_every": 1,
        "save_every": 4,
        "evaluate_every": 0,
        "keep_last": 3,
        "average": 2,
        "threads": 1,
    }
    return TranslationRecipe(**{**base, **changes})


def weights(run):
    return training.checkpoint.module_state(training.latest_checkpoint(Run(run).checkpoints))


def test_stop_and_resume_is_bit_exact(data, tmp_path):
    options = recipe(data, accumulate=2)
    assert training.fit(TranslationTask(options), options, tmp_path / "whole", quiet=True) == "finished"
    half = recipe(data, accumulate=2, steps=6)
    training.fit(TranslationTask(half), half, tmp_path / "parts", quiet=True)
    torch.randn(7)  # whatever happens in between
    training.fit(TranslationTask(options), options, tmp_path / "parts", resume=True, quiet=True)
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    for name, value in whole.items():
        assert torch.equal(value, parts[name]), name
    logs = [[e["losses"] for e in Run(tmp_path / r).events() if e["event"] == "log"] for r in ("whole", "parts")]
    assert logs[0] == logs[1] and len(logs[0]) == 12


def test_a_resumed_run_may_have_another_dropout_but_no_other_size(data, tmp_path):
    first = recipe(data, steps=2)
    training.fit(TranslationTask(first), first, tmp_path / "run", quiet=True)
    then = recipe(data, steps=4, dropout=0.3, label_smoothing=0.2)
    assert training.fit(TranslationTask(then), then, tmp_path / "run", resume=True, quiet=True) == "finished"
    other = recipe(data, steps=6, max_length=50)
    with pytest.raises(ValueError, match="config.json differs"):
        training.fit(TranslationTask(other), other, tmp_path / "run", resume=True, quiet=True)


def test_batches_are_a_pure_function_and_differ_by_process(data):
    task = TranslationTask(recipe(data))
    first = task.batch(5, 0, 0, 1)
    assert torch.equal(first.src, TranslationTask(recipe(data)).batch(5, 0, 0, 1).src)
    # Two processes deal the same sequence out in turn: update 3 of both is number 4 and 5 (from 0).
    single = [task.batch(n + 1, 0, 0, 1) for n in range(6)]
    dealt = [task.batch(3, 0, rank, 2) for rank in (0, 1)]
    assert torch.equal(dealt[0].src, single[4].src) and torch.equal(dealt[1].src, single[5].src)
    seen = [task.batch(n + 1, 0, 0, 1).src.shape[0] for n in range(task.per_epoch)]
    assert sum(seen) == len(task.data.pairs)  # an epoch shows every pair once


def test_accumulated_batches_give_the_gradient_of_their_union(data):
    """Terms are sums, so that dividing by all tokens makes two micro-batches equal one batch of both."""
    task = TranslationTask(recipe(data, dropout=0.0))
    parts = [list(range(10)), list(range(10, 30))]
    gradients = []
    for groups in (parts, [sum(parts, [])]):
        task.modules["model"].zero_grad()
        batches = [task.data.collate(g) for g in groups]
        total = sum(task.count(b) for b in batches)
        for batch in batches:
            (task.terms(batch)["loss"] / total).backward()
        gradients.append(task.modules["model"].embedding.weight.grad.clone())
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-6, rtol=1e-4)


def test_a_batch_in_parts_has_the_gradient_of_the_whole(data):
    """What is drawn in capitals is longer than its neighbours; parting them from the others changes no number."""
    task = TranslationTask(recipe(data, dropout=0.0))
    draw = random.Random(0)
    words = range(4, len(task.tokenizer))
    batch = collate([(draw.choices(words, k=n), draw.choices(words, k=5)) for n in [5] * 60 + [35]])
    assert len(batch.parts()) == 2
    found = []
    for parts in (Batch.parts, lambda whole: [whole]):
        task.modules["model"].zero_grad()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Batch, "parts", parts)
            terms = task.terms(batch)
        terms["loss"].backward()
        found.append((float(terms["nll"]), [p.grad.clone() for p in task.modules["model"].parameters()]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for ours, theirs in zip(found[0][1], found[1][1]):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_learns_to_translate_and_ships(data, tmp_path):
    """The command line trains, exports, and the exported folder translates sentences that were never seen."""
    run, out = tmp_path / "run", tmp_path / "model"
    argv = ["--preset", "quick", "--run", str(run), "--export", str(out)]
    fields = {
        "data": data,
        "vocab_size": 200,
        "tokens": 512,
        "max_length": 40,
        "warmup": 60,
        "rate_scale": 0.15,
        "dropout": 0.0,
        "steps": 150,
        "save_every": 15,
        "evaluate_every": 75,
        "threads": 1,
    }
    for name, value in fields.items():
        argv += [f"--{name.replace('_', '-')}", str(value)]
    assert main(argv) == 0
    events = list(Run(run).events())
    figures = [e["figures"] for e in events if e["event"] == "evaluation"]
    assert figures[-1]["loss"] < figures[0]["loss"] and figures[-1]["perplexity"] < 1.5
    assert figures[0]["bleu"] < 5 and figures[-1]["bleu"] > 60
    assert "translation" in (Run(run).samples(150) / "translations.txt").read_text(encoding="utf-8")
    translator = Translator.from_pretrained(out, device="cpu")
    assert translator.pairs == [("en", "de")]
    tested = [" ".join(words) for words in itertools.islice(itertools.permutations(ENGLISH, 3), 0, 3000, 150)]
    found = [t.text for t in translator.translate(tested, "en", "de")]
    right = sum(f == " ".join(WORD[w] for w in s.split()) for f, s in zip(found, tested))
    assert right >= len(tested) * 0.9
    config = json.loads((out / "config.json").read_text())
    assert config["pairs"] == [["en", "de"]] and config["transformer"]["d_model"] == 64


def test_the_sentences_of_bleu_are_few_short_and_always_the_same(tmp_path):
    corpus(tmp_path / "train.tsv")
    long, strange = " ".join(ENGLISH * 5), "one 鶏"
    lines = [f"{word}\t{WORD[word]}" for word in ENGLISH[:9]] + [f"{long}\t{long}", f"{strange}\teins"]
    (tmp_path / "val.tsv").write_text("en\tde\n" + "\n".join(lines) + "\n", encoding="utf-8")
    every = TranslationTask(recipe(tmp_path, max_length=60))
    assert every.score_texts == [(("en", "de"), [(word, WORD[word]) for word in ENGLISH[:9]])]
    few = TranslationTask(recipe(tmp_path, max_length=60, bleu=3))
    assert [source for source, _ in few.score_texts[0][1]] == [ENGLISH[0], ENGLISH[3], ENGLISH[7]]
    assert 0 <= few.bleu()["bleu"] <= 100 and list(few.evaluate()) == ["loss", "bleu", "perplexity"]
    assert TranslationTask(recipe(tmp_path, max_length=60, bleu=0)).bleu() == {}


def test_without_a_validation_file_every_hundredth_pair_is_held_out(tmp_path):
    corpus(tmp_path / "train.tsv", 250)
    train, val = load_splits(recipe(tmp_path))
    assert (len(train), len(val)) == (247, 3)
    again = load_splits(recipe(tmp_path / "train.tsv"))  # a file instead of its folder
    assert again == (train, val)
    corpus(tmp_path / "val.tsv", 5)
    assert [len(part) for part in load_splits(recipe(tmp_path))] == [250, 5]


def test_any_named_columns_train(tmp_path):
    path = tmp_path / "service.csv"
    rows = [f'고객 {a},질문 {b},"네, {b} 답변 {a}."' for a in "가나다라마바사아자차" for b in "하히후호"]
    path.write_text("Instruction,Input,Response\n" + "\n".join(rows) + "\n", encoding="utf-8")
    options = recipe(path, source="Instruction", target="Response", vocab_size=40, steps=3, save_every=3)
    task = TranslationTask(options)
    assert training.fit(task, options, tmp_path / "run", quiet=True) == "finished"
    assert task.translator().pairs == [("Instruction", "Response")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": ""}, "--data"),
        ({"source": "de"}, "two different columns"),
        ({"tokens": 10}, "cannot hold"),
        ({"steps": 0}, "steps"),
    ],
)
def test_recipes_that_contradict_themselves_say_so(data, changes, words):
    with pytest.raises(ValueError, match=words):
        recipe(**{"data": data, **changes}).check()


def test_the_command_answers_mistakes_with_one_sentence(data, tmp_path, capsys):
    assert main(["--run", str(tmp_path / "run"), "--data", str(tmp_path / "nowhere")]) == 2
    error = capsys.readouterr().err
    assert "nowhere" in error and "Traceback" not in error and error.count("\n") == 1
    assert main(["--run", str(tmp_path / "run"), "--data", str(data), "--source", "sv", "--preset", "tiny"]) == 2
    assert "no column 'sv'" in capsys.readouterr().err


def test_presets_are_whole_recipes():
    for _name, fields in PRESETS.items():
        TranslationRecipe(**{**fields, "data": "somewhere"}).check()
    base = TranslationRecipe(**{**PRESETS["base"], "data": "x"})
    assert (base.vocab_size, base.tokens, base.warmup, base.steps) == (37000, 25000, 4000, 100000)  # section 5
    config = base.model_config(37000)
    assert (config.dropout, config.label_smoothing, config.d_model) == (0.1, 0.1, 512)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A table of three languages, where French is English read backwards; half of its rows have no French."""
    folder = tmp_path_factory.mktemp("three")
    corpus(folder / "two.tsv", 300)
    rows = (folder / "two.tsv").read_text(encoding="utf-8").splitlines()[1:]
    lines = ["en\tde\tfr"]
    for number, row in enumerate(rows):
        english, german = row.split("\t")
        lines.append(f"{english}\t{german}\t{' '.join(english.split()[::-1]) if number % 2 else ''}")
    (folder / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_one_model_for_several_directions(three, tmp_path):
    options = recipe(three, directions="en-de de-en, en-fr", steps=2, stand_ins=0.5)
    options.check()
    task = TranslationTask(options)
    tokenizer = task.tokenizer
    prefixes = [pair[0][0] for pair in task.data.pairs]
    counts = [prefixes.count(tokenizer.id(f"<2{name}>")) for name in ("de", "en", "fr")]
    assert sum(counts) == len(prefixes) and counts[0] == counts[1] and 0.45 < counts[2] / counts[0] < 0.55
    assert training.fit(task, options, tmp_path / "run", quiet=True) == "finished"
    task.export(tmp_path / "out")
    translator = Translator.from_pretrained(tmp_path / "out", "cpu")
    assert translator.pairs == [("en", "de"), ("de", "en"), ("en", "fr")] and translator.language_tokens
    for source, target in translator.pairs:
        sentence = translator.translate("one two", source, target, max_length=5).sentences[0]
        assert tokenizer.pieces(sentence.source_ids)[0] == f"<2{target}>"
    with pytest.raises(ValueError, match="does not translate fr to en; it translates en to de, de to en, en to fr"):
        translator.translate("one", "fr", "en")


def test_directions_that_are_not_directions():
    for text in ("en", "en-de-fr", "en- de-en"):
        with pytest.raises(ValueError, match="directions are written like"):
            TranslationRecipe(data="x", directions=text).check()
    with pytest.raises(ValueError, match="both the column 'en'"):
        TranslationRecipe(data="x", directions="en-en").check()
    with pytest.raises(ValueError, match="stand_ins must be at most 1"):
        TranslationRecipe(data="x", stand_ins=2.0).check()


def test_the_data_folders_own_vocabulary_is_used(three, tmp_path):
    from transformer.tokenizer import Tokenizer

    (tmp_path / "train.tsv").write_bytes((three / "train.tsv").read_bytes())
    texts = (three / "train.tsv").read_text(encoding="utf-8").replace("\t", "\n").splitlines()
    made = Tokenizer.train(texts, 90, ["en", "de"], stand_ins=True)
    made.save(tmp_path / "tokenizer.model")
    task = TranslationTask(recipe(tmp_path, directions="en-de de-en", stand_ins=0.1))
    assert task.tokenizer.model == made.model and task.config.vocab_size == len(made)
    with pytest.raises(ValueError, match="no piece <2fr>"):
        TranslationTask(recipe(tmp_path, directions="en-de en-fr"))


def test_dropout_rises_in_steps(data):
    options = recipe(data, dropout=0.3, dropout_ramp=10)
    assert [dropout_at(step, 0.3, 10) for step in (1, 2, 3, 10, 11)] == pytest.approx([0, 0, 0.06, 0.24, 0.3])
    assert dropout_at(1, 0.3, 0) == 0.3
    task = TranslationTask(options)
    model = task.modules["model"].train()

    def spread(step):
        batch = task.batch(step, 0, 0, 1)
        return (task.terms(batch)["nll"] - task.terms(batch)["nll"]).abs()

    assert spread(1) == 0 and model.encoder[0].dropout == model.decoder[1].dropout == model.dropout == 0.0
    assert spread(11) > 0 and model.encoder[0].dropout == model.decoder[1].dropout == model.dropout == 0.3


def test_a_table_of_instructions_trains_as_sequence_to_sequence(tmp_path):
    """Customer service in Korean: three named columns, of which two together are the source."""
    rows = ["Instruction,Input,Response"]
    for number in range(40):
        rows.append(
            f'"요금제, {number}번을 알려 주세요","고객 등급 {number % 3}","{number}번 요금제는 월 '
            f'{number}만 원입니다, 고객님."'
        )
    (tmp_path / "service.csv").write_text("\n".join(rows) + "\n", encoding="utf-8-sig")
    argv = ["--preset", "quick", "--data", str(tmp_path / "service.csv"), "--source", "Instruction+Input"]
    argv += ["--target", "Response", "--vocab-size", "80", "--tokens", "600", "--max-length", "100", "--steps", "2"]
    argv += ["--threads", "1", "--run", str(tmp_path / "run"), "--export", str(tmp_path / "out")]
    assert main(argv) == 0
    translator = Translator.from_pretrained(tmp_path / "out", "cpu")
    answer = translator.translate("요금제, 5번을 알려 주세요 고객 등급 2", max_length=4)
    assert answer.sentences[0].source_ids and translator.pairs == [("Instruction+Input", "Response")]
    train, val = load_splits(
        TranslationRecipe(data=str(tmp_path / "service.csv"), source="Instruction+Input", target="Response")
    )
    assert len(train) + len(val) == 40 and val[0] == (
        "요금제, 0번을 알려 주세요 고객 등급 0",
        "0번 요금제는 월 0만 원입니다, 고객님.",
    )


def test_a_trained_model_is_a_start_for_other_text(data, tmp_path):
    first = recipe(data)
    training.fit(TranslationTask(first), first, tmp_path / "first", quiet=True)
    shipped = tmp_path / "shipped"
    TranslationTask(first).export(shipped)  # untrained, but whole
    corpus(tmp_path / "train.tsv", 50)
    second = recipe(tmp_path, initial=str(shipped), vocab_size=100, seed=5)
    task = TranslationTask(second)
    assert task.tokenizer.model == (shipped / "tokenizer.model").read_bytes()  # not one of 100 pieces
    stored = Translator.from_pretrained(shipped).model.state_dict()
    for name, value in task.modules["model"].state_dict().items():
        assert torch.equal(value, stored[name]), name
    training.fit(task, second, tmp_path / "second", quiet=True)
    assert not torch.equal(weights(tmp_path / "second")["embedding.weight"], stored["embedding.weight"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "tiny"}, "do not fit a Transformer of size 'tiny'"),
        ({"initial": "nowhere"}, "nowhere is not complete: tokenizer.model is missing"),
    ],
)
def test_a_start_that_does_not_fit_says_so(data, tmp_path, changes, words):
    TranslationTask(recipe(data)).export(tmp_path)
    with pytest.raises(ValueError, match=words):
        TranslationTask(recipe(data, **{"initial": str(tmp_path), **changes}))
