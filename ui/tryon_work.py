"""The work behind the Try on tab's events, without Gradio: checks, files, comparisons, grids, saved records."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator, NamedTuple

import numpy as np

from training import assets
from ui import figures
from ui.services import Services
from vton import contact_sheet, garment, photo, pose, record
from vton.maps import MAPS
from vton.pipeline import SIZES, STAGES
from vton.sleeves import set_length

MAX_SEED = 2**31 - 1
MAX_SEVERAL = 6
SIZE_LABELS = [
    (f"{height} × {width}{remark}", f"{height}x{width}")
    for (height, width), remark in zip(SIZES, (", quick", "", ", slow"), strict=True)
]
GONE = "The result has been cleared away; run the try-on again first."
BASELINE = "Baseline: warped garment, pasted"


class Comparison(NamedTuple):
    """Variants of a finished result that differ in one option, and the first stage that they run again from."""

    title: str
    stage: str
    variants: tuple[tuple[str, dict[str, Any]], ...]
    about: str
    outlined: bool = True


COMPARISONS = {
    "norm": Comparison(
        "ALIAS or instance normalisation",
        "synthesis",
        (("ALIAS normalisation", {"norm": "alias"}), ("Instance normalisation", {"norm": "instance"})),
        "The paper's central claim: ALIAS normalisation keeps the misaligned region, outlined in orange, from "
        "misleading the generator.",
    ),
    "fit": Comparison(
        "Fitted or unfitted warp",
        "warp",
        (("Fitted", {"fit": True}), ("As the network predicts it", {"fit": False})),
        "What the gradient steps on the control points change. Orange outlines what the warped garment leaves open.",
    ),
    "grid": Comparison(
        "5 × 5 or 10 × 10 control points",
        "warp",
        (("5 × 5 control points", {"grid": 5}), ("10 × 10 control points", {"grid": 10})),
        "A finer grid gives the fit more freedom, and the garment more ways to wrinkle (Fig. 13 of the paper).",
    ),
    "noise": Comparison(
        "Noise on or off",
        "segmentation",
        (("With noise", {"noise": True}), ("Without noise", {"noise": False})),
        "Both generators of VITON-HD are given noise; this is how much of the picture it decides.",
        False,
    ),
    "mirror": Comparison(
        "Segmentation with or without its mirror image",
        "segmentation",
        (("With the mirror image", {"mirror": True}), ("Without it, as published", {"mirror": False})),
        "The segmentation is the mean of what the network says of the picture and of its mirror image; the paper asks once. "
        "Orange outlines what the warped garment leaves open.",
    ),
    "seed": Comparison(
        "Five seeds",
        "segmentation",
        tuple((f"Seed {seed}", {"seed": seed}) for seed in range(5)),
        "The same two photos under five noises.",
        False,
    ),
}


def check_inputs(person: str | None, garment: str | None, size: str, seed: float | None) -> dict[str, Any]:
    """The options of `TryOn.run` from what the page holds.

    Raises ValueError with the sentence for what is missing or out of range.
    """
    if not person and not garment:
        raise ValueError("Add a photo of a person and a photo of a garment first.")
    if not person:
        raise ValueError("Add a photo of a person first.")
    if not garment:
        raise ValueError("Add a photo of a garment first.")
    if size not in {value for _, value in SIZE_LABELS}:
        raise ValueError(f"Choose one of these sizes: {', '.join(value for _, value in SIZE_LABELS)}.")
    if seed is None or not 0 <= seed <= MAX_SEED or int(seed) != seed:
        raise ValueError(f"The seed is a whole number from 0 to {MAX_SEED}.")
    height, width = (int(side) for side in size.split("x"))
    return {"size": (height, width), "seed": int(seed)}


def look_at_person(path: str) -> list[str]:
    """Before running: what makes this photo unsuited, none when all is well. Raises InputError when it cannot be used."""
    picture = photo.load_image(path, longest=1024)
    found = pose.detect(picture)
    photo.frame_person(found.keypoints, picture.shape[:2])
    return pose.check(found, picture.shape[:2])


def look_at_garment(path: str) -> str:
    """Before running: how the garment will be cut out, one sentence. Raises InputError when it cannot be used."""
    cut = garment.cut_out(photo.load_image(path, alpha=True, longest=1024))
    how = {"alpha": "by its transparency", "uniform": "from its plain background", "grabcut": "from its background by colour"}
    kind = {"none": "no sleeves", "short": "short sleeves", "long": "long sleeves"}[garment.sleeves(cut.mask)]
    share = 100 * (cut.mask > 0).mean()
    return f"Cut out {how[cut.method]}: {share:.0f} % of the picture, {kind}."


def write_pictures(result: Any, folder: Path) -> dict[str, str]:
    """Write the two photos and every picture of a result as NAME.png. Returns the path of each name."""
    paths = {}
    for name, picture in record.pictures(result).items():
        paths[name] = str(folder / f"{name}.png")
        Path(paths[name]).write_bytes(record.png(picture))
    return paths


def write_zip(paths: dict[str, str], result: Any, model: str | None, target: Path) -> str:
    """One zip with every PNG, all arrays (npz) and the settings with the model's key (JSON). Returns its path."""
    record.save(result, target, paths, model=model or "")
    return str(target)


