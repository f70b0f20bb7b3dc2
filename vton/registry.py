"""The networks of vton: how each is made, trained and named. A new network is one entry.

A recipe is imported when somebody trains: inference needs none of what it builds on.
"""

import types
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torch import nn

from vton.networks.alias import AliasGenerator
from vton.networks.config import AliasConfig, FlowConfig, MatchingConfig, ParserConfig, SegmentationConfig
from vton.networks.flow import FlowWarper
from vton.networks.garment_reader import GarmentReader, GarmentReaderConfig
from vton.networks.parser import Parser
from vton.networks.segmentation import SegmentationGenerator
from vton.networks.warping import MatchingModule


@dataclass(frozen=True)
class Network:
    """One network and how to train it."""

    key: str  # its folder in a model, and its module in `vton.recipes`
    what: str  # how a sentence calls it
    config: type
    network: type[nn.Module]
    map: str  # the picture of a try-on that shows its work

    @property
    def module(self) -> str:
        """The name of its recipe's module, which has a task, a recipe class, PRESETS and network_config."""
        return f"vton.recipes.{self.key}"

    @property
    def task_name(self) -> str:
        """The name of its Task, which a run's recipe.json holds."""
        return f"{self.key.capitalize()}Task"

    @property
    def recipe_name(self) -> str:
        """The name of its recipe's class."""
        return f"{self.key.capitalize()}Recipe"

    @property
    def recipes(self) -> types.ModuleType:
        """The module of its recipe."""
        return import_module(self.module)

    @property
    def task(self) -> type:
        """The class of its Task."""
        return getattr(self.recipes, self.task_name)

    @property
    def recipe(self) -> Any:
        """The class of its recipe."""
        return getattr(self.recipes, self.recipe_name)

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """Preset -> the fields in which it differs from the recipe's defaults."""
        return self.recipes.PRESETS


def _by_key(*networks: Network) -> dict[str, Network]:
    return {network.key: network for network in networks}


# The ones that a try-on cannot do without.
NETWORKS = _by_key(
    Network("parser", "the human parser", ParserConfig, Parser, "parse"),
    Network("segmentation", "the segmentation generator", SegmentationConfig, SegmentationGenerator, "segmentation"),
    Network("matching", "the matching module", MatchingConfig, MatchingModule, "warped_cloth"),
    Network("alias", "the ALIAS generator", AliasConfig, AliasGenerator, "synthesis"),
    Network("garment", "the garment reader", GarmentReaderConfig, GarmentReader, "garment"),
)
RIVALS = _by_key(Network("flow", "the flow warper", FlowConfig, FlowWarper, "warped_cloth"))
ALL_NETWORKS = NETWORKS | RIVALS


def network_of_task(task: str | None) -> str | None:
    """Key of the network that the task of this name trains; None for others."""
    return next((key for key, network in ALL_NETWORKS.items() if network.task_name == task), None)
