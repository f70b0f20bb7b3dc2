"""What can be trained: the registry of networks, and their presets and settings in words."""

from __future__ import annotations

from ui.train.kinds import (
    AdversarialNetwork,
    FlowNetwork,
    GarmentNetwork,
    TranslatorNetwork,
    TreeNetwork,
    TryOnNetwork,
)
from ui.train.network import Network, Setting
from vton.registry import ALL_NETWORKS


def _tryon(
    key: str, title: str, does: str, settings: tuple[Setting, ...], kind: type[TryOnNetwork] = TryOnNetwork
) -> Network:
    """A network of `vton.registry`."""
    entry = ALL_NETWORKS[key]
    words = ("python", "-m", "vton.train", key)
    return kind(key, title, does, words, entry.module, entry.recipe_name, "draped", entry.task_name, settings)


def _steps(paper: str = "") -> Setting:
    return Setting("steps", "Steps in all", paper, "updates of the weights")


def _pictures(paper: str = "") -> Setting:
    return Setting("batch", "Pictures a step", paper)


def _rate(paper: str = "", of: str = "") -> Setting:
    return Setting("lr", f"Learning rate{of}", paper)


_RATE_D = "Learning rate of the discriminator"
_AVERAGE = Setting("ema", "Decay of the averaged weights", "", "0: no average is kept")
_WARMUP = Setting("warmup", "Steps of warm-up", "", "the learning rate rises over them")
_WIDTH = Setting("width", "Channels of the first layer", "64")

_ALL: tuple[Network, ...] = (
    TranslatorNetwork(
        "transformer",
        "Translator (Transformer)",
        "one text into another",
        ("python", "-m", "transformer.train"),
        "transformer.train",
        "TranslationRecipe",
        "tiny",
        "TranslationTask",
        (
            Setting("size", "Size of the network", "base", "mini, tiny, small, or a row of Table 3"),
            _steps("100,000"),
            Setting("max_length", "Longest sentence", "", "in word pieces; longer pairs are left out"),
            Setting("vocab_size", "Vocabulary", "37,000", "word pieces, both languages together"),
            Setting("tokens", "Word pieces a step", "25,000", "of each side"),
            Setting("warmup", "Steps of warm-up", "4,000", "the learning rate rises over them"),
            Setting("rate_scale", "Learning rate, times the paper’s", "1", "factor on equation 3"),
            Setting("dropout", "Dropout", "0.1", "empty: as the size has it", -1),
            Setting("label_smoothing", "Label smoothing", "0.1", "empty: as the size has it", -1),
        ),
    ),
    _tryon(
        "parser",
        "Human parser",
        "labels a photograph",
        (
            _steps(),
            _pictures(),
            _rate(),
            _WARMUP,
            Setting("dice", "Weight of the Dice term"),
            Setting("height", "Height of the pictures", "", "pixels"),
            Setting("width", "Width of the pictures", "", "pixels"),
            _AVERAGE,
        ),
    ),
    _tryon(
        "segmentation",
        "Segmentation generator",
        "where the garment will be",
        (
            _steps("200,000"),
            _pictures("8"),
            _rate("0.0004", " of the generator"),
            Setting("lr_d", _RATE_D, "0.0004"),
            Setting("cross_entropy", "Weight λ of equation 8", "10"),
            Setting("gan", "Weight of the adversarial term", "1"),
            _WIDTH,
            _AVERAGE,
        ),
    ),
    _tryon(
        "matching",
        "Matching module",
        "bends the garment",
        (
            _steps("50,000"),
            _pictures("8"),
            _rate("0.0002"),
            Setting("second_order", "Weight λ of equation 11", "0.04"),
            Setting("mask", "Weight of the garment’s outline", "", "an L1 term"),
            Setting("grid", "Control points a side", "5"),
            _WIDTH,
            _AVERAGE,
        ),
    ),
    _tryon(
        "alias",
        "ALIAS generator",
        "paints the person in it",
        (
            _steps("200,000"),
            _pictures("4"),
            _rate("0.0001", " of the generator"),
            Setting("lr_d", _RATE_D, "0.0004"),
            Setting("feature_matching", "Weight of equation 15", "10"),
            Setting("perceptual", "Weight of equation 16", "10"),
            Setting("l1", "Weight of plain differences", "", "an L1 term"),
            Setting("height", "Height of the pictures", "1,024", "pixels"),
        ),
    ),
    _tryon(
        "garment",
        "Garment reader",
        "reads a product picture",
        (
            _steps(),
            _pictures(),
            _rate(),
            _WARMUP,
            Setting("smoothing", "Label smoothing"),
            Setting("height", "Height of the pictures", "", "pixels"),
            _AVERAGE,
        ),
        GarmentNetwork,
    ),
    _tryon(
        "flow",
        "Flow warper",
        "the matching module’s rival",
        (
            _steps(),
            _pictures(),
            _rate(),
            Setting("l1", "Weight of plain differences", "", "an L1 term"),
            Setting("mask", "Weight of the garment’s outline"),
            Setting("smooth", "Weight of smoothness"),
            Setting("width", "Channels of the first layer"),
            _AVERAGE,
        ),
        FlowNetwork,
    ),
    AdversarialNetwork(
        "gan",
        "Adversarial nets",
        "one draws, one judges",
        ("python", "-m", "gan.train"),
        "gan.task",
        "GanRecipe",
        "ring",
        "GanTask",
        (
            Setting("objective", "Objective", "non-saturating", "minimax, non-saturating, lsgan or hinge"),
            _steps(),
            Setting("k", "Discriminator’s steps for each of the generator’s", "1"),
            Setting("batch", "Examples a step", "100"),
            _rate("0.1", " of the generator"),
            Setting("lr_d", _RATE_D, "0.1"),
            Setting("optimizer", "Learning rule", "sgd", "adam, or sgd with momentum"),
            Setting("momentum", "Momentum", "0.5", "of sgd, at the start"),
        ),
    ),
    TreeNetwork(
        "parse",
        "Sentence parser (Transformer)",
        "trees of sentences",
        ("python", "-m", "transformer.train"),
        "transformer.parsing.recipe",
        "ParseRecipe",
        "parse",
        "ParseTask",
        (
            Setting("size", "Size of the network", "", "parse, mini, tiny or small"),
            _steps(),
            Setting("max_length", "Longest sentence or tree", "", "in word pieces; longer ones are left out"),
            Setting("vocab_size", "Vocabulary", "16,000", "word pieces and the tokens of trees"),
            Setting("tokens", "Word pieces a step", "", "of each side"),
            _WARMUP,
            Setting("rate", "Learning rate", "", "at its height"),
            Setting("dropout", "Dropout", "", "empty: as the size has it", -1),
        ),
    ),
)
NETWORKS = {network.key: network for network in _ALL}
COMMON = (
    Setting("seed", "Random seed", "", "of weights, order and dropout"),
    Setting("save_every", "Steps between two checkpoints"),
    Setting("evaluate_every", "Steps between two tests", "", "on text or pictures put aside; 0: never"),
    Setting("keep_last", "Checkpoints kept", "", "besides the best one"),
    Setting("patience", "Tests without progress before it ends", "", "0: it goes on to the last step"),
    Setting("accumulate", "Parts of a step", "", "more parts need less memory"),
    Setting("precision", "Number format", "", "no: 32 bits; bf16: half of it, where the hardware can"),
    Setting("threads", "Processor threads", "", "0: all"),
)
POOL = max(len(network.settings) for network in NETWORKS.values())  # boxes for a network's own settings

