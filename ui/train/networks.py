"""What can be trained: the registry of networks, and their presets and settings in words."""

from typing import Any

from ui.train.kinds import (
    WORDS,
    AdversarialNetwork,
    FlowNetwork,
    GarmentNetwork,
    Network,
    Setting,
    TranslatorNetwork,
    TreeNetwork,
    TryOnNetwork,
)
from vton.registry import ALL_NETWORKS


def _network(kind: type[Network], key: str, *place: Any) -> Network:
    """A network with its words. place: its command, and where its recipe is."""
    words = WORDS["networks"][key]
    return kind(key, *place, **{**words, "settings": tuple(Setting(*row) for row in words["settings"])})


def _tryon(key: str, kind: type[TryOnNetwork] = TryOnNetwork) -> Network:
    """A network of `vton.registry`."""
    one = ALL_NETWORKS[key]
    return _network(kind, key, f"vton.train {key}", one.module, one.recipe_name, one.task_name)


_TRAIN = "transformer.train"  # of both that read and write text
_ALL = (
    _network(TranslatorNetwork, "transformer", _TRAIN, _TRAIN, "TranslationRecipe", "TranslationTask"),
    *map(_tryon, ("parser", "segmentation", "matching", "alias")),
    _tryon("garment", GarmentNetwork),
    _tryon("flow", FlowNetwork),
    _network(AdversarialNetwork, "gan", "gan.train", "gan.task", "GanRecipe", "GanTask"),
    _network(TreeNetwork, "parse", _TRAIN, "transformer.parsing.recipe", "ParseRecipe", "ParseTask"),
)
NETWORKS = {network.key: network for network in _ALL}
COMMON = tuple(Setting(*row) for row in WORDS["common"])
MAX_OWN_SETTINGS = max(len(network.settings) for network in NETWORKS.values())  # boxes for a network's own settings
PRESETS: dict[str, str] = WORDS["presets"]  # what a preset is for, by its name on the command line
PUBLIC_PRESETS = ("tiny", "draped", "quick", "line", "ring", "grid", "spiral")  # presets that a public page may offer
FINE_TUNING_SHARE = 0.3  # weights that are trained already bear this share of a preset's learning rate
RATE_FIELDS = ("rate_scale", "lr", "lr_d")


def seconds_of(network: str, preset: str) -> float:
    """Processor seconds a step, see `Network.seconds`; 0 where nobody has measured them."""
    return NETWORKS[network].seconds.get(preset, 0.0)


def network_of_task(task: str) -> str | None:
    """Key of the network that a run's task trains."""
    return next((key for key, network in NETWORKS.items() if network.task == task), None)


def settings_of(network: str) -> tuple[Setting, ...]:
    """All settings of a network that the page has a box for, its own ones first."""
    return (*NETWORKS[network].settings, *COMMON)
