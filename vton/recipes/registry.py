"""The networks of vton: how each is made, trained and named. A new network is one entry.

Recipes are named by module, because they build on much that inference has no need of.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
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
    """One network. name: in a sentence; config, network: its classes; module: of the recipe, which has a task, a recipe
    class, PRESETS and network_config; map: the picture of a try-on that shows its work.
    """

    name: str
    config: type
    network: type[nn.Module]
    module: str
    task_name: str
    recipe_name: str
    map: str

    @property
    def what(self) -> str:
        """How a sentence calls it."""
        return f"the {self.name}"

    @property
    def recipes(self) -> types.ModuleType:
        """The module of its recipe."""
        return import_module(self.module)

    @property
    def task(self) -> type:
        """The class of its Task."""
        return getattr(self.recipes, self.task_name)

    @property
    def recipe(self) -> type:
        """The class of its recipe."""
        return getattr(self.recipes, self.recipe_name)

    @property
    def presets(self) -> Mapping[str, dict[str, Any]]:
        """Preset -> the fields in which it differs from the recipe's defaults."""
        return self.recipes.PRESETS


NETWORKS = {
    "parser": Network(
        "human parser", ParserConfig, Parser, "vton.recipes.parser", "ParserTask", "ParserRecipe", "parse"
    ),
    "segmentation": Network(
        "segmentation generator",
        SegmentationConfig,
        SegmentationGenerator,
        "vton.recipes.segmentation",
        "SegmentationTask",
        "SegmentationRecipe",
        "segmentation",
    ),
    "matching": Network(
        "matching module",
        MatchingConfig,
        MatchingModule,
        "vton.recipes.matching",
        "MatchingTask",
        "MatchingRecipe",
        "warped_cloth",
    ),
    "alias": Network(
        "ALIAS generator", AliasConfig, AliasGenerator, "vton.recipes.alias", "AliasTask", "AliasRecipe", "synthesis"
    ),
    "garment": Network(
        "garment reader",
        GarmentReaderConfig,
        GarmentReader,
        "vton.recipes.garment",
        "GarmentTask",
        "GarmentRecipe",
        "garment",
    ),
}
# A try-on can do without them, and `train all` leaves them out.
RIVALS = {
    "flow": Network(
        "flow warper", FlowConfig, FlowWarper, "vton.recipes.flow", "FlowTask", "FlowRecipe", "warped_cloth"
    ),
}
TRYON_NETWORKS = ("parser", "segmentation", "matching", "alias", "garment")  # the ones that a try-on cannot do without


def network_of_task(task: str | None) -> str | None:
    """Key of the network that the task of this name trains; None for others."""
    return next((key for key, network in (NETWORKS | RIVALS).items() if network.task_name == task), None)
