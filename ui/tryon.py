"""The Try on tab: two photographs in, the person in that garment out; every map in between to see, correct and go on from."""

from __future__ import annotations

import tempfile
from functools import partial
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import gradio as gr
import numpy as np

from ui import figures, messages, theme, tryon_figures
from ui import tryon_work as work
from ui.services import Progress, Services
from vton import record
from vton.maps import MAPS
from vton.pipeline import GRIDS, STAGES

DEFAULT_SIZE = "512x384"
STATE_SECONDS = 3600
MOST_UNDO = 6
SHOW_RESULTS = """() => {
  const results = document.querySelector('#tryon-results');
  if (results) results.scrollIntoView({ behavior: 'smooth', block: 'start' });
}"""
AFTER_A_WHILE = """async (...given) => {
  await new Promise((done) => setTimeout(done, 2000));
  return given;
}"""
# Only when the correction went through: a sentence that asks for a change stays where the visitor is.
SHOW_CORRECTED = """() => {
  const results = document.querySelector('#tryon-results');
  if (results && !document.querySelector('#tryon-progress [role=alert]')) results.scrollIntoView({ behavior: 'smooth', block: 'start' });
}"""
NORMS = [("ALIAS (the paper's)", "alias"), ("Instance (VITON-HD*)", "instance")]
SLEEVE_LABELS = [
    ("By the garment", "auto"),
    ("By the network", "predicted"),
    ("None", "none"),
    ("To the elbow", "short"),
    ("To the wrist", "long"),
]
NECKLINE_LABELS = [("Bare throat", "auto"), ("By the network", "predicted")]
HEM_LABELS = [("Even", "auto"), ("By the network", "predicted")]
VIEWS = ("steps", "look", "correct", "warp", "compare", "several")
example_pairs = work.example_pairs


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


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(services: Services) -> SimpleNamespace:
    """Build the tab inside the current Blocks and return its components by name."""
    tab = SimpleNamespace()
    tab.result = gr.State(None, time_to_live=STATE_SECONDS)
    tab.history = gr.State([], time_to_live=STATE_SECONDS)  # earlier results of this visitor, for undo
    tab.key = gr.State(None)  # the networks that made the result
    tab.stopping = gr.State(False)  # Cancel was pressed, and nothing begun since
    tab.view = gr.State("steps")
    with gr.Row(elem_classes="tryon-top"):
        with gr.Column(scale=5, min_width=300):
            _inputs(tab, services)
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
        _result(tab)
        tab.view_note = gr.HTML(elem_id="view-note")
        with gr.Tabs(elem_id="tryon-views", selected="steps") as tab.views:
            tab.tabs = {}
            builders = {
                "steps": ("Every step", _steps),
                "look": ("Look closer", _look),
                "correct": ("Correct a map", _correct),
                "warp": ("Move the warp", _warp),
                "compare": ("Compare", _compare),
                "several": ("Several at once", _several),
            }
            for name in VIEWS:
                title, build = builders[name]
                with gr.Tab(title, id=name, elem_id=f"view-{name}") as tab.tabs[name]:
                    build(tab)
        tab.progress = gr.HTML(elem_id="tryon-progress")
    _api(tab)
    return tab


