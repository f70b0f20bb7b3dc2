"""The work behind the Try on tab's events, without Gradio: checks, files, comparisons, grids, saved records."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from training import assets
from ui import figures, theme
from ui.figures import percent
from ui.services import Progress, Services
from ui.tryon import example
from ui.tryon.figures import WORDS, garment_readings, warp_overlay
from vton import contact_sheet, insight, record
from vton.inputs import garment, photo, pose
from vton.joints import present
from vton.maps import MAPS
from vton.options import ABOUT, DEFAULTS, PUBLISHED, SIZES, read_size, to_text
from vton.pipeline import STAGES
from vton.result import PICTURES
from vton.warps import BY_FLOW

MAX_SEED = 2**31 - 1
MAX_SEVERAL = 6
NO_RECORD = "There is no result of yours to work on yet, or it has been cleared away; press “Try it on” first."
ON_WEARER = "Somebody wears it; the garment will be cut out of that person."
CELL = (256, 192)
BASELINE = "Baseline: warped garment, pasted"


WARPS = "warps"  # the comparison that shows the warp alone, without the stages after it


class Comparison(NamedTuple):
    """Variants of a finished result that differ in options (of WARPS: in the warp, by its name).

    picture: the field of the record that is shown.
    """

    title: str
    variants: list[tuple[str, Any]]
    about: str
    outline: bool = True
    picture: str = "synthesis"


def first_stage(options: Iterable[str]) -> str:
    """The first stage that reads any of some options."""
    return min((ABOUT[name].read_by for name in options), key=STAGES.index)


COMPARISONS = {name: Comparison(**one) for name, one in theme.data("tryon/comparisons.json").items()}
COMPARISONS["additions"].variants.extend(
    [
        ("With all additions", {}),
        *(
            (f"Without: {ABOUT[name].label}", {name: value})
            for name, value in PUBLISHED.items()
            if DEFAULTS[name] != value
        ),
        ("As published", PUBLISHED),
    ]
)


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
    sizes = [to_text(one) for one in SIZES]
    if size not in sizes:
        raise ValueError(f"Choose one of these sizes: {', '.join(sizes)}.")
    if not isinstance(seed, int | float) or not 0 <= seed <= MAX_SEED or int(seed) != seed:
        raise ValueError(f"The seed is a whole number from 0 to {MAX_SEED}.")
    return {"size": read_size(size), "seed": int(seed)}


def look_at_person(path: str) -> tuple[str, list[str]]:
    """Before a run: what is seen of the person in a few words, and notes on what makes the photo unsuited.

    Raises InputError when it cannot be used.
    """
    picture = photo.load_image(path, longest=1024)
    person, size = pose.detect(picture), (picture.shape[0], picture.shape[1])
    photo.frame_person(person.keypoints, size)
    return describe_person(person.keypoints), pose.check(person, size)


def describe_person(keypoints: np.ndarray) -> str:
    """A person in a few words. keypoints: (25, 3) x, y, certainty."""
    joints = present(keypoints)
    parts = {"shoulders": (2, 5), "elbows": (3, 6), "wrists": (4, 7), "hips": (9, 12)}
    whole = [part for part, pair in parts.items() if joints[list(pair)].all()]
    side = {"front": "from the front", "side": "from the side", "back": "from behind"}.get(pose.facing(keypoints))
    return f"One person{f' {side}' if side else ''}: {', '.join(whole) or 'no pair of joints'} seen."


def look_at_garment(path: str) -> tuple[str, dict[str, str]]:
    """Before running: how the garment will be cut out, one sentence; and what is read of it, see `garment_readings`.

    Raises InputError when it cannot be used.
    """
    try:
        return describe_garment(garment.cut_out(photo.load_image(path, alpha=True, longest=1024), default_reader()))
    except garment.GarmentOnPerson:
        return ON_WEARER, {}


def describe_garment(cut: garment.Garment) -> tuple[str, dict[str, str]]:
    """As `look_at_garment`, of a garment that is cut out already."""
    if cut.method == "worn":
        return ON_WEARER, garment_readings(cut.attributes)
    how, share = WORDS["cuts"][cut.method]["check"], (cut.mask > 0).mean()
    return f"Cut out {how}, {percent(share)} of the picture.", garment_readings(cut.attributes)


@functools.cache
def default_reader() -> Any:
    """The reader of garments that goes with the shipped model, for a look before any model is loaded."""
    from vton.pipeline import load_network, network_folder

    return load_network("garment", network_folder(Path(), "garment"))


def write_photographs(result: Any, folder: Path, names: Iterable[str] = record.AS_PNG) -> dict[str, str]:
    """Write of the two photos and the result those of `names` that are there, as NAME.png. Returns each name's path."""
    pictures = {name: getattr(result, name) for name in names}
    return write({name: picture for name, picture in pictures.items() if picture is not None}, folder)


