"""OPUS-MT and other Marian models in Hugging Face's format, as this package's Transformer.

    Translator.from_pretrained("Helsinki-NLP/opus-mt-en-de")      with a connection, once; then from its cache
    Translator.from_pretrained("some/folder")                     config.json, source.spm, target.spm, vocab.json and
                                                                  model.safetensors or pytorch_model.bin

What differs from the paper: SiLU instead of ReLU, sines and cosines in halves, a bias on the logits, the padding token
as the decoder's first input. All four are fields of `TransformerConfig`; the network is the same code.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from training.weights import fill, read_tensors
from transformer.config import TransformerConfig
from transformer.model import Transformer

FILES = ("config.json", "source.spm", "target.spm", "vocab.json")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# The shared matrix, which some files hold only under the name of one of its users.
EMBEDDINGS = (
    "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
)  # fmt: skip
# Of a layer, what their parts are called here; the queries, keys and values of an attention lie below each other.
PARTS = {
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "final_layer_norm": "feed_forward_norm",
    **{
        f"{theirs}{their_part}": f"{ours}{our_part}"
        for theirs, ours in (("self_attn", "attention"), ("encoder_attn", "cross_attention"))
        for their_part, our_part in ((".q_proj", ".qkv"), (".out_proj", ".output"), ("_layer_norm", "_norm"))
    },
}


def config_from_marian(theirs: dict) -> TransformerConfig:
    """Our configuration from a Marian config.json.

    Raises `ValueError` naming the first feature that this Transformer does not have.
    """
    features = {
        "model_type": "marian",
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "tie_word_embeddings": True,
        "share_encoder_decoder_embeddings": True,
        "scale_embedding": True,
    }
    defaults = {**features, "static_position_embeddings": False, "scale_embedding": False}
    for name, value in features.items():
        if theirs.get(name, defaults[name]) != value:
            raise ValueError(f"This Marian model has {name} = {theirs.get(name)}; only {value} can be read.")
    for name in ("attention_heads", "ffn_dim"):
        if theirs[f"encoder_{name}"] != theirs[f"decoder_{name}"]:
            raise ValueError(f"This Marian model's encoder and decoder differ in {name}, which cannot be read.")
    activation = {"swish": "silu", "silu": "silu", "relu": "relu"}.get(str(theirs.get("activation_function")))
    if activation is None:
        raise ValueError(f"This Marian model's activation {theirs.get('activation_function')!r} cannot be read.")
    return TransformerConfig(
        vocab_size=theirs["vocab_size"],
        encoder_layers=theirs["encoder_layers"],
        decoder_layers=theirs["decoder_layers"],
        d_model=theirs["d_model"],
        d_ff=theirs["encoder_ffn_dim"],
        heads=theirs["encoder_attention_heads"],
        dropout=theirs.get("dropout", 0.1),
        attention_dropout=theirs.get("attention_dropout", 0.0),
        positions="sinusoidal-halves",
        activation=activation,
        output_bias=True,
        max_length=theirs.get("max_position_embeddings", 512),
        pad=theirs["pad_token_id"],
        unk=theirs.get("unk_token_id") or 1,
        bos=theirs["decoder_start_token_id"],
        eos=theirs["eos_token_id"],
    )


def state_from_marian(theirs: dict[str, Tensor], config: TransformerConfig) -> dict[str, Tensor]:
    """Our state_dict from theirs, without what they lack."""
    shared = next((theirs[name] for name in EMBEDDINGS if name in theirs), None)
    state = {} if shared is None else {"embedding.weight": shared.float()}
    for name in theirs:
        match = re.fullmatch(r"model\.(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)", name)
        if match and match[3] in PARTS:
            every = [name.replace(".q_proj.", f".{part}_proj.") for part in "qkv"] if ".q_proj." in name else [name]
            whole = torch.cat([theirs[one] for one in every if one in theirs])
            state[f"{match[1]}.{match[2]}.{PARTS[match[3]]}.{match[4]}"] = whole.float()
    state["output_bias"] = theirs.get("final_logits_bias", torch.zeros(config.vocab_size)).flatten().float()
    return state


class MarianTokenizer:
    """Two SentencePiece models and one table of ids; the same methods as `transformer.tokenizer.Tokenizer`."""

    def __init__(self, source: bytes, target: bytes, vocabulary: dict[str, int], pad: int, eos: int) -> None:
        """source, target: serialised SentencePiece models; vocabulary: piece -> id."""
        import sentencepiece

        try:
            self._source = sentencepiece.SentencePieceProcessor(model_proto=source)
            self._target = sentencepiece.SentencePieceProcessor(model_proto=target)
            self._source.get_piece_size(), self._target.get_piece_size()
        except (RuntimeError, OSError, TypeError):
            raise ValueError(
                "source.spm or target.spm is damaged or not a SentencePiece model; copy it again."
            ) from None
        self._ids = vocabulary
        self._pieces = {i: piece for piece, i in vocabulary.items()}
        self.unk = vocabulary.get("<unk>", 1)
        self._silent = {pad, eos}

    def __len__(self) -> int:
        return max(self._pieces) + 1

    def encode(self, text: str) -> list[int]:
        """Ids of a normalised sentence without eos. A leading >>code<< chooses one of several target languages."""
        code = re.match(r">>\w+<<", text)
        prefix = [self._ids.get(code[0], self.unk)] if code else []
        pieces = self._source.encode(text[code.end() :].lstrip() if code else text, out_type=str)
        return prefix + [self._ids.get(piece, self.unk) for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence of some target ids."""
        return self._target.decode([p for i, p in zip(ids, self.pieces(ids)) if int(i) not in self._silent]).strip()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The written form of each id."""
        return [self._pieces.get(int(i), "<unk>") for i in ids]

    def id(self, piece: str) -> int:
        """The id of one piece, unk's if there is none."""
        return self._ids.get(piece, self.unk)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of model.safetensors or pytorch_model.bin; no code in the file is ever run. Raises `ValueError`."""
    file = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if file is None:
        raise ValueError(f"{folder.name} holds neither {' nor '.join(WEIGHTS)}.")
    if file.suffix == ".safetensors":
        return read_tensors(file)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # the reader raises its own many kinds; each means the same here
        raise ValueError(f"{file.name} in {folder.name} is damaged or not a file of weights.") from error


def is_marian(folder: Path) -> bool:
    """True if the folder's config.json says that it is a Marian model."""
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type") == "marian"
    except (OSError, ValueError, AttributeError):
        return False