def _inputs(tab: SimpleNamespace, services: Services) -> None:
    with gr.Row():
        with gr.Column(min_width=150):
            tab.person = photograph(
                label="Person",
                height=340,
                sources=["upload", "webcam", "clipboard"],
                elem_id="person",
                alt_text="Photo of the person",
                placeholder="One person from the front,\nhead to hips in view",
            )
            tab.person_check = gr.HTML(elem_id="person-check", elem_classes="check")
        with gr.Column(min_width=150):
            tab.garment = photograph(
                label="Garment",
                height=340,
                sources=["upload", "webcam", "clipboard"],
                elem_id="garment",
                alt_text="Photo of the garment",
                placeholder="One upper garment,\nlaid flat on a plain ground",
            )
            tab.garment_check = gr.HTML(elem_id="garment-check", elem_classes="check")
    with gr.Row(elem_classes="tryon-settings"):
        tab.size = gr.Dropdown(work.SIZE_LABELS, value=DEFAULT_SIZE, label="Size", min_width=150, elem_id="size")
        tab.seed = gr.Number(0, label="Seed", precision=0, min_width=90, elem_id="seed")
        tab.fit = gr.Checkbox(
            True,
            label="Fit the warp",
            min_width=230,
            elem_id="fit",
            info="A few gradient steps on the control points; off shows the published behaviour.",
        )
    with gr.Accordion("More settings", open=False, elem_id="tryon-more"):
        models = services.tryons()
        with gr.Row():
            tab.model = gr.Dropdown(models, value=models[0][1], label="Networks", elem_id="tryon-model", min_width=150, scale=2,
                                    allow_custom_value=services.local)
            devices = services.devices()
            tab.device = gr.Dropdown(devices, value=devices[0][1], label="Device", elem_id="tryon-device", min_width=110)
        with gr.Row():
            tab.norm = gr.Dropdown(NORMS, value="alias", label="Normalisation", min_width=150, elem_id="norm")
            tab.grid = gr.Dropdown(
                [(f"{n} × {n}", n) for n in GRIDS], value=GRIDS[0], label="Control points", min_width=110, elem_id="grid"
            )
        with gr.Row():
            tab.sleeves = gr.Dropdown(SLEEVE_LABELS, value="auto", label="Sleeves of the garment", min_width=150, elem_id="sleeves")
            tab.neckline = gr.Dropdown(NECKLINE_LABELS, value="auto", label="Neckline", min_width=150, elem_id="neckline")
            tab.hem = gr.Dropdown(HEM_LABELS, value="auto", label="Hem", min_width=150, elem_id="hem")
        with gr.Row():
            tab.noise = gr.Checkbox(True, label="Noise", min_width=90, elem_id="noise")
            tab.mirror = gr.Checkbox(True, label="Segment the mirror image too", min_width=190, elem_id="mirror")
            tab.detail = gr.Checkbox(True, label="Colours and detail from the photos", min_width=190, elem_id="detail")
        tab.stop = gr.Checkbox(
            False,
            label="Maps first",
            info="Stop before the slow synthesis, look at the maps, correct them, go on.",
            elem_id="maps-first",
        )
        tab.saved = gr.File(
            label="Open a saved try-on (its zip, or settings.json)", file_types=[".zip", ".json"], height=110, elem_id="saved"
        )
    with gr.Row():
        tab.run = gr.Button("Try it on", variant="primary", elem_id="tryon-button", min_width=140, scale=2)
        tab.cancel = gr.Button("Cancel", visible=False, elem_id="cancel-button", min_width=100, scale=1)


def _result(tab: SimpleNamespace) -> None:
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
            tab.go_on = gr.Button("Paint the result", variant="primary", visible=False, elem_id="tryon-go-on")
            tab.notes = gr.HTML(elem_id="tryon-notes")
            with gr.Row():
                tab.picture = gr.DownloadButton("Result (PNG)", elem_id="download-result", min_width=130, size="md")
                tab.download = gr.DownloadButton("Everything (zip)", elem_id="download-zip", min_width=130, size="md")
            with gr.Row():
                tab.undo = gr.Button("Undo the correction", visible=False, elem_id="tryon-undo", min_width=130, size="sm")
                tab.reset = gr.Button("Back to the first result", visible=False, elem_id="tryon-reset", min_width=130, size="sm")
            tab.quality = gr.HTML(elem_id="quality")
            gr.Markdown(
                "The zip holds every picture as PNG, all arrays as npz and the settings as JSON. Opened again under "
                "*More settings*, it brings everything back.",
                elem_classes="hint",
            )


