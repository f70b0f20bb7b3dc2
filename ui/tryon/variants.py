"""The views that run a result again: Compare with one thing changed, Several with other pictures."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from ui import colours, messages, theme
from ui.figures import percent
from ui.kit import QUICKLY, QUIETLY, alerts
from ui.services import Progress
from ui.tryon import example, work
from ui.tryon.bar import with_quiet_end
from ui.tryon.figures import data_url
from ui.tryon.inputs import ATTRIBUTES, strip
from ui.tryon.session import Session
from ui.tryon.view import View
from vton import contact_sheet, insight, record

FAR = 64  # a difference of so many grey levels takes the strongest colour of the map


def panel(variant: work.Variant) -> dict[str, Any]:
    """One picture of a comparison, with its difference map and its numbers, for `static/tryon/compare.js`."""
    value = {
        "label": variant.label,
        "url": data_url(variant.picture),
        "line": variant.line,
        "difference": "",
        "rows": [],
    }
    if variant.warp is not None:
        return {**value, "rows": warp_rows(variant.warp)}
    if variant.against is None:
        return {**value, "line": f"{variant.line} · the others are measured against this one".lstrip(" ·")}
    difference = variant.against
    map_picture = colours.paint(difference.map / FAR, colours.RAMPS["light"])
    rows = [
        ("ΔE in the edited region", f"{difference.colour:.2f}"),
        ("ΔE where misaligned", "none is" if np.isnan(difference.misalignment) else f"{difference.misalignment:.2f}"),
        ("Mean difference of 255", f"{difference.mean:.2f}"),
        ("Pixels that changed", percent(difference.change_share, 1)),
        ("SSIM", f"{difference.ssim:.4f}"),
    ]
    return {**value, "difference": data_url(map_picture), "rows": [list(row) for row in rows]}


def warp_rows(warp: insight.WarpResult) -> list[list[str]]:
    """The numbers below a warp, as pairs of words."""
    iou, coverage, folds = warp.figures
    return [
        ["Region covered", percent(coverage, 1)],
        ["IoU with the region", f"{iou:.3f}"],
        ["Folded", "no cloth" if np.isnan(folds) else f"{100 * folds:.2f} % of the cloth"],
        ["Time", f"{warp.seconds:.2f} s"],
    ]


class CompareView(View):
    """Variants of the result that differ in one option, and its garment by every warp."""

    name = "compare"
    title = "Compare"

    def build(self) -> None:
        """Makes the components."""
        self.bar = self.tab.bar
        gr.Markdown(theme.text("tryon/compare"), elem_classes="hint")
        with gr.Row(elem_classes="actions"):
            comparisons = [(comparison.title, name) for name, comparison in work.COMPARISONS.items()]
            self.comparison = theme.component(gr.Dropdown, "tryon-comparison", comparisons, value="norm")
            self.button = theme.component(gr.Button, "tryon-compare-button")
        with gr.Column(elem_id="compare-offer"):
            gr.Markdown(theme.text("tryon/compare.pairs"), elem_classes="hint")
            self.pairs = strip(example.pairs(), "Pairs with much misalignment", "compare-pairs")
        self.note = gr.HTML(elem_id="tryon-compare-note")
        self.pictures = theme.script_component("tryon/compare.js", "compare", "tryon-compared", "card")
        self.remember(self.note, self.pictures)
        self.bar.resting.append(self.button)

    def wire(self) -> None:
        """Connects the button with a run of the variants, and an offered pair with a try-on of it."""
        super().wire()
        tab = self.tab
        tab.connect_run(self.button.click, self.run, [tab.session, self.comparison], self.components, "compare")
        # Another choice never stands above the pictures of the last one.
        places: list[Any] = [self.note, self.pictures]
        self.comparison.input(None, None, places, js="() => ['', null]", api_name="choose_comparison", **QUIETLY)
        inputs = tab.inputs
        boxes = [inputs.person, inputs.garment, *(inputs.settings[name] for name in ATTRIBUTES)]
        event = self.pairs.pick(inputs.pick_pair, None, boxes, api_name="pick_pair", **QUICKLY)
        tab.begin_on(event.then, tab.runner.new, {*inputs.components, inputs.stop, inputs.readings}, "try_on_pair")

    @property
    def components(self) -> list[gr.components.Component]:
        """All that `run` updates."""
        return [self.note, self.pictures, self.of, *self.bar.components]

    @with_quiet_end
    @alerts("bar.fail")
    def run(self, session: Session, name: str) -> Iterator[dict]:
        """Show the variants as they come."""
        comparison = work.COMPARISONS[name]
        variants: list[work.Variant] = []
        yield {
            **self.bar.working("Compare: starting …"),
            self.button: gr.update(interactive=False),
            self.note: messages.status(comparison.about),
            self.pictures: None,
            self.of: session.result,
        }
        for report in work.compare(self.services, session.result, name, session.key):
            if isinstance(report, Progress):
                yield self.bar.follow(f"Compare, {len(variants) + 1} of {len(comparison.variants)}", report)
                continue
            variants.append(report)
            # As text: a list that grows would reach the script as a change inside a value, which it does not see.
            yield {self.pictures: json.dumps([panel(v) for v in variants])}
        line = messages.status(work.claim(name, variants if name == work.WARPS else variants[:-1]))
        yield {self.note: line, **self.bar.rest()}


class SeveralView(View):
    """The person in other garments, or the garment on other people."""

    name = "several"
    title = "Several at once"

    def build(self) -> None:
        """Makes the components."""
        self.bar = self.tab.bar
        gr.Markdown(
            f"This person in other garments, or this garment on other people; up to {work.MAX_SEVERAL} pictures at a "
            "time.",
            elem_classes="hint",
        )
        self.kind = theme.component(gr.Radio, "several-kind")
        self.files = theme.component(gr.File, "several-files")
        self.file_list = gr.HTML(elem_id="several-chosen")
        with gr.Row(elem_classes="actions"):
            self.button = theme.component(gr.Button, "several-button")
            self.sheet = theme.component(gr.DownloadButton, "several-sheet", visible=False)
        self.note = gr.HTML(elem_id="several-note")
        self.gallery = theme.gallery("Results", "several-shown", visible=False)
        self.remember(self.note, self.gallery, self.sheet)
        self.bar.resting.append(self.button)

    def wire(self) -> None:
        """Connects the files with their preview, and the button with a run of all of them."""
        super().wire()
        tab = self.tab
        tab.connect_run(self.button.click, self.run, [tab.session, self.kind, self.files], self.components, "several")
        self.files.change(self.preview, self.files, self.file_list, api_name="several_chosen", **QUIETLY)

    @property
    def components(self) -> list[gr.components.Component]:
        """All that `run` updates."""
        return [self.note, self.gallery, self.sheet, self.of, *self.bar.components]

    def preview(self, files: list[str] | None) -> str:
        """Thumbnails and names of the chosen files."""
        return work.thumbnails(files or [])

    @with_quiet_end
    @alerts("bar.fail")
    def run(self, session: Session, kind: str, files: list[str] | None) -> Iterator[dict]:
        """Dress one after another; a picture that cannot be used is named with its sentence."""
        files = files or []
        rows: list[contact_sheet.Row] = []
        pictures: list[tuple[np.ndarray, str]] = []
        remarks: list[str] = []
        yield {
            **self.bar.working("Several: starting …"),
            self.note: "",
            self.gallery: gr.update(visible=False, value=None),
            self.sheet: gr.update(visible=False),
            self.of: session.result,
            self.button: gr.update(interactive=False),
        }
        for report in work.several(self.services, session.result, files, kind, session.key):
            if isinstance(report, Progress):
                name = Path(files[len(rows)]).stem[:60]
                yield self.bar.follow(f"{len(rows) + 1} of {len(files)}, {name}", report)
                continue
            row, picture = report
            rows.append(row)
            if picture is not None:
                pictures.append((picture, f"{row.name}: {row.line}"))
            else:
                remarks.append(f"{row.name}: {row.error}")
            gallery = gr.update(value=list(pictures), visible=bool(pictures))
            yield {self.note: messages.notes(remarks), self.gallery: gallery}
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            path = Path(folder) / "grid.png"
            path.write_bytes(record.png(contact_sheet.draw(rows, ("pasted",))))
            yield {self.sheet: gr.update(value=str(path), visible=True), **self.bar.rest()}