def write_pictures(result: Any, folder: Path) -> dict[str, str]:
    """Write the two photos and every picture of a result as NAME.png. Returns the path of each name."""
    return write(record.pictures(result), folder)


def write(pictures: Mapping[str, np.ndarray], folder: Path) -> dict[str, str]:
    """Write pictures as NAME.png, two at a time. Returns the path of each name."""
    paths = {name: folder / f"{name}.png" for name in pictures}
    with ThreadPoolExecutor(2) as writers:
        list(writers.map(lambda name: paths[name].write_bytes(record.png(pictures[name])), pictures))
    return {name: str(path) for name, path in paths.items()}


def write_zip(paths: dict[str, str], result: Any, model: str | None, target: Path) -> str:
    """One zip with every PNG, all arrays (npz) and the settings with the model's key (JSON). Returns its path."""
    record.save(result, target, paths, model=model or "")
    return str(target)


def summary(result: Any) -> str:
    """One line about a result, plain text."""
    height, width = result.options.size
    first = STAGES.index(result.resumed_from) if result.resumed_from else 0
    seconds = sum(result.seconds.get(stage, 0.0) for stage in STAGES[first:])  # of the stages that ran
    state = "Done" if result.result is not None else "Stopped before the synthesis"
    text = f"{state} in {seconds:.1f} s at {height} × {width}, seed {result.options.seed}. "
    if result.misalignment is not None:
        text += f"{percent(result.misaligned_share, 1)} of the predicted cloth is not covered by the warped garment."
    return text


def require_result(result: Any) -> Any:
    """The record itself. Raises ValueError with a sentence when it has not been run to its end."""
    if result is None or result.result is None:
        raise ValueError(NO_RECORD)
    return result


def stream_again(services: Services, result: Any, options: dict[str, Any], model: str | None) -> Iterator[Any]:
    """The record with other options, run from the first stage that reads one of them: Progress, and the record at last.

    Options that are as they were run nothing.
    """
    changes = {name: value for name, value in options.items() if getattr(result.options, name) != value}
    if not changes:
        yield result
        return
    stage = first_stage(changes)
    yield from services.stream_on_tryon(lambda t, on_stage: t.resume(result, stage, on_stage, **changes), model)


class Variant(NamedTuple):
    """One picture of a comparison. against: its difference from the first one, None for the first itself; warp: its
    figures, where warps alone are compared.
    """

    label: str
    picture: np.ndarray
    against: insight.Difference | None
    line: str
    warp: insight.WarpResult | None = None


def compare(services: Services, result: Any, name: str, model: str | None = None) -> Iterator[Any]:
    """The variants of a comparison one by one, Progress in between, and the pasted baseline at last.

    Nothing before the first stage that reads the changed options is repeated. Raises ValueError without a finished
    result.
    """
    comparison = COMPARISONS[name]
    first: np.ndarray | None = None
    require_result(result)
    if name == WARPS:
        yield from _warps(services, result, model)
        return
    frame, size = result.frame, result.options.size
    region = photo.crop(result.region, frame, size, "nearest", 0) > 0
    for label, options in comparison.variants:
        for report in stream_again(services, result, options, model):
            if isinstance(report, Progress):
                yield report
        picture = report.synthesis if comparison.picture == "synthesis" else photo.crop(report.result, frame, size)
        if first is None or picture is first:
            against = None
        else:
            against = insight.difference(first, picture, region, report.misalignment > 127)
        first = picture if first is None else first
        view = figures.outline(picture, report.misalignment) if comparison.outline else picture
        yield Variant(label, view, against, f"{percent(report.misaligned_share, 1)} of the cloth misaligned")
    baseline = figures.outline(result.baseline, result.misalignment) if comparison.outline else result.baseline
    against = None if first is None else insight.difference(first, result.baseline, region, result.misalignment > 127)
    yield Variant(BASELINE, baseline, against, "")


def _warps(services: Services, result: Any, model: str | None) -> Iterator[Any]:
    """The garment by every warp, one by one; networks without a flow leave it out."""
    for label, name in COMPARISONS[WARPS].variants:
        if name == BY_FLOW and not services.has_flow(model):
            return
        yield Progress(STAGES.index("warp"), {})
        for report in services.stream_on_tryon(partial(_warp, result, name), model):
            if not isinstance(report, Progress):
                yield Variant(label, warp_overlay(result, report.cloth, report.mask), None, "", report)


def _warp(result: Any, name: str, tryon: Any, on_stage: Any) -> insight.WarpResult:
    return insight.warp_by_name(tryon, result, name)