def _steps(tab: SimpleNamespace) -> None:
    gr.Markdown(
        "In the order of Figure 3 of the paper. Each picture can be enlarged and downloaded; PNG keeps every label exact.",
        elem_classes="hint",
    )
    tab.maps, tab.captions, tab.legends = {}, {}, {}
    with gr.Row(elem_classes="maps"):
        for number, (name, shown) in enumerate(MAPS.items(), start=1):
            with gr.Column(min_width=150, elem_classes="map card"):
                gr.HTML(
                    f'<div class="map-title"><span class="map-number">{number}</span> {escape(shown.title)} '
                    f'<span class="symbol">{tryon_figures.symbol(shown.symbol)}</span></div>'
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
                tab.captions[name] = gr.HTML(elem_id=f"facts-{name}")
                if name in tryon_figures.LEGENDS:
                    tab.legends[name] = gr.HTML(elem_id=f"legend-{name}")


def _canvas(name: str) -> gr.HTML:
    return gr.HTML(
        None,
        html_template='<div class="label-canvas"></div>',
        js_on_load=theme.script("label_canvas.js"),
        elem_id=name,
        elem_classes="card",
    )


def _look(tab: SimpleNamespace) -> None:
    gr.Markdown("Any map over the photo. Point at a place or at a name, and that class lights up.", elem_classes="hint")
    tab.look = gr.Dropdown(
        [(shown.title, name) for name, shown in MAPS.items() if name != "result"],
        value="segmentation",
        label="Map",
        elem_id="look-map",
    )
    tab.look_view = _canvas("look-view")


def _correct(tab: SimpleNamespace) -> None:
    gr.Markdown(
        "Choose a class, paint, and run on from there: only what comes after the map runs again.", elem_classes="hint"
    )
    tab.paint = gr.Radio(
        [(title, name) for name, (title, _, _) in tryon_figures.PAINTED.items()],
        value="segmentation",
        label="Map to correct",
        elem_id="paint-map",
    )
    tab.painter = _canvas("painter")
    with gr.Row(elem_classes="sleeves-row"):
        gr.Markdown("Sleeves by rule, in the predicted segmentation:", elem_classes="hint")
        tab.sleeve_buttons = {
            kind: gr.Button(title, size="sm", min_width=90, elem_id=f"sleeves-{kind}")
            for kind, title in (("none", "None"), ("short", "To the elbow"), ("long", "To the wrist"))
        }
    with gr.Accordion("Correct it in another program", open=False, elem_id="tryon-elsewhere"):
        gr.Markdown(
            "The file is a PNG whose pixels are the labels themselves. Keep its size, save it as PNG and without smoothing.",
            elem_classes="hint",
        )
        with gr.Row():
            tab.paint_out = gr.DownloadButton("Download the map", elem_id="paint-out", size="sm", min_width=140)
            tab.paint_in = gr.UploadButton(
                "Upload the corrected map", file_types=[".png"], elem_id="paint-in", size="sm", min_width=140
            )


def _warp(tab: SimpleNamespace) -> None:
    gr.Markdown(
        "The control points of the thin-plate spline. Drag them; what the garment leaves open stays orange.",
        elem_classes="hint",
    )
    tab.points = gr.HTML(
        None,
        html_template='<div class="warp-editor"></div>',
        js_on_load=theme.script("control_points.js"),
        elem_id="control-points",
        elem_classes="card",
    )


def _compare(tab: SimpleNamespace) -> None:
    gr.Markdown(
        "Runs this result again from one stage with one thing changed, and shows what the generator paints. "
        "The last picture is the baseline without a generator.",
        elem_classes="hint",
    )
    with gr.Row(elem_classes="actions"):
        tab.comparison = gr.Dropdown(
            [(comparison.title, name) for name, comparison in work.COMPARISONS.items()],
            value="norm",
            label="What to compare",
            min_width=220,
            scale=2,
            elem_id="tryon-comparison",
        )
        tab.compare = gr.Button("Compare", elem_id="tryon-compare-button", min_width=120, scale=1)
    tab.compare_note = gr.HTML(elem_id="tryon-compare-note")
    tab.compared = _gallery("Compared", "tryon-compared")


def _gallery(label: str, elem_id: str) -> gr.Gallery:
    """Pictures side by side, hidden until there are some."""
    return gr.Gallery(
        label=label,
        format="png",
        columns=3,
        height="auto",
        object_fit="contain",
        interactive=False,
        buttons=["download", "fullscreen"],
        elem_id=elem_id,
        visible=False,
    )


def _several(tab: SimpleNamespace) -> None:
    gr.Markdown(
        f"This person in other garments, or this garment on other people; up to {work.MAX_SEVERAL} pictures at a time.",
        elem_classes="hint",
    )
    tab.several_kind = gr.Radio(
        [("More garments for this person", "garments"), ("More people for this garment", "people")],
        value="garments",
        label="Pictures of",
        elem_id="several-kind",
    )
    tab.several_files = gr.File(
        label="Pictures", file_count="multiple", file_types=["image"], height=140, elem_id="several-files"
    )
    with gr.Row(elem_classes="actions"):
        tab.several = gr.Button("Dress them", elem_id="several-button", min_width=120, scale=1)
        tab.several_sheet = gr.DownloadButton("The grid (PNG)", visible=False, elem_id="several-sheet", min_width=120, scale=1)
    tab.several_note = gr.HTML(elem_id="several-note")
    tab.several_shown = _gallery("Results", "several-shown")


def _api(tab: SimpleNamespace) -> None:
    """What `/try_on` and `/try_on_stage` take and give; the page itself shows the same through the components above."""
    tab.api_files = gr.File(visible=False, file_count="multiple", label="Every map as PNG, and the zip")
    tab.api_record = gr.JSON(visible=False, label="Settings, seconds per stage, notes and quality")
    tab.api_saved = gr.File(visible=False, label="The zip of an earlier try-on, to go on from")
    tab.api_map = gr.Textbox("", visible=False, label="Name of the corrected map")
    tab.api_edited = gr.File(visible=False, label="The corrected map")
    tab.api_until = gr.Textbox(STAGES[-1], visible=False, label="Last stage to run")
    tab.api_run, tab.api_stage = gr.Button(visible=False), gr.Button(visible=False)


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services) -> None:
    """Wire the tab built by `layout`, and publish `/try_on` and `/try_on_stage`."""
    shown = [
        tab.slider,
        tab.summary,
        tab.go_on,
        tab.notes,
        tab.picture,
        tab.download,
        tab.undo,
        tab.reset,
        tab.quality,
        *tab.maps.values(),
        *tab.captions.values(),
        *tab.legends.values(),
    ]
    outputs = [tab.result, tab.history, tab.key, tab.stages, tab.status, tab.progress, tab.run, tab.cancel, tab.results, *shown]
    settings = [tab.size, tab.seed, tab.fit, tab.norm, tab.noise, tab.detail, tab.grid, tab.sleeves, tab.neckline, tab.hem,
                tab.mirror, tab.model, tab.device]
    inputs = [tab.person, tab.garment, *settings]
    buttons_idle = (gr.update(interactive=True), gr.update(visible=False))
    buttons_busy = (gr.update(interactive=False), gr.update(visible=True))
    skipped = [gr.skip() for _ in shown]
    at_rest = [tab.stages, tab.status, tab.progress, tab.run, tab.cancel, tab.compare, tab.several]

    def options_of(person, garment, size, seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror):
        checked = work.check_inputs(person, garment, size, seed)
        return {**checked, "fit": bool(fit), "norm": norm, "noise": bool(noise), "detail": bool(detail), "grid": int(grid or GRIDS[0]),
                "sleeves": sleeves or "auto", "neckline": neckline or "auto", "hem": hem or "auto", "mirror": bool(mirror)}

    def presented(result, history, model, folder):
        """Values of `shown` for a record; its files lie in `folder` until Gradio has copied them."""
        paths = work.write_pictures(result, folder)
        finished = result.result is not None
        _, networks = services.place_of(model)
        archive = work.write_zip(paths, result, networks, folder / "try-on.zip")
        again = tryon_figures.rerun(result)
        ready = work.shown_maps(result)
        return [
            gr.update(value=(paths["photo"], paths["result"]), visible=True) if finished else gr.update(visible=False),
            messages.status(work.summary(result)) + (messages.status(again) if again else ""),
            gr.update(visible=not finished and "misalignment" in result.seconds),
            messages.notes(list(result.notes)),
            gr.update(value=paths.get("result"), visible=finished),
            archive,
            gr.update(visible=bool(history)),
            gr.update(visible=len(history) > 1),
            tryon_figures.quality(result, services.tryon(model).device.type, work.licence(networks)) if result.keypoints is not None else "",
            *[paths.get(name) for name in MAPS],
            *[tryon_figures.caption(result, name) if name in ready else "" for name in MAPS],
            *[tryon_figures.legend(result, name) if name in ready else "" for name in tab.legends],
        ]

    def streamed(call: Callable, before: Any, history: list, model: str | None, undoable: bool = True) -> Iterator[tuple]:
        """Run `call(tryon, on_stage)` and keep the page up to date.

        before: the record that is corrected, None for a new run; undoable: it joins the history.
        """
        current, seconds = None, dict(before.seconds) if before is not None else {}
        if undoable:
            history = [] if before is None else [*history, before][-MOST_UNDO:]

        def said(html):
            """The line at the top, and for a correction the one that stays in view below."""
            return html, html if before is not None else ""

        try:
            start = gr.skip() if before is not None else None
            yield (
                start,
                gr.skip(),
                gr.skip(),
                figures.stage_list(STAGES, None, {}),
                *said(messages.status("Starting …")),
                *buttons_busy,
                gr.skip() if before is not None else gr.update(visible=False),
                *skipped,
            )
            for report in services.stream_on_tryon(call, model):
                if not isinstance(report, Progress):
                    result = report
                    break
                current = report.stage
                kept = {stage: seconds[stage] for stage in STAGES[: max(current, 0)] if stage in seconds}
                running = {**kept, **report.seconds}
                waiting = current < 0
                yield (
                    *[gr.skip()] * 3,
                    figures.stage_list(STAGES, None if waiting else current, running),
                    *said(messages.status("Getting the networks ready …" if waiting else f"Working on: {STAGES[current]}")),
                    *buttons_busy,
                    gr.skip(),
                    *skipped,
                )
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                # Gradio has copied the files into its own cache when this generator is asked for more.
                yield (
                    result,
                    history,
                    model,
                    figures.stage_list(STAGES, None, result.seconds),
                    *said(""),
                    *buttons_idle,
                    gr.update(visible=True),
                    *presented(result, history, model, Path(folder)),
                )
        except Exception as error:  # every error becomes a sentence; what was entered stays
            partial_record = getattr(error, "record", None) if before is None else None
            alert = messages.alert(messages.sentence(error))
            failed = figures.stage_list(STAGES, current, seconds, "failed")
            if tryon_figures.can_be_painted(partial_record):
                help_ = messages.status("Or paint the map yourself: choose “Correct a map” below.")
                with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                    yield (
                        partial_record, [], model, failed, *said(alert + help_), *buttons_idle, gr.update(visible=True),
                        *presented(partial_record, [], model, Path(folder)),
                    )
            else:
                visible = gr.skip() if before is not None else gr.update(visible=False)
                yield (*[gr.skip()] * 3, failed, *said(alert), *buttons_idle, visible, *skipped)

    def refused(error: BaseException) -> tuple:
        alert = messages.alert(messages.sentence(error))
        return (*[gr.skip()] * 4, alert, alert, *buttons_idle, gr.skip(), *skipped)

    def try_on_page(person, garment, size, seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror, model, device, stop):
        try:
            options = options_of(person, garment, size, seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror)
        except ValueError as error:
            yield refused(error)
            return
        yield from streamed(
            lambda tryon, on_stage: tryon.run(person, garment, on_stage=on_stage, until=work.upto(stop), **options), None, [],
            services.placed(model, device),
        )

    def corrected(result, history, model, stop, name, value):
        """Go on from a corrected map; a failure leaves the page as it was."""
        yield from streamed(
            lambda tryon, on_stage: tryon.correct(result, name, value, on_stage, work.upto(stop)), result, history, model
        )

    def correct_page(result, history, model, stop, event: gr.EventData):
        try:
            if result is None:
                raise ValueError(work.GONE)
            value = tryon_figures.painted(event.name, event.labels, event.width, event.height)
        except ValueError as error:
            yield refused(error)
            return
        yield from corrected(result, history, model, stop, tryon_figures.PAINTED[event.name][1], value)

    def upload_page(result, history, model, stop, name, file):
        try:
            if result is None:
                raise ValueError(work.GONE)
            value = record.read_map(result, tryon_figures.PAINTED[name][1], file)
        except ValueError as error:
            yield refused(error)
            return
        yield from corrected(result, history, model, stop, tryon_figures.PAINTED[name][1], value)

    def sleeves_page(result, history, model, stop, kind):
        try:
            value = work.sleeves(result, kind)
        except ValueError as error:
            yield refused(error)
            return
        yield from corrected(result, history, model, stop, "segmentation", value)

    def warp_page(result, history, model, stop, event: gr.EventData):
        try:
            if result is None:
                raise ValueError(work.GONE)
            points = np.array(event.points, np.float32)
        except (ValueError, TypeError):
            yield refused(ValueError("The control points did not arrive whole; drag them again."))
            return
        yield from corrected(result, history, model, stop, "control_points", points)

    def move_page(result, model, event: gr.EventData):
        """What the warp looks like with the points of now; nothing is kept."""
        try:
            if result is None:
                raise ValueError(work.GONE)
            points = np.array(event.points, np.float32)
            with services.tryon_in_use:
                moved = services.tryon(model).correct(result, "control_points", points, until="misalignment")
            return tryon_figures.control_points(moved, result.control_points, fresh=False), ""
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))

    def go_on_page(result, history, model):
        try:
            stage = work.next_stage(result)
        except ValueError as error:
            yield refused(error)
            return
        yield from streamed(lambda tryon, on_stage: tryon.resume(result, stage, on_stage), result, history, model, False)

    def back_page(history, model, steps):
        if not history:
            yield refused(ValueError(work.GONE))
            return
        history = history[:1] if steps == "all" else history
        *rest, result = history
        stages = figures.stage_list(STAGES, None, result.seconds)
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            values = presented(result, rest, model, Path(folder))
            yield (result, rest, model, stages, "", "", *buttons_idle, gr.update(visible=True), *values)

    def open_page(file):
        unchanged = [gr.skip() for _ in inputs]
        try:
            known = record.read_settings(file)
            o, model = known["options"], str(known.get("model") or "")
            offered = {key for _, key in services.tryons()}
            chosen = [f"{o.size[0]}x{o.size[1]}", o.seed, o.fit, o.norm, o.noise, o.detail, o.grid, o.sleeves, o.neckline, o.hem, o.mirror,
                      model if model in offered else gr.skip(), gr.skip()]
            remark = "" if model in offered else f"Its networks ({known['weights'] or 'unknown'}) are not on this page. "
            if str(file).endswith(".json"):
                yield (gr.skip(), gr.skip(), *chosen, *[gr.skip()] * 4, messages.status(
                    remark + "The settings are back; add the same two photos and run."), "", *buttons_idle, gr.skip(), *skipped)
                return
            result = record.load(file)
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                values = presented(result, [], model if model in offered else None, Path(folder))
                yield (
                    str(Path(folder) / "photo.png"), str(Path(folder) / "garment_photo.png"), *chosen, result, [],
                    model if model in offered else None, figures.stage_list(STAGES, None, result.seconds),
                    messages.status(remark + "The saved try-on is back, with its photos, maps and settings."), "", *buttons_idle,
                    gr.update(visible=True), *values,
                )
        except Exception as error:
            yield (*unchanged, *refused(error))

    def refresh(result, view, look, paint):
        """Values of the open view alone: the others are made when they are opened."""
        looked, painting, painted_file, points, note = gr.skip(), gr.skip(), gr.skip(), gr.skip(), ""
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            try:
                if view == "look":
                    ready = result is not None and look in result.pictures()
                    looked = tryon_figures.looked_at(result, look) if ready else None
                elif view == "correct":
                    ready = paint in tryon_figures.can_be_painted(result)
                    painting = tryon_figures.painting(result, paint) if ready else None
                    painted_file = gr.update(interactive=False)
                    if ready:
                        path = Path(folder) / f"{paint}.png"
                        path.write_bytes(tryon_figures.paint_file(result, paint))
                        painted_file = gr.update(value=str(path), interactive=True)
                elif view == "warp":
                    ready = result is not None and result.misalignment is not None
                    points = tryon_figures.control_points(result) if ready else None
                else:
                    ready = True
                if not ready:
                    note = messages.status("This map has not been made yet.")
            except Exception as error:
                note = messages.alert(messages.sentence(error))
            yield looked, painting, painted_file, points, note

    def open_view(result, look, paint, view):
        for values in refresh(result, view, look, paint):
            yield (view, *values)

    def check_person(path):
        if not path:
            return ""
        try:
            notes = work.look_at_person(path)
            return messages.notes(notes) if notes else messages.status("✓ One person from the front.")
        except Exception as error:
            return messages.alert(messages.sentence(error))

    def check_garment(path):
        if not path:
            return ""
        try:
            return messages.status(f"✓ {work.look_at_garment(path)}")
        except Exception as error:
            return messages.alert(messages.sentence(error))

    def stop_page():
        return messages.status("Cancelling …"), True

    def stopped_page(stopping, result):
        """The page at rest, where the visitor has asked for it: `tab.stopping`."""
        if not stopping:
            return [gr.skip() for _ in at_rest]
        return [
            figures.stage_list(STAGES, None, result.seconds if result is not None else {}),
            messages.status("Cancelled. Your photos are still here; change what you like and try again."),
            "",
            *buttons_idle,
            gr.update(interactive=True),
            gr.update(interactive=True),
        ]

    def compare_page(result, name, model):
        about = messages.status(work.COMPARISONS[name].about)
        shown_ = []
        try:
            yield messages.status("Working …"), gr.update(visible=False, value=None), gr.update(interactive=False)
            for picture in work.compare(services, result, name, model):
                shown_.append(picture)
                yield about, gr.update(value=list(shown_), visible=True), gr.update(interactive=False)
            yield about, gr.skip(), gr.update(interactive=True)
        except Exception as error:
            yield messages.alert(messages.sentence(error)), gr.skip(), gr.update(interactive=True)

    def several_page(result, kind, files, model):
        rows, pictures, remarks = [], [], []
        try:
            off = gr.update(visible=False)
            yield messages.status("Working …"), gr.update(visible=False, value=None), off, gr.update(interactive=False)
            for row, picture in work.several(services, result, files, kind, model):
                rows.append(row)
                if picture is not None:
                    pictures.append((picture, f"{row.name}: {row.line}"))
                else:
                    remarks.append(f"{row.name}: {row.error}")
                yield messages.notes(remarks), gr.update(value=list(pictures), visible=bool(pictures)), gr.skip(), gr.skip()
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                path = Path(folder) / "grid.png"
                path.write_bytes(record.png(work.sheet(rows)))
                yield messages.notes(remarks), gr.skip(), gr.update(value=str(path), visible=True), gr.update(interactive=True)
        except Exception as error:
            yield messages.alert(messages.sentence(error)), gr.skip(), gr.skip(), gr.update(interactive=True)

    def handed_over(result, model):
        """Files and settings of a record, as the API gives them."""
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            paths = work.write_pictures(result, Path(folder))
            archive = work.write_zip(paths, result, model, Path(folder) / "try-on.zip")
            yield [*(paths[name] for name in work.shown_maps(result)), archive], record.settings(result)

    def try_on(person, garment, size, seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror, model, device):
        """Put a garment on a person.

        Args:
            person: photo of one person from the front
            garment: photo of one upper garment
            size: 256x192, 512x384 or 1024x768
            seed: seed of the noise, a whole number
            fit: fit the warp's control points to the predicted cloth region
            norm: alias, or instance for VITON-HD*
            noise: give both generators their noise
            detail: bring colours and fine detail, background and skin tone from the photos into the final picture
            grid: control points along a side of the spline, 5 or 10
            sleeves: auto, predicted (by the network alone), none, short or long
            neckline: auto (bare throat, but for high collars), or predicted (by the network alone)
            hem: auto (even, no gap above the trousers), or predicted (by the network alone)
            mirror: segment the picture and its mirror image, and take the mean
            model: key of the networks
            device: cpu, or cuda or mps where the page has them

        Returns:
            every map as a PNG file named by its stage and one zip with arrays, and the settings with time per stage
        """
        try:
            options = options_of(person, garment, size, seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror)
            *_, result = services.stream_tryon(person, garment, services.placed(model, device), **options)
            yield from handed_over(result, model)
        except Exception as error:
            raise gr.Error(escape(messages.sentence(error)), print_exception=False) from error

    def try_on_stage(person, garment, saved, name, edited, until, size, seed, fit, norm, noise, detail, grid, sleeves, neckline,
                     hem, mirror, model, device):
        """Run a try-on up to a stage, or go on from a saved one, with a corrected map if there is one.

        Args:
            person: photo of one person; leave out when `saved` is given
            garment: photo of one upper garment; leave out when `saved` is given
            saved: the zip that /try_on or /try_on_stage gave before
            name: the corrected map: parse, parse_agnostic, segmentation, painted_mask, control_points or misalignment
            edited: its file, a PNG of labels or a mask, or JSON for control points
            until: last stage to run: photo, pose, parse, garment, agnostic, segmentation, warp, misalignment, synthesis, composite
            size: 256x192, 512x384 or 1024x768; this and what follows is for a new run
            seed: seed of the noise, a whole number
            fit: fit the warp's control points to the predicted cloth region
            norm: alias, or instance for VITON-HD*
            noise: give both generators their noise
            detail: bring colours and fine detail, background and skin tone from the photos into the final picture
            grid: control points along a side of the spline, 5 or 10
            sleeves: auto, predicted (by the network alone), none, short or long
            neckline: auto (bare throat, but for high collars), or predicted (by the network alone)
            hem: auto (even, no gap above the trousers), or predicted (by the network alone)
            mirror: segment the picture and its mirror image, and take the mean
            model: key of the networks
            device: cpu, or cuda or mps where the page has them

        Returns:
            every map so far as a PNG file and one zip with arrays, and the settings with time per stage
        """
        try:
            until, key = until or STAGES[-1], services.placed(model, device)
            if saved:
                before = record.load(saved)
                if name:
                    if not edited:
                        raise ValueError("Add the file of the corrected map.")
                    value = record.read_map(before, name, edited)
                    *_, result = services.stream_on_tryon(lambda t, on_stage: t.correct(before, name, value, on_stage, until), key)
                else:
                    stage = work.next_stage(before)
                    *_, result = services.stream_on_tryon(lambda t, on_stage: t.resume(before, stage, on_stage, until), key)
            else:
                options = options_of(person, garment, size, seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror)
                *_, result = services.stream_tryon(person, garment, key, until=until, **options)
            yield from handed_over(result, model)
        except Exception as error:
            raise gr.Error(escape(messages.sentence(error)), print_exception=False) from error

    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    views = [tab.look_view, tab.painter, tab.paint_out, tab.points, tab.view_note]
    at_device = {**quiet, "concurrency_id": "device"}

    def wired(trigger, handler, inputs_, name, outputs_=outputs):
        """A long event: the wait is said at once and outside the queue, where another visitor's run may come first."""
        asked = trigger(
            lambda: (messages.status("Waiting for a free place …"), *buttons_busy, False),
            None,
            [tab.status, tab.run, tab.cancel, tab.stopping],
            api_name=f"ask_{name}",
            queue=False,
            **quiet,
        )
        # A cancelled event may stay pending in the browser, which would swallow the next one; the buttons keep two apart.
        return asked.then(handler, inputs_, outputs_, api_name=name, trigger_mode="multiple", **at_device)

    def refreshed(event, name):
        event.then(refresh, [tab.result, tab.view, tab.look, tab.paint], views, api_name=f"refresh_{name}", **quiet)

    run = wired(tab.run.click, try_on_page, [*inputs, tab.stop], "try_on_page")
    run.then(None, js=SHOW_RESULTS, api_visibility="private", api_name="show_results")
    refreshed(run, "run")
    going_on = wired(tab.go_on.click, go_on_page, [tab.result, tab.history, tab.key], "go_on")
    refreshed(going_on, "go_on")
    # Events of the canvases carry their own data, which `wired` would lose on the way through its first step.
    common = [tab.result, tab.history, tab.key, tab.stop]
    corrections = {}
    for name, trigger, handler, given in (
        ("correct", tab.painter.apply, correct_page, common),
        ("upload_map", tab.paint_in.upload, upload_page, [*common, tab.paint, tab.paint_in]),
        ("move_warp", tab.points.apply, warp_page, common),
        *[(f"sleeves_{kind}", button.click, partial(sleeves_page, kind=kind), common) for kind, button in tab.sleeve_buttons.items()],
    ):
        trigger(lambda: False, None, tab.stopping, api_name=f"begin_{name}", queue=False, trigger_mode="multiple", **quiet)
        event = trigger(handler, given, outputs, api_name=name, trigger_mode="multiple", **at_device)
        event.success(None, js=SHOW_CORRECTED, api_visibility="private", api_name=f"show_{name}")
        refreshed(event, name)
        corrections[name] = event
    tab.points.move(
        move_page, [tab.result, tab.key], [tab.points, tab.view_note], api_name="try_warp", trigger_mode="always_last", **at_device
    )
    for button, steps in ((tab.undo, "one"), (tab.reset, "all")):
        event = button.click(partial(back_page, steps=steps), [tab.history, tab.key], outputs, api_name=f"back_{steps}", **quiet)
        refreshed(event, f"back_{steps}")
    opened = tab.saved.upload(open_page, tab.saved, [*inputs, *outputs], api_name="open_saved", **quiet)
    refreshed(opened, "open")

    for name, item in tab.tabs.items():
        item.select(
            partial(open_view, view=name), [tab.result, tab.look, tab.paint], [tab.view, *views], api_name=f"open_{name}", **quiet
        )
    for choice, name in ((tab.look, "look"), (tab.paint, "paint")):
        choice.change(
            refresh, [tab.result, tab.view, tab.look, tab.paint], views, api_name=f"choose_{name}", trigger_mode="always_last", **quiet
        )
    # Runs make checkpoints while the page is open.
    tab.model.focus(lambda: gr.update(choices=services.tryons()), None, tab.model, api_name="tryon_models", queue=False, **quiet)
    tab.person.change(check_person, tab.person, tab.person_check, api_name="check_person", trigger_mode="always_last", **quiet)
    tab.garment.change(check_garment, tab.garment, tab.garment_check, api_name="check_garment", trigger_mode="always_last", **quiet)

    comparing = tab.compare.click(
        compare_page,
        [tab.result, tab.comparison, tab.key],
        [tab.compare_note, tab.compared, tab.compare],
        api_name="compare",
        trigger_mode="multiple",
        **at_device,
    )
    dressing = tab.several.click(
        several_page,
        [tab.result, tab.several_kind, tab.several_files, tab.key],
        [tab.several_note, tab.several_shown, tab.several_sheet, tab.several],
        api_name="several",
        trigger_mode="multiple",
        **at_device,
    )
    # The server may send the cancelled run's progress until it has stopped it. The page therefore comes to rest when the
    # browser calls the run ended, which it does after the last of these; and a while later in any case, should the run have
    # ended by itself as Cancel was pressed.
    unqueued = {"queue": False, **quiet}
    cancellable = {"run": run, "go_on": going_on, **corrections, "compare": comparing, "several": dressing}
    for name, event in cancellable.items():
        event.then(stopped_page, [tab.stopping, tab.result], at_rest, api_name=f"rest_after_{name}", **unqueued)
    stopping = tab.cancel.click(
        stop_page, None, [tab.status, tab.stopping], cancels=list(cancellable.values()), api_name="cancel_try_on", **unqueued
    )
    stopping.then(stopped_page, [tab.stopping, tab.result], at_rest, js=AFTER_A_WHILE, api_name="rest_at_last", **unqueued)
    tab.api_run.click(try_on, inputs, [tab.api_files, tab.api_record], api_name="try_on", concurrency_id="device")
    tab.api_stage.click(
        try_on_stage,
        [tab.person, tab.garment, tab.api_saved, tab.api_map, tab.api_edited, tab.api_until, *settings],
        [tab.api_files, tab.api_record],
        api_name="try_on_stage",
        concurrency_id="device",
    )
