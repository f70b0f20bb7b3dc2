"""The whole page: a heading and one tab per half of the workshop."""

from typing import Any

import gradio as gr

from ui import address, first, gradio_private, serving, theme
from ui.about import AboutTab
from ui.gan.tab import GanTab
from ui.kit import View, Views
from ui.lessons.tab import LessonsTab
from ui.services import Services
from ui.train.tab import TrainTab
from ui.translate.tab import TranslateTab
from ui.tryon.tab import TryOnTab

DELETE_AFTER_SECONDS = 3600
# Three queues by kind (the `concurrency_id` of the events), so that a translation never waits behind a try-on:
# "translate", "try-on" and "gan"; one run at a time in each but for `kit.handlers.AT_ONCE`, and one of each visitor.
# The number is what may wait in all of them together.
MAX_WAITING = 200
MAX_VISITORS = 200  # whose state is kept; the one who was away longest makes room
MAX_UPLOAD = "100mb"  # a saved try-on of a phone's photo; single pictures have a narrower limit of their own
# each gets the page as its `tab`
TABS: tuple[type[View], ...] = (TranslateTab, TryOnTab, TrainTab, GanTab, LessonsTab, AboutTab)


def build(services: Services) -> gr.Blocks:
    """The page on top of `services`. Builds only; nothing is loaded or started."""
    with gradio_private.Page(
        title="Atelier", delete_cache=(600, DELETE_AFTER_SECONDS), analytics_enabled=False
    ) as page:
        head = gr.HTML(
            first.heading(services), html_template="${value}", js_on_load=address.scripts(), elem_id="masthead"
        )
        tabs = Views(TABS, page, services, elem_id="pages", item_id=None)
        tabs.wire()
        address.wire(head, tabs[TranslateTab])
    page.preprocess_data = gradio_private.refusing(page.preprocess_data)
    return page.queue(max_size=MAX_WAITING)


def launch_options() -> dict[str, Any]:
    """Keyword arguments of `launch` that belong to the page, not to where it runs; once the page is built."""
    return {
        "theme": theme.theme(),
        "css": theme.css(),
        "head": theme.head(),
        "max_file_size": MAX_UPLOAD,
        "enable_monitoring": False,
        "state_session_capacity": MAX_VISITORS,
        # Photographs would otherwise stay in the visitor's browser, a bad surprise on a shared machine.
        "run_history": False,
        "footer_links": ["api", "settings"],
        "strict_cors": True,
        "show_error": False,
        "pwa": False,
        "app_kwargs": serving.app_options(),
        **gradio_private.LAUNCH,
    }
