"""Quick translation among the words of one language."""

import pytest
import torch
from safetensors.torch import save_file

from transformer import Translator, kernels
from transformer.model import Shortlist
from transformer.options import Sampling, SearchOptions
from transformer.shortlist import FILE, load_shortlists
from transformer.tokenizer import BOS, EOS, PAD, UNK
from transformer.translator import Sentence

MODEL = "everyday"


def test_logits_of_a_shortlist_are_those_of_its_words():
    weight, bias, x = torch.randn(50, 8), torch.randn(50), torch.randn(2, 3, 8)
    ids = torch.tensor([3, 7, 49])
    for offset in (None, bias):
        logits = torch.nn.functional.linear(x, weight, offset)
        torch.testing.assert_close(Shortlist(ids, weight, offset).project(x), logits[..., ids])
    with torch.inference_mode():
        assert not Shortlist(ids, weight, bias).weight.is_inference()  # else it could not be packed


def test_a_file_that_does_not_belong_there_gets_a_sentence(without_shortlists):
    file = without_shortlists / FILE
    assert load_shortlists(without_shortlists, 16000) == {}
    for content in ({"de": torch.ones(15999, dtype=torch.bool)}, {"de": torch.ones(16000)}):
        save_file(content, file)
        with pytest.raises(ValueError, match="another vocabulary"):
            Translator.from_pretrained(without_shortlists, "cpu")
    without_eos = torch.ones(16000, dtype=torch.bool)
    without_eos[EOS] = False
    save_file({"de": without_eos}, file)
    with pytest.raises(ValueError, match="another vocabulary"):
        load_shortlists(without_shortlists, 16000)
    file.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is damaged"):
        load_shortlists(without_shortlists, 16000)


def seen(sentence: Sentence) -> set[int]:
    """Every word that a search looked at."""
    assert sentence.trace
    return {token for step in sentence.trace for _, token, _ in step.candidates}


@pytest.mark.skipif(not kernels.has_int8(), reason="no processor for products of 8 bits")
def test_quick_beam_search_alone_stays_within_the_shortlist(without_shortlists):
    """The words that the exact search writes are taken out; only a quick beam search does without them."""
    translator, text = Translator.from_pretrained(without_shortlists, "cpu"), "The dog is sleeping in the garden."
    (exact,) = translator.translate_sentences([text], "en", "de", SearchOptions(trace=True))
    wanted = exact.ids[0]
    rest = torch.ones(16000, dtype=torch.bool)
    rest[[PAD, UNK, BOS, *wanted]] = False
    translator.shortlists = {"de": rest.nonzero()[:, 0]}
    (quick,) = translator.translate_sentences([text], "en", "de", SearchOptions(trace=True, quick=True))
    assert quick.finished and quick.ids[0] and not seen(quick) & set(wanted) and EOS in seen(quick)
    (slow,) = translator.translate_sentences([text], "en", "de", SearchOptions(trace=True))
    assert slow.ids == exact.ids
    drawing = Sampling(0.1)
    (drawn,) = translator.translate_sentences([text], "en", "de", SearchOptions(sampling=drawing, quick=True))
    assert set(drawn.ids[0]) & set(wanted)
    (other,) = translator.translate_sentences([text], "en", "fr", SearchOptions(quick=True))
    assert "chien" in other.hypotheses[0].text  # a language without a shortlist has all words


def test_the_shipped_shortlists_hold_what_is_written_in_their_language():
    translator = Translator.from_pretrained(MODEL, "cpu")
    assert translator.shortlists.keys() == {target for _, target in translator.pairs}
    for language, text in (
        ("en", "Would you rather pay in cash or by card? The museum is closed on Mondays."),
        ("de", "Möchten Sie lieber bar oder mit Karte bezahlen? Das Museum ist montags geschlossen."),
        ("fr", "Préférez-vous payer en espèces ou par carte ? Le musée est fermé le lundi."),
    ):
        ids = translator.shortlists[language]
        assert len(ids) % 64 == 0 and len(ids) < 0.6 * translator.model.config.vocab_size
        assert set(translator.tokenizer.encode(text)) <= set(ids.tolist())