def claim(name: str, variants: list[Variant]) -> str:
    """What a comparison shows, in words that its numbers carry. variants: without the baseline."""
    about = COMPARISONS[name].about
    if name == WARPS:
        if len(variants) == len(COMPARISONS[WARPS].variants):
            return about
        return f"{about} These networks have no flow warper, so the flow is missing here."
    differences = [(variant.against.colour, variant.label, variant.against) for variant in variants if variant.against]
    if not differences:
        return about
    _, label, difference = max(differences, key=lambda one: one[0])
    numbers = f"{label} against {variants[0].label}: ΔE {difference.colour:.1f} on average in the edited region"
    if not np.isnan(difference.misalignment):
        numbers += f" and {difference.misalignment:.1f} where the garment is misaligned"
    visible = (
        "which can be seen"
        if difference.visible
        else f"less than an eye sees ({insight.VISIBLE}): no effect on this pair"
    )
    return f"{about} Here: {numbers}, {visible}."


def several(
    services: Services, result: Any, files: list[str] | None, kind: str, model: str | None = None
) -> Iterator[Any]:
    """One person in several garments (kind "garments"), or several people in one garment ("people").

    files: at most MAX_SEVERAL pictures. Yields Progress, and for each file a row of the contact sheet with the picture
    (None after an error, whose sentence the row holds). The person's stages are not repeated for another garment.
    """
    if result is None or "garment" not in result.seconds:
        raise ValueError(NO_RECORD)
    if not files:
        raise ValueError(f"Add up to {MAX_SEVERAL} pictures of {kind} first.")
    if len(files) > MAX_SEVERAL:
        raise ValueError(f"At most {MAX_SEVERAL} pictures at a time; take some away.")
    for file in files:
        # The visitor's name of a file is text for the eye alone.
        name = Path(file).stem[:60]
        try:
            for report in services.stream_on_tryon(partial(_dress, result, file, kind), model):
                yield report if isinstance(report, Progress) else (_row(name, report), report.result)
        except (ValueError, OSError) as error:
            other = result.photo if kind == "garments" else result.garment_photo
            cells = [contact_sheet.thumbnail(Path(file), CELL), contact_sheet.fit_into(other, CELL)]
            pair = tuple(cells[::-1] if kind == "garments" else cells)
            yield contact_sheet.Row(name, pair, "", " ".join(str(error).split())), None


def _dress(result: Any, file: str, kind: str, tryon: Any, on_stage: Any) -> Any:
    if kind == "garments":
        return tryon.change_garment(result, file, on_stage)
    return tryon.run(file, result.garment_photo, result.options, on_stage=on_stage, painted_mask=result.painted_mask)


def _row(name: str, result: Any) -> contact_sheet.Row:
    around = [photo.crop(picture, result.frame, result.options.size) for picture in (result.photo, result.result)]
    pictures = (around[0], result.garment_photo, result.baseline, around[1])
    cells = tuple(contact_sheet.fit_into(picture, CELL) for picture in pictures)
    return contact_sheet.Row(name, cells, f"{percent(result.misaligned_share, 1)} open")


def upto(stop: bool) -> str:
    """The last stage of a run that stops before the slow synthesis, or of a whole one."""
    return STAGES[STAGES.index("synthesis") - 1] if stop else STAGES[-1]


def next_stage(result: Any) -> str:
    """The first stage that has not run yet. Raises ValueError when there is nothing left."""
    if result is None:
        raise ValueError(NO_RECORD)
    missing = [stage for stage in STAGES if stage not in result.seconds]
    if not missing:
        raise ValueError("Every stage has run; change something first.")
    return missing[0]


def licence(model: str | None) -> str:
    """What the weights may be used for, in one line."""
    return (
        "CC BY-NC 4.0: research and teaching, not for commercial use"
        if (model or "").startswith("released:")
        else "learned from photographs for research and teaching; not for commercial use"
    )


def example_pairs() -> list[list[str]]:
    """Shipped examples as [person, garment] paths: the n-th person with the n-th garment."""
    people, garments = (
        sorted(map(str, assets.examples_dir().glob(f"{kind}*.[pj][np]g"))) for kind in ("person", "garment")
    )
    return [[person, garments[i % len(garments)]] for i, person in enumerate(people)]


def available_maps(result: Any) -> list[str]:
    """Names of the maps that a record holds, in the order of Fig. 3."""
    return [
        name for name in MAPS if MAPS[name].stage in result.seconds and getattr(result, PICTURES[name][0]) is not None
    ]


def thumbnails(files: list[str]) -> str:
    """HTML of small pictures with the names of their files; a file that is no picture is named alone."""
    cells = []
    for file in files[: 2 * MAX_SEVERAL]:
        name = escape(Path(file).stem[:60])
        try:
            address = example.data_url(photo.load_image(file, longest=512), (144, 192))
            cells.append(f'<figure><img src="{address}" alt="{name}"><figcaption>{name}</figcaption></figure>')
        except (ValueError, OSError):
            cells.append(f"<figure><figcaption>{name}: not a picture that can be read</figcaption></figure>")
    return f'<div class="several-chosen">{"".join(cells)}</div>' if cells else ""
