"""From two photographs to a try-on: the numbered stages in order, each a step over one growing record.

`vton.stages` holds their functions; here they are run in turn, and again from any of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from training.arguments import expect, expect_fields
from training.assets import model_dir
from training.devices import choose_device
from training.weights import build, from_json, load_model
from vton import labels
from vton.inputs import photo
from vton.inputs.photo import InputError
from vton.options import ABOUT, Options
from vton.registry import ALL_NETWORKS, NETWORKS
from vton.result import TryOnResult
from vton.stages import MAKERS, READERS, STAGES, TABLE, Run, move_control_points, warps_by_flow

LABELS_OF = {"parse": len(labels.LIP), "parse_agnostic": len(labels.LIP), "segmentation": len(labels.SEGMENTATION)}
BOOKKEEPING = ("options", "sources", "seconds", "notes", "weights", "corrected", "resumed_from")
OF_ANY_SIZE = ("painted_mask", "garment_photo")  # an edited one need not have the size of the old one


class TryOn:
    """The networks and the stages between them."""

    def __init__(
        self,
        parser: nn.Module,
        generator: nn.Module,
        matching: nn.Module,
        synthesis: nn.Module,
        reader: nn.Module,
        name: str = "",
        device: str | torch.device = "cpu",
        flow: nn.Module | None = None,
        stages: Mapping[str, Run] | None = None,
    ):
        """stages: what runs in place of the function in `vton.stages.TABLE`, by the stage's name."""
        self.device, self.name = torch.device(device), name
        self.table = tuple(stage._replace(run=(stages or {}).get(stage.name, stage.run)) for stage in TABLE)
        self.parser, self.segmentation, self.matching, self.alias, self.garment = (
            m.to(self.device).eval().requires_grad_(False) for m in (parser, generator, matching, synthesis, reader)
        )
        self.flow = flow.to(self.device).eval().requires_grad_(False) if flow is not None else None

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, device: str = "auto", stages: Mapping[str, Run] | None = None
    ) -> TryOn:
        """Loads a shipped model by name or a folder with parser/, segmentation/, matching/, alias/ and garment/;
        without garment/ the shipped reader of garments serves, without flow/ the garment is warped by the spline alone.

        device: "auto" (CUDA, then Apple's MPS, then CPU), "cpu", "cuda" or "mps".
        stages: what runs in place of a stage's own function, by the stage's name.

        Raises FileNotFoundError or ValueError with one sentence for a missing or foreign folder.
        """
        expect("name_or_folder", name_or_folder, (str, Path), "a name or a folder")
        folder = Path(name_or_folder)
        if not (folder / "parser").is_dir():
            folder = model_dir(str(name_or_folder))
        networks = [load_network(kind, network_folder(folder, kind)) for kind in NETWORKS]
        parser, generator, matching, synthesis, reader = networks
        flow = load_network("flow", folder / "flow") if has_flow(folder) else None
        return cls(parser, generator, matching, synthesis, reader, folder.name, choose_device(device), flow, stages)

    # -- running -------------------------------------------------------------------------------------------------

    def run(
        self,
        person: Any,
        garment: Any,
        options: Options | None = None,
        *,
        on_stage: Callable[[str, int, int], None] | None = None,
        painted_mask: np.ndarray | None = None,
        until: str = STAGES[-1],
        **changes: Any,
    ) -> TryOnResult:
        """Dresses the person of one picture in the garment of the other.

        person, garment: path, bytes, PIL picture or uint8 array (H,W,3 or 4).
        options: see Options; None = the defaults.
        on_stage: called as on_stage(name, index, total) before each stage; an exception from it cancels the run.
        painted_mask: the garment's mask from a person's hand, see `garment.cut_by_mask`.
        until: the last stage to run; the record can be looked at, corrected and continued with `resume`.
        changes: single options by name, in place of those of `options`.

        Raises InputError with a sentence for the visitor when a picture cannot be used; its attributes `stage` and
        `record` tell how far the run came, so that a map can be painted by hand and continued from.
        """
        for name, picture in (("person", person), ("garment", garment)):
            expect(name, picture, photo.SOURCES, "a path, bytes, a PIL picture or an array")
        expect("options", options, (Options, type(None)), "an Options or None")
        expect_fields(Options, {name: value for name, value in changes.items() if value is not None})
        options = Options.of({**dataclasses.asdict(options or Options()), **changes})
        corrected = ("painted_mask",) if painted_mask is not None else ()
        record = TryOnResult(
            options, (person, garment), weights=self.name, painted_mask=painted_mask, corrected=corrected
        )
        return self._continue(record, 0, until, on_stage)

    def resume(
        self,
        result: TryOnResult,
        stage: str,
        on_stage: Callable[[str, int, int], None] | None = None,
        until: str = STAGES[-1],
        **edits: Any,
    ) -> TryOnResult:
        """Runs again from `stage` up to `until` with changed fields or options; nothing before it is repeated.

        edits: fields of TryOnResult, or of Options but for the size.
        """
        expect("result", result, TryOnResult, "a TryOnResult")
        if stage not in STAGES:
            raise ValueError(f"There is no stage '{stage}'; the stages are: {', '.join(STAGES)}.")
        if stage == "photo":
            raise ValueError("The first stage decodes the pictures; use run() for new pictures.")
        expect_fields(Options, edits)
        _check_edits(result, edits)
        options = replace(result.options, **{name: value for name, value in edits.items() if name in ABOUT})
        options.check()
        changes = {name: value for name, value in edits.items() if name not in ABOUT}
        index = STAGES.index(stage)
        missing = [name for name in STAGES[:index] if name not in result.seconds]
        if missing:
            raise ValueError(f"The stage '{missing[0]}' has not run yet; continue from there.")
        record = replace(
            _before(result, index),
            options=options,
            corrected=_corrections_before(result, index, changes),
            resumed_from=stage,
            **changes,
        )
        return self._continue(record, index, until, on_stage)

    def correct(
        self,
        result: TryOnResult,
        name: str,
        value: np.ndarray,
        on_stage: Callable[[str, int, int], None] | None = None,
        until: str = STAGES[-1],
    ) -> TryOnResult:
        """Goes on from a map that a person has corrected, one of READERS; only the stages that read it run again.

        value: parse (H, W) LIP labels; parse_agnostic (H, W) LIP labels; segmentation (H, W) 13 classes; misalignment
        (H, W) 0/255; painted_mask: the garment's mask, see `garment.cut_by_mask`; control_points (n^2, 2), see
        `stages.move_control_points`, which bend the spline in the flow's place. Raises ValueError for anything else.
        """
        if name not in READERS:
            raise ValueError(f"'{name}' cannot be corrected; these can: {', '.join(READERS)}.")
        value = np.asarray(value)
        most = LABELS_OF.get(name)
        if most and (value.dtype.kind not in "ui" or (value.size and not 0 <= value.min() <= value.max() < most)):
            raise ValueError(f"The corrected {name} holds labels from 0 to {most - 1}.")
        if name == "control_points":
            if result.flow is not None:
                result = replace(result, flow=None, options=replace(result.options, warp="spline"))
            edits: dict[str, Any] = move_control_points(self, result, value)
        else:
            edits = {name: value.astype(np.uint8)}
        return self.resume(result, READERS[name], on_stage, until, **edits)

    def by_spline(self, result: TryOnResult, until: str = "misalignment") -> TryOnResult:
        """The record with the garment warped by the spline, up to the stage `until`: what the flow has warped has no
        control points. A record of the spline comes back as it is.
        """
        return result if result.flow is None else self.resume(result, "warp", warp="spline", until=until)

    def change_garment(
        self,
        result: TryOnResult,
        garment: Any,
        on_stage: Callable[[str, int, int], None] | None = None,
        until: str = STAGES[-1],
    ) -> TryOnResult:
        """The same person in another garment (path, bytes, PIL picture or array), without the person's stages."""
        picture = photo.load_image(garment, alpha=True)
        return self.resume(result, "garment", on_stage, until, garment_photo=picture, painted_mask=None)

    def _continue(
        self, record: TryOnResult, first: int, until: str, on_stage: Callable[[str, int, int], None] | None
    ) -> TryOnResult:
        """The record after the stages from number `first` to `until`."""
        if until not in STAGES[first:]:
            raise ValueError(f"The run ends with one of these stages: {', '.join(STAGES[first:])}; not '{until}'.")
        if first <= STAGES.index("warp") <= STAGES.index(until):
            warps_by_flow(self, record.options)  # a flow that is not there is missed at once, not after half the stages
        for index in range(first, STAGES.index(until) + 1):
            stage = self.table[index]
            if on_stage:
                on_stage(stage.name, index, len(STAGES))
            start = time.perf_counter()
            try:
                fields = stage.run(self, record)
            except InputError as error:
                error.stage, error.record = stage.name, record
                raise
            record = replace(record, **fields, seconds={**record.seconds, stage.name: time.perf_counter() - start})
        return record


