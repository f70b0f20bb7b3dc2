"""The Try on tab: two photographs in, the person in that garment out, and every map in between."""

from __future__ import annotations

import dataclasses
import io
import json
import tempfile
import zipfile
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, NamedTuple

import gradio as gr
import numpy as np
from PIL import Image

from training import assets
from ui import figures, messages
from ui.services import Progress, Services
from vton import labels
from vton.pipeline import SIZES, STAGES

SIZE_LABELS = [
    (f"{height} × {width}{remark}", f"{height}x{width}")
    for (height, width), remark in zip(SIZES, (", quick", "", ", slow"), strict=True)
]
DEFAULT_SIZE = "512x384"
MAX_SEED = 2**31 - 1
STATE_SECONDS = 3600
SHOW_RESULTS = """() => {
  const results = document.querySelector('#tryon-results');
  if (results) results.scrollIntoView({ behavior: 'smooth', block: 'start' });
}"""


class Map(NamedTuple):
    """How one picture of a result is presented."""

    title: str
    symbol: str  # HTML, the paper's symbol
    about: str


# In the order of Figure 3 of the VITON-HD paper; the keys are those of TryOnResult.pictures() and the file names.
MAPS = {
    "pose": Map(
        "Pose", "P", "The joints found in the photo, drawn as a skeleton: where shoulders, elbows and hips are."
    ),
    "parse": Map("Parse", "S", "The human parser gives every pixel of the person one of 20 labels."),
    "garment": Map("Garment", "c", "The garment cut out of its photo and laid on the light grey of the training data."),
    "garment_mask": Map("Garment mask", "c<sub>m</sub>", "White where the garment is."),
    "agnostic": Map(
        "Agnostic image",
        "I<sub>a</sub>",
        "The person with the old garment and the arms painted grey, so that nothing of its shape is left to copy.",
    ),
    "agnostic_map": Map("Agnostic map", "S<sub>a</sub>", "The parse with the same regions removed."),
    "segmentation": Map(
        "Predicted segmentation",
        "Ŝ",
        "Where cloth, arms and body will be in the new garment, "
        "predicted from the agnostic map, the pose and the garment.",
    ),
    "warped_cloth": Map(
        "Warped garment", "W(c, θ)", "The garment bent into place by a thin-plate spline with 5 × 5 control points."
    ),
    "warped_mask": Map("Warped mask", "W(c<sub>m</sub>, θ)", "The garment mask after the same warp."),
    "misalignment": Map(
        "Misalignment",
        "M<sub>misalign</sub>",
        "Predicted cloth that the warped garment does not cover; here the generator has to invent cloth.",
    ),
    "synthesis": Map("Synthesis", "Î", "What the ALIAS generator paints from all of the above."),
    "result": Map(
        "Result",
        "",
        "The synthesis put back into the photograph; every pixel outside the edited region is the photo's own.",
    ),
}
# Label maps: field of the result that holds the labels, their names and colours.
LEGENDS = {
    "parse": ("parse", labels.LIP, labels.LIP_COLOURS),
    "agnostic_map": ("parse_agnostic", labels.LIP, labels.LIP_COLOURS),
    "segmentation": ("segmentation", labels.SEGMENTATION, labels.SEGMENTATION_COLOURS),
}


class Comparison(NamedTuple):
    """Variants of a finished result that differ in one option, and the first stage that they run again from."""

    title: str
    stage: str
    variants: tuple[tuple[str, dict[str, Any]], ...]
    about: str


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
    "noise": Comparison(
        "Noise on or off",
        "segmentation",
        (("With noise", {"noise": True}), ("Without noise", {"noise": False})),
        "Both generators of VITON-HD are given noise; this is how much of the picture it decides.",
    ),
    "seed": Comparison(
        "Five seeds",
        "segmentation",
        tuple((f"Seed {seed}", {"seed": seed}) for seed in range(5)),
        "The same two photos under five noises.",
    ),
}


def photograph(**options: Any) -> gr.Image:
    """An image component that hands over the visitor's untouched file.

    Decoding it is left to `vton.photo.load_image`, the one place that orients, bounds and refuses pictures with a
    sentence; Gradio's own decoding drops alpha and answers a broken file with a general error. Set on the object,
    because Gradio writes an interface file beside the source of every subclass of a component.
    """
    image = gr.Image(type="filepath", image_mode=None, format="png", **options)
    decode = image.preprocess
    image.preprocess = lambda payload: payload.path if payload is not None and payload.path else decode(payload)
    return image


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


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


