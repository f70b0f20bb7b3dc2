"""The whole page: a heading and one tab per half of the workshop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction

from ui import about, asked, serving, theme
from ui.gan.tab import GanTab
from ui.services import Services
from ui.train.tab import TrainTab
from ui.translate import visit
from ui.translate.tab import TranslateTab
from ui.tryon import tab as tryon

DELETE_AFTER_SECONDS = 3600
# Three queues by kind (the `concurrency_id` of the events), one run at a time in each, so that a translation never
# waits behind a try-on: "translate", "try-on" and "gan". The number is what may wait in all of them together.
MOST_WAITING = 200
MOST_VISITORS = 200  # whose state is kept; the one who was away longest makes room
MAX_UPLOAD = "100mb"  # a saved try-on of a phone's photo; single pictures have a narrower limit of their own
HEADING = """<header class="masthead"><span class="wordmark">Atelier</span>
<span class="tagline">Networks to use and to look inside</span></header>"""


class Page(gr.Blocks):
    """Sends every update of a run whole.

    Gradio sends how an update differs from the one before, and the browser changes that one in place. A component that
    has not shown it yet would never do so.
    """

    def handle_streaming_diffs(
        self,
        block_fn: BlockFunction,
        data: list,
        session_hash: str | None,
        run: str | None,
        final: bool,
        simple_format: bool = False,
    ) -> list:
        """The values or edits of all outputs as they are sent; arguments and the rest as Gradio has them."""
        begun = run in self.pending_diff_streams[session_hash] if session_hash and run else False
        sent = super().handle_streaming_diffs(block_fn, data, session_hash, run, final, simple_format)
        if not begun or final or simple_format:
            return sent
        whole = self.pending_diff_streams[session_hash][run]
        return [[["replace", [], value]] if edits else [] for edits, value in zip(sent, whole)]


def build(services: Services) -> gr.Blocks:
    """The page on top of `services`. Builds only; nothing is loaded or started."""
    with Page(title="Atelier", delete_cache=(600, DELETE_AFTER_SECONDS), analytics_enabled=False) as page:
        gr.HTML(HEADING, elem_id="masthead")
        with gr.Tabs(elem_id="pages"):
            with gr.Tab("Translate", id="translate") as first:
                translate = TranslateTab(services)
            with gr.Tab("Try on", id="try-on") as second:
                tryon_tab = tryon.layout(services)
            with gr.Tab("Train", id="train") as third:
                train = TrainTab(services)
            with gr.Tab("GAN", id="gan") as fourth:
                gan = GanTab(services)
            with gr.Tab("About", id="about") as fifth:
                about.layout()
        translate.wire(page)
        visit.keep_tab([first, second, third, fourth, fifth])
        tryon.events(tryon_tab, services, page)
        train.wire(third, [first, second, fourth, fifth], Path(page.GRADIO_CACHE))
        gan.wire(fourth)
    page.preprocess_data = asked.refusing(page.preprocess_data)
    return page.queue(max_size=MOST_WAITING)


def launch_options() -> dict[str, Any]:
    """Keyword arguments of `launch` that belong to the page, not to where it runs."""
    return {
        "theme": theme.theme(),
        "css": theme.css(),
        "max_file_size": MAX_UPLOAD,
        "enable_monitoring": False,
        "state_session_capacity": MOST_VISITORS,
        # Photographs would otherwise stay in the visitor's browser, a bad surprise on a shared machine.
        "run_history": False,
        "footer_links": ["api", "settings"],
        "strict_cors": True,
        "show_error": False,
        "pwa": False,
        # Gradio would visit its own page once and give up, and the page with it, where that takes over three seconds.
        "_frontend": False,
        "app_kwargs": serving.app_options(),
        # Gradio tells screen readers the bare key of this word, which its own translations lack.
        "i18n": gr.I18n(en={"common.complete": "Done"}),
    }
