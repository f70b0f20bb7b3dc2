"""The whole page: a heading and one tab per half of the workshop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from ui import about, theme, train, translate, tryon
from ui.services import Services

DELETE_AFTER_SECONDS = 3600
MAX_UPLOAD = "100mb"  # a saved try-on of a phone's photo; single pictures have a narrower limit of their own
HEADING = """<header class="masthead"><span class="wordmark">Atelier</span>
<span class="tagline">Two networks to use and to look inside</span></header>"""


def build(services: Services) -> gr.Blocks:
    """The page on top of `services`. Builds only; nothing is loaded or started."""
    with gr.Blocks(title="Atelier", delete_cache=(600, DELETE_AFTER_SECONDS), analytics_enabled=False) as page:
        gr.HTML(HEADING, elem_id="masthead")
        with gr.Tabs():
            with gr.Tab("Translate", id="translate") as first:
                translate_tab = translate.layout(services)
            with gr.Tab("Try on", id="try-on") as second:
                tryon_tab = tryon.layout(services)
            with gr.Tab("Train", id="train") as third:
                train_tab = train.layout(services)
            with gr.Tab("About", id="about") as fourth:
                about.layout()
        translate.events(translate_tab, services, page)
        tryon.events(tryon_tab, services)
        train.events(train_tab, services, third, [first, second, fourth], Path(page.GRADIO_CACHE))
    return page.queue(max_size=32)


def launch_options() -> dict[str, Any]:
    """Keyword arguments of `launch` that belong to the page, not to where it runs."""
    return {
        "theme": theme.theme(),
        "css": theme.css(),
        "max_file_size": MAX_UPLOAD,
        "enable_monitoring": False,
        # Photographs would otherwise stay in the visitor's browser, a bad surprise on a shared machine.
        "run_history": False,
        "footer_links": ["api", "settings"],
        "strict_cors": True,
        "show_error": False,
        "pwa": False,
    }