def png(picture: np.ndarray) -> bytes:
    """PNG file of a (H, W) or (H, W, 3) uint8 picture, exact."""
    buffer = io.BytesIO()
    # Fast compression: a phone photo at full size would take seconds with the default.
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "PNG", compress_level=2)
    return buffer.getvalue()


def write_pictures(result: Any, folder: Path) -> dict[str, str]:
    """Write every picture of a result and the photo itself as NAME.png. Returns the path of each name."""
    paths = {}
    for name, picture in {"photo": result.photo, **result.pictures()}.items():
        paths[name] = str(folder / f"{name}.png")
        Path(paths[name]).write_bytes(png(picture))
    return paths


def arrays(result: Any) -> dict[str, np.ndarray]:
    """Every array field of a result by name."""
    values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def settings(result: Any) -> dict[str, Any]:
    """What one needs to repeat a result, and how long each stage took, as a JSON value."""
    return {
        "weights": result.weights,
        **dataclasses.asdict(result.options),
        "seconds": {stage: round(float(value), 4) for stage, value in result.seconds.items()},
        "notes": list(result.notes),
    }


def write_zip(paths: dict[str, str], result: Any, record: dict[str, Any], target: Path) -> str:
    """One zip with every PNG, all arrays (arrays.npz, no pickles) and the record as settings.json. Returns its path."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays(result))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:  # PNG and npz are compressed already
        for name, path in paths.items():
            archive.write(path, f"{name}.png")
        archive.writestr("arrays.npz", buffer.getvalue())
        archive.writestr("settings.json", json.dumps(record, indent=2) + "\n")
    return str(target)


def legends(result: Any) -> list[str]:
    """HTML legend of every label map, in the order of LEGENDS."""
    return [figures.legend(getattr(result, name), names, colours) for name, names, colours in LEGENDS.values()]


def summary(result: Any) -> str:
    """One line about a finished result, plain text."""
    height, width = result.options.size
    return (
        f"Done in {sum(result.seconds.values()):.1f} s at {height} × {width}, seed {result.options.seed}. "
        f"{100 * result.misaligned_share:.1f} % of the predicted cloth is not covered by the warped garment."
    )


def compare(services: Services, result: Any, name: str) -> Iterator[tuple[np.ndarray, str]]:
    """The syntheses of a comparison's variants with their labels, one by one; nothing before its stage is repeated."""
    if result is None:
        raise ValueError("The result has been cleared away; run the try-on again first.")
    comparison = COMPARISONS[name]
    for label, options in comparison.variants:
        if all(getattr(result.options, option) == value for option, value in options.items()):
            variant = result
        else:
            with services.tryon_in_use:
                variant = services.tryon().resume(result, comparison.stage, **options)
        picture = variant.synthesis
        if name in ("norm", "fit"):
            picture = figures.outline(picture, variant.misalignment)
        yield picture, f"{label}: {100 * variant.misaligned_share:.1f} % open" if name == "fit" else label


