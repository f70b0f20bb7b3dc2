"""The walk through the model, written out from its weights, ends with the model's own numbers."""

import numpy as np
import pytest
import torch

from training import assets
from transformer.attention import causal_mask, key_mask
from transformer.config import TransformerConfig
from transformer.insight import interpret, through
from transformer.model import Transformer
from transformer.tokenizer import Tokenizer
from transformer.translate import DEFAULT_MODEL
from transformer.translator import Translator


def small(**changes):
    tokenizer = Tokenizer.train(["ab ba abc cab bac acb cba dad add bad dab cad"] * 40, 40)
    settings = {"encoder_layers": 3, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 2, "max_length": 64}
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(vocab_size=len(tokenizer), **{**settings, **changes})).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or name.endswith("bias"):  # none of them may stay at the value that does nothing
            torch.nn.init.normal_(parameter, mean=0.7, std=0.3)
    return Translator(model, tokenizer, [("en", "de")])


@pytest.fixture(scope="module", params=["shipped", "small", "near", "silu"])
def translator(request):
    if request.param == "shipped":
        return Translator.from_pretrained(assets.model_dir(DEFAULT_MODEL), device="cpu")
    return small(**{"small": {}, "near": {"neighbourhood": 4}, "silu": {"activation": "silu"}}[request.param])


def translated(translator, text="ab cad bad dab"):
    """A translation of three tokens, whatever the model would have said."""
    translation = translator.translate(text)
    translation.sentences[0].ids[0] = translator.tokenizer.encode("bab dac")[:3]
    return translation


def test_the_walk_ends_with_the_model_s_own_log_probabilities(translator):
    translation = translated(translator)
    sentence, ids = translation.sentence_and_ids()
    model, config = translator.model, translator.model.config
    src, tgt = torch.tensor([sentence.source_ids]), torch.tensor([[config.bos, *ids]])
    with torch.inference_mode():
        mask = causal_mask(tgt.shape[1], None, config.neighbourhood)
        logits = model(src, tgt, key_mask(src, config.pad), mask)[0]
    for step in range(tgt.shape[1]):
        found = through.walk(translator, translation, 1, step, decoder_layer=config.decoder_layers - 1)
        np.testing.assert_allclose(found.logits, logits[step], atol=2e-4)
        np.testing.assert_allclose(found.logprobs, logits[step].log_softmax(-1), atol=2e-4)
        np.testing.assert_array_equal(found.hidden, found.decoder_feed_forward.norm.result)


def test_every_head_is_the_one_of_the_maps_and_of_the_six_steps(translator):
    translation = translated(translator)
    attention, last = translator.attend(translation), translator.model.config.decoder_layers - 1
    found = through.walk(translator, translation, 2, 1, encoder_layer=1, decoder_layer=last)
    np.testing.assert_allclose(found.encoder_attention.weights, attention.encoder[1, :, 2], atol=1e-5)
    np.testing.assert_allclose(found.decoder_attention.weights, attention.decoder[last, :, 1], atol=1e-5)
    np.testing.assert_allclose(found.cross_attention.weights, attention.cross[last, :, 1], atol=1e-5)
    steps = interpret.head_steps(translator, translation, "cross", last, 1)
    for name, own in (("query", steps.query[1]), ("key", steps.key), ("output", steps.output[1])):
        made = getattr(found.cross_attention, {"output": "heads"}.get(name, name))[1]
        np.testing.assert_allclose(made, own, atol=1e-4)
    one = found.cross_attention
    np.testing.assert_array_equal(one.concat, one.heads.ravel())
    np.testing.assert_allclose(one.norm.total, one.norm.x + one.output, atol=1e-6)


def test_a_place_that_is_not_there_is_one_sentence(translator):
    translation = translated(translator, "ab cad")
    with pytest.raises(ValueError, match="steps; there is no number 100"):
        through.walk(translator, translation, 0, 99)
    with pytest.raises(ValueError, match="encoder layers; there is no number 10"):
        through.walk(translator, translation, 0, 0, encoder_layer=9)


def test_temperature_and_top_k_act_as_sampling_does():
    logits = np.array([2.0, 0.0, 1.0, -1.0], np.float32)
    plain = through.next_token(logits)
    assert plain.tokens == [0, 2, 1, 3]
    np.testing.assert_allclose(plain.probabilities, np.sort(torch.tensor(logits).softmax(-1).numpy())[::-1], atol=1e-6)
    hot, cold = (through.next_token(logits, temperature) for temperature in (2.0, 0.5))
    assert cold.entropy < plain.entropy < hot.entropy and cold.probabilities[0] > plain.probabilities[0]
    two = through.next_token(logits, top_k=2)
    np.testing.assert_allclose(two.probabilities, [1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0, 0], atol=1e-6)
    with pytest.raises(ValueError, match="above 0"):
        through.next_token(logits, 0)