def languages(folder: Path) -> tuple[str, str]:
    """(source, target) from tokenizer_config.json or the folder's name; ("source", "target") if neither says."""
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        if config.get("source_lang") and config.get("target_lang"):
            return config["source_lang"], config["target_lang"]
    except (OSError, ValueError):
        pass
    # A cache keeps models--Helsinki-NLP--opus-mt-en-de/snapshots/<hash>
    for name in (folder.name, *(parent.name for parent in folder.parents)):
        match = re.search(r"opus-mt-(?:tc-\w+-)?([a-zA-Z_]+)-([a-zA-Z_]+)$", name)
        if match:
            return match[1], match[2]
    return "source", "target"


def load(folder: str | Path) -> tuple[Transformer, MarianTokenizer, list[tuple[str, str]]]:
    """Model, tokenizer and language pairs of a local folder in Hugging Face's Marian format.

    Raises `ValueError` with one sentence if a file is missing or does not fit.
    """
    folder = Path(folder)
    for name in FILES:
        if not (folder / name).is_file():
            raise ValueError(f"{folder.name} is not a complete Marian model: {name} is missing.")
    try:
        theirs = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        config = config_from_marian(theirs)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"config.json or vocab.json in {folder.name} is not readable JSON ({error}).") from None
    except KeyError as error:
        raise ValueError(f"config.json in {folder.name} does not say {error}.") from None
    spm = (folder / "source.spm").read_bytes(), (folder / "target.spm").read_bytes()
    tokenizer = MarianTokenizer(*spm, vocabulary, config.pad, config.eos)
    model = Transformer(config)
    fill(model, state_from_marian(read_weights(folder), config), folder.name)
    return model, tokenizer, [languages(folder)]


def download(name: str) -> Path:
    """The folder of a model by its Hugging Face name, from the local cache or the network.

    Raises `ValueError` if the name is unknown or there is no connection.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise ValueError(f"{name!r} is neither a folder nor a name like Helsinki-NLP/opus-mt-en-de.")
    from huggingface_hub import snapshot_download

    try:
        patterns = [*FILES, "tokenizer_config.json", *WEIGHTS]
        return Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # the client's errors depend on its version; all mean that there is no model to read
        raise ValueError(
            f"{name} is not on this machine and could not be fetched; check the name and the connection, or give a "
            "folder with its files."
        ) from error