def example_pairs() -> list[list[str]]:
    """Shipped examples as [person, garment] paths: the n-th person with the n-th garment."""
    try:
        folder = assets.examples_dir()
    except FileNotFoundError:
        return []
    people = sorted(str(path) for path in folder.glob("person*.[pj][np]g"))
    garments = sorted(str(path) for path in folder.glob("garment*.[pj][np]g"))
    return [[person, garments[i % len(garments)]] for i, person in enumerate(people)] if garments else []


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(services: Services) -> SimpleNamespace:
    """Build the tab inside the current Blocks and return its components by name."""
    tab = SimpleNamespace()
    tab.result = gr.State(None, time_to_live=STATE_SECONDS)
    with gr.Row(elem_classes="tryon-top"):
        with gr.Column(scale=5, min_width=300):
            with gr.Row():
                tab.person = photograph(
                    label="Person",
                    height=340,
                    min_width=150,
                    sources=["upload", "webcam", "clipboard"],
                    elem_id="person",
                    alt_text="Photo of the person",
                    placeholder="One person from the front,\nhead to hips in view",
                )
                tab.garment = photograph(
                    label="Garment",
                    height=340,
                    min_width=150,
                    sources=["upload", "webcam", "clipboard"],
                    elem_id="garment",
                    alt_text="Photo of the garment",
                    placeholder="One upper garment,\nlaid flat on a plain ground",
                )
            with gr.Row(elem_classes="tryon-settings"):
                tab.size = gr.Dropdown(SIZE_LABELS, value=DEFAULT_SIZE, label="Size", min_width=150, elem_id="size")
                tab.seed = gr.Number(0, label="Seed", precision=0, min_width=90, elem_id="seed")
                tab.fit = gr.Checkbox(
                    True,
                    label="Fit the warp",
                    min_width=230,
                    elem_id="fit",
                    info="A few gradient steps on the control points; off shows the published behaviour.",
                )
            with gr.Row():
                tab.run = gr.Button("Try it on", variant="primary", elem_id="tryon-button", min_width=140, scale=2)
                tab.cancel = gr.Button("Cancel", visible=False, elem_id="cancel-button", min_width=100, scale=1)
        with gr.Column(scale=4, min_width=300):
            tab.stages = gr.HTML(figures.stage_list(STAGES, None, {}), elem_id="stages", elem_classes="card")
            tab.status = gr.HTML(elem_id="tryon-status")
    pairs = example_pairs()
    if pairs:
        gr.Examples(pairs, [tab.person, tab.garment], label="Examples", elem_id="tryon-examples")
    gr.Markdown(
        "Photos are used for your own request only and are deleted from this machine after an hour.",
        elem_classes="hint",
    )
    with gr.Column(visible=False, elem_id="tryon-results") as tab.results:
        with gr.Row(elem_classes="tryon-result"):
            tab.slider = gr.ImageSlider(
                label="Before and after",
                format="png",
                type="filepath",
                max_height=620,
                elem_id="before-after",
                interactive=False,
                scale=3,
                min_width=300,
            )
            with gr.Column(scale=2, min_width=280):
                tab.summary = gr.HTML(elem_id="tryon-summary")
                tab.notes = gr.HTML(elem_id="tryon-notes")
                tab.download = gr.DownloadButton("Download everything (zip)", elem_id="download-zip")
                gr.Markdown(
                    "The zip holds every picture as PNG, all arrays as npz and the settings as JSON.\n\n"
                    "The weights learned from photographs that allow research and teaching only; so does this picture.",
                    elem_classes="hint",
                )
        gr.Markdown(
            "## Every step on the way\nIn the order of Figure 3 of the paper. Each picture can be enlarged and "
            "downloaded; PNG keeps every label exact.",
            elem_classes="section",
        )
        tab.maps, tab.legends = {}, {}
        with gr.Row(elem_classes="maps"):
            for number, (name, shown) in enumerate(MAPS.items(), start=1):
                with gr.Column(min_width=150, elem_classes="map card"):
                    gr.HTML(
                        f'<div class="map-title"><span class="map-number">{number}</span> {escape(shown.title)} '
                        f'<span class="symbol">{shown.symbol}</span></div>'
                    )
                    tab.maps[name] = gr.Image(
                        label=shown.title,
                        show_label=False,
                        format="png",
                        type="filepath",
                        interactive=False,
                        buttons=["download", "fullscreen"],
                        alt_text=f"{shown.title}. {shown.about}",
                        elem_id=f"map-{name}",
                        container=False,
                    )
                    gr.HTML(f'<p class="map-about">{escape(shown.about)}</p>')
                    if name in LEGENDS:
                        tab.legends[name] = gr.HTML(elem_id=f"legend-{name}")
        with gr.Accordion("Compare", open=False, elem_id="compare"):
            gr.Markdown(
                "Runs this result again from one stage with one thing changed, and shows what the generator paints.",
                elem_classes="hint",
            )
            with gr.Row(elem_classes="actions"):
                tab.comparison = gr.Dropdown(
                    [(comparison.title, name) for name, comparison in COMPARISONS.items()],
                    value="norm",
                    label="What to compare",
                    min_width=220,
                    scale=2,
                    elem_id="comparison",
                )
                tab.compare = gr.Button("Compare", elem_id="compare-button", min_width=120, scale=1)
            tab.compare_note = gr.HTML(elem_id="compare-note")
            tab.compared = gr.Gallery(
                label="Compared",
                format="png",
                columns=5,
                height="auto",
                object_fit="contain",
                interactive=False,
                buttons=["download", "fullscreen"],
                elem_id="compared",
                visible=False,
            )
    # What the API's /try_on gives back; the page itself shows the same through the components above.
    tab.api_files = gr.File(visible=False, file_count="multiple", label="Every map as PNG, and the zip")
    tab.api_record = gr.JSON(visible=False, label="Settings, seconds per stage and notes")
    tab.api_run = gr.Button(visible=False)
    return tab


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services) -> None:
    """Wire the tab built by `layout`, and publish `/try_on`."""
    outputs = [
        tab.result,
        tab.stages,
        tab.status,
        tab.run,
        tab.cancel,
        tab.results,
        tab.slider,
        tab.summary,
        tab.notes,
        tab.download,
        *tab.maps.values(),
        *tab.legends.values(),
    ]
    inputs = [tab.person, tab.garment, tab.size, tab.seed, tab.fit]
    buttons_idle = (gr.update(interactive=True), gr.update(visible=False))
    buttons_busy = (gr.update(interactive=False), gr.update(visible=True))
    unchanged = [gr.skip() for _ in outputs[6:]]

    def try_on_page(person, garment, size, seed, fit):
        current, seconds = None, {}
        try:
            options = {**check_inputs(person, garment, size, seed), "fit": bool(fit)}
            yield (
                None,
                figures.stage_list(STAGES, None, {}),
                messages.status("Starting …"),
                *buttons_busy,
                gr.update(visible=False),
                *unchanged,
            )
            for report in services.stream_tryon(person, garment, **options):
                if not isinstance(report, Progress):
                    result = report
                    break
                current, seconds = report.stage, report.seconds
                waiting = current < 0
                yield (
                    None,
                    figures.stage_list(STAGES, None if waiting else current, seconds),
                    messages.status("Getting the networks ready …" if waiting else f"Working on: {STAGES[current]}"),
                    *buttons_busy,
                    gr.skip(),
                    *unchanged,
                )
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                paths = write_pictures(result, Path(folder))
                record = settings(result)
                archive = write_zip(paths, result, record, Path(folder) / "try-on.zip")
                # Gradio has copied the files into its own cache when this generator is asked for more.
                yield (
                    result,
                    figures.stage_list(STAGES, None, result.seconds),
                    "",
                    *buttons_idle,
                    gr.update(visible=True),
                    (paths["photo"], paths["result"]),
                    messages.status(summary(result)),
                    messages.notes(list(result.notes)),
                    archive,
                    *[paths[name] for name in MAPS],
                    *legends(result),
                )
        except Exception as error:  # every error becomes a sentence; what was entered stays
            yield (
                None,
                figures.stage_list(STAGES, current, seconds, "failed"),
                messages.alert(messages.sentence(error)),
                *buttons_idle,
                gr.update(visible=False),
                *unchanged,
            )

    def cancel_page():
        return (
            figures.stage_list(STAGES, None, {}),
            messages.status("Cancelled. Your photos are still here; change what you like and try again."),
            *buttons_idle,
        )

    def compare_page(result, name):
        about = messages.status(COMPARISONS[name].about)
        shown = []
        try:
            yield messages.status("Working …"), gr.update(visible=False, value=None), gr.update(interactive=False)
            for picture in compare(services, result, name):
                shown.append(picture)
                yield about, gr.update(value=list(shown), visible=True), gr.update(interactive=False)
            yield about, gr.skip(), gr.update(interactive=True)
        except Exception as error:
            yield messages.alert(messages.sentence(error)), gr.skip(), gr.update(interactive=True)

    def try_on(person, garment, size, seed, fit):
        """Put a garment on a person.

        Args:
            person: photo of one person from the front
            garment: photo of one upper garment
            size: 256x192, 512x384 or 1024x768
            seed: seed of the noise, a whole number
            fit: fit the warp's control points to the predicted cloth region

        Returns:
            every map as a PNG file named by its stage and one zip with arrays, and the settings with time per stage
        """
        try:
            options = {**check_inputs(person, garment, size, seed), "fit": bool(fit)}
            *_, result = services.stream_tryon(person, garment, **options)
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                paths = write_pictures(result, Path(folder))
                record = settings(result)
                archive = write_zip(paths, result, record, Path(folder) / "try-on.zip")
                yield [*(paths[name] for name in MAPS), archive], record
        except Exception as error:
            raise gr.Error(escape(messages.sentence(error)), print_exception=False) from error

    # Said at once and outside the queue, where another visitor's run may come first.
    asked = tab.run.click(
        lambda: (messages.status("Waiting for a free place …"), *buttons_busy),
        None,
        [tab.status, tab.run, tab.cancel],
        api_name="ask",
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    run = asked.then(
        try_on_page,
        inputs,
        outputs,
        api_name="try_on_page",
        concurrency_id="device",
        show_progress="hidden",
        api_visibility="private",
    )
    run.then(None, js=SHOW_RESULTS, api_visibility="private", api_name="show_results")
    tab.cancel.click(
        cancel_page,
        None,
        [tab.stages, tab.status, tab.run, tab.cancel],
        cancels=[run],
        api_name="cancel_try_on",
        queue=False,
        api_visibility="private",
    )
    tab.compare.click(
        compare_page,
        [tab.result, tab.comparison],
        [tab.compare_note, tab.compared, tab.compare],
        api_name="compare",
        concurrency_id="device",
        show_progress="hidden",
        api_visibility="private",
    )
    tab.api_run.click(
        try_on,
        inputs,
        [tab.api_files, tab.api_record],
        api_name="try_on",
        concurrency_id="device",
    )