# What a preset is for. The names are those of the command line.
PRESETS = {
    "tiny": "A first look",
    "quick": "A quick try on any table",
    "multi30k": "Short descriptions, some 30,000 pairs",
    "everyday": "General text, hundreds of thousands of pairs",
    "small": "A graphics card",
    "base": "The paper’s base model",
    "big": "The paper’s big model",
    "draped": "A first look, on draped people",
    "lite-cpu": "Photographs, on a processor",
    "lite-gpu": "Photographs, on a graphics card",
    "paper": "As published",
    "line": "One dimension: a bump",
    "ring": "Two dimensions: a ring of eight",
    "grid": "Two dimensions: a grid of 25",
    "spiral": "Two dimensions: a spiral",
    "digits": "Handwritten digits",
    "digits-authors": "Handwritten digits, by the authors’ rule",
    "parse": "Some 26,000 trees, on a processor",
}
# network, preset -> parameters in millions, processor seconds a step on one core of a 2-core server, with the bundled
# data, as `--threads 1 --time 5` of a recipe's command prints them
COSTS: dict[tuple[str, str], tuple[float, float]] = {
    ("transformer", "tiny"): (0.18, 0.037),
    ("transformer", "quick"): (0.18, 0.087),
    ("transformer", "multi30k"): (2.34, 0.49),
    ("transformer", "everyday"): (19.93, 1.85),
    ("parser", "draped"): (7.55, 0.82),
    ("parser", "lite-cpu"): (7.55, 2.0),
    ("segmentation", "draped"): (1.22, 0.98),
    ("segmentation", "lite-cpu"): (3.38, 4.5),
    ("matching", "draped"): (0.92, 0.63),
    ("matching", "lite-cpu"): (3.06, 0.63),
    ("alias", "draped"): (0.69, 0.5),
    ("gan", "line"): (0.0007, 0.005),
    ("gan", "ring"): (0.0045, 0.007),
    ("gan", "grid"): (0.0045, 0.007),
    ("gan", "spiral"): (0.0045, 0.007),
    ("gan", "digits"): (2.5, 0.04),
}
SMALL = ("tiny", "draped", "quick", "line", "ring", "grid", "spiral")  # presets that a public page may offer
GENTLE = 0.3  # weights that are trained already bear this share of a preset's learning rate
RATES = ("rate_scale", "lr", "lr_d")


def network_of_task(task: str) -> str | None:
    """Key of the network that a run's task trains."""
    return next((key for key, network in NETWORKS.items() if network.task == task), None)


def settings_of(network: str) -> tuple[Setting, ...]:
    """All settings of a network that the page has a box for, its own ones first."""
    return (*NETWORKS[network].settings, *COMMON)