def _check_edits(result: TryOnResult, edits: dict[str, Any]) -> None:
    """Raises ValueError for fields that do not exist or cannot be edited, and for arrays of another shape."""
    options = set(ABOUT) - {"size"}
    fields = {f.name for f in dataclasses.fields(TryOnResult)}.difference(BOOKKEEPING)
    for name, value in edits.items():
        if name in options:
            continue
        if name not in fields:
            raise ValueError(f"'{name}' cannot be edited; these can: {', '.join(sorted(fields | options))}.")
        old = None if name in OF_ANY_SIZE else getattr(result, name)
        if isinstance(old, np.ndarray) and np.shape(value) != old.shape:
            raise ValueError(f"The edited {name} must have shape {old.shape}, but has {np.shape(value)}.")


def _before(r: TryOnResult, index: int) -> TryOnResult:
    """The record without what the stages from number `index` on have made."""
    later = [name for stage in TABLE[index:] for name in stage.makes]
    seconds = {name: value for name, value in r.seconds.items() if STAGES.index(name) < index}
    return replace(r, seconds=seconds, **{name: () if name == "notes" else None for name in later})


def _corrections_before(r: TryOnResult, index: int, changes: dict[str, Any]) -> tuple[str, ...]:
    """The maps of a record that are a person's: a correction counts until the stage that makes its map runs again."""
    before = [
        name
        for name in r.corrected
        if name not in changes and (name not in MAKERS or STAGES.index(MAKERS[name]) < index)
    ]
    return tuple(dict.fromkeys([*before, *(name for name in changes if name in READERS and changes[name] is not None)]))


# -- loading -------------------------------------------------------------------------------------------------------


def network_folder(folder: Path, kind: str) -> Path:
    """Where a network's weights lie in a model's folder. The garment reader does not depend on the others, so a model
    without one uses that of the shipped model.
    """
    own = folder / kind
    return own if kind != "garment" or own.is_dir() else model_dir("tryon-lite") / kind


def has_flow(folder: Path) -> bool:
    """Whether a model's folder brings a flow warper; a try-on can do without."""
    return (folder / "flow").is_dir()


def load_network(kind: str, folder: Path) -> nn.Module:
    """One of the networks out of a folder with config.json and model.safetensors, in evaluation mode."""
    network = ALL_NETWORKS[kind]
    config, state = load_model(folder)
    sizes: Any = from_json(network.config, config)
    return build(lambda: network.network(sizes), state, network.what).eval()