def summary(result: Any) -> str:
    """One line about a result, plain text."""
    height, width = result.options.size
    done = "Done" if result.result is not None else "Stopped before the synthesis"
    text = f"{done} in {sum(result.seconds.values()):.1f} s at {height} × {width}, seed {result.options.seed}. "
    if result.misalignment is not None:
        text += f"{100 * result.misaligned_share:.1f} % of the predicted cloth is not covered by the warped garment."
    return text


def compare(services: Services, result: Any, name: str, model: str | None = None) -> Iterator[tuple[np.ndarray, str]]:
    """The syntheses of a comparison's variants with their labels, one by one, and the pasted baseline at last.

    Nothing before the comparison's stage is repeated. Raises ValueError when there is no finished result.
    """
    if result is None or result.synthesis is None:
        raise ValueError(GONE)
    comparison = COMPARISONS[name]
    for label, options in comparison.variants:
        if all(getattr(result.options, option) == value for option, value in options.items()):
            variant = result
        else:
            with services.tryon_in_use:
                variant = services.tryon(model).resume(result, comparison.stage, **options)
        picture = variant.synthesis
        if comparison.outlined:
            picture = figures.outline(picture, variant.misalignment)
        yield picture, f"{label}: {100 * variant.misaligned_share:.1f} % open" if comparison.stage == "warp" else label
    yield figures.outline(result.pasted, result.misalignment) if comparison.outlined else result.pasted, BASELINE


def several(services: Services, result: Any, files: list[str] | None, kind: str, model: str | None = None
            ) -> Iterator[tuple[contact_sheet.Row, np.ndarray | None]]:
    """One person in several garments (kind "garments"), or several people in one garment ("people").

    files: at most MAX_SEVERAL pictures. Yields a row of the contact sheet and the picture for each (None after an error,
    whose sentence the row holds). The person's stages are not repeated for another garment.
    """
    if result is None or "garment" not in result.seconds:
        raise ValueError(GONE)
    if not files:
        raise ValueError(f"Add up to {MAX_SEVERAL} pictures of {kind} first.")
    if len(files) > MAX_SEVERAL:
        raise ValueError(f"At most {MAX_SEVERAL} pictures at a time; take some away.")
    cell = (256, 192)
    for file in files:
        # The visitor's name of a file is text for the eye alone.
        name = Path(file).stem[:60]
        try:
            with services.tryon_in_use:
                networks = services.tryon(model)
                if kind == "garments":
                    made = networks.redress(result, file)
                else:
                    o = result.options
                    made = networks.run(file, result.garment_photo, size=o.size, seed=o.seed, fit=o.fit, norm=o.norm, noise=o.noise,
                                        detail=o.detail, grid=o.grid, sleeves=o.sleeves, neckline=o.neckline, hem=o.hem, mirror=o.mirror,
                                        painted_mask=result.painted_mask)
            around = [photo.crop(picture, made.frame, made.options.size) for picture in (made.photo, made.result)]
            cells = tuple(contact_sheet.fitted(picture, cell) for picture in (around[0], made.garment_photo, made.pasted, around[1]))
            yield contact_sheet.Row(name, cells, f"{100 * made.misaligned_share:.1f} % open"), made.result
        except (ValueError, OSError) as error:
            given = result.photo if kind == "garments" else result.garment_photo
            cells = [contact_sheet.given(file, cell), contact_sheet.fitted(given, cell)]
            yield contact_sheet.Row(name, tuple(cells[::-1] if kind == "garments" else cells), "", " ".join(str(error).split())), None


def sleeves(result: Any, kind: str) -> np.ndarray:
    """The predicted segmentation of a record with sleeves of another kind. Raises ValueError when there is none yet."""
    if result is None or result.segmentation is None:
        raise ValueError(GONE)
    return set_length(result.segmentation, result.keypoints, kind)


def sheet(rows: list[contact_sheet.Row]) -> np.ndarray:
    """The grid of `several` as one picture, (H, W, 3) uint8."""
    return contact_sheet.draw(rows, ("pasted",))


def upto(stop: bool) -> str:
    """The last stage of a run that stops before the slow synthesis, or of a whole one."""
    return STAGES[STAGES.index("synthesis") - 1] if stop else STAGES[-1]


def next_stage(result: Any) -> str:
    """The first stage that has not run yet. Raises ValueError when there is nothing left."""
    if result is None:
        raise ValueError(GONE)
    missing = [stage for stage in STAGES if stage not in result.seconds]
    if not missing:
        raise ValueError("Every stage has run; change something first.")
    return missing[0]


def licence(model: str | None) -> str:
    """What the weights may be used for, in one line."""
    return ("CC BY-NC 4.0: research and teaching, not for commercial use" if (model or "").startswith("released:")
            else "learned from photographs for research and teaching; not for commercial use")


def example_pairs() -> list[list[str]]:
    """Shipped examples as [person, garment] paths: the n-th person with the n-th garment."""
    try:
        folder = assets.examples_dir()
    except FileNotFoundError:
        return []
    people = sorted(str(path) for path in folder.glob("person*.[pj][np]g"))
    garments = sorted(str(path) for path in folder.glob("garment*.[pj][np]g"))
    return [[person, garments[i % len(garments)]] for i, person in enumerate(people)] if garments else []


def shown_maps(result: Any) -> list[str]:
    """Names of the maps that a record holds, in the order of Fig. 3."""
    return [name for name in MAPS if MAPS[name].stage in result.seconds]
