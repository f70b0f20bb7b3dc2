"""The line that stays in view: start, Cancel, the stages of a run as a strip, and what the page says."""

import functools
import json
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import gradio as gr

from ui import messages, theme
from ui.services import Progress
from ui.tryon.session import Session
from vton.pipeline import STAGES

# Said by the browser itself, before the run has its turn: the line, no other run, Cancel, and that it was not pressed.
START_JS = (
    f"() => [{json.dumps(messages.status('Starting …'))}, {{__type__: 'update', interactive: false}}, "
    "{__type__: 'update', visible: true}, false]"
)
STOP_JS = f"() => [{json.dumps(messages.status('Cancelling …'))}, true]"


def with_quiet_end(handler: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """A generator of updates by component whose last one changes nothing.

    Gradio sends the last update again when the generator has ended, which can be a while later, and would take back
    what a visitor has ticked or chosen in between.
    """

    @functools.wraps(handler)
    def run(*values: Any) -> Iterator[Any]:
        yield from handler(*values)
        yield gr.skip()

    return run


def strip(current: int | None, seconds: dict[str, float], ending: str = "") -> str:
    """HTML of the stages, one segment each.

    current: index of the stage at work, None before and after a run; seconds: time of each stage that is done; ending:
    "failed" marks the current stage.
    """
    items = []
    for index, name in enumerate(STAGES):
        state = ending or "running" if index == current else "done" if name in seconds else "waiting"
        time = f"{seconds[name]:.2f} s" if name in seconds else "…" if state == "running" else ""
        aria = ' aria-current="step"' if state == "running" else ""
        items.append(
            f'<li class="stage {escape(state)}"{aria} title="{index + 1}. {escape(name)} {time}">'
            f'<span class="stage-name">{escape(name)}</span><span class="stage-time">{time}</span></li>'
        )
    return f'<ol class="stages" aria-label="Stages">{"".join(items)}</ol>'


class Bar:
    """Try it on, Cancel, the stages with their times, and one line for progress and errors of every run."""

    def __init__(self, seconds: dict[str, float]):
        """seconds: seconds of each stage of what the page opens with."""
        # Cancel was pressed, and nothing begun since. The browser holds it, so that no run waits for a round trip.
        self.stopping = gr.Checkbox(False, visible=False)
        self.resting: list[gr.Button] = []  # other buttons that are off while their work lasts
        with gr.Column(elem_id="tryon-bar"):
            with gr.Row(elem_classes="bar-line"):
                self.run = theme.component(gr.Button, "tryon-button")
                self.cancel = theme.component(gr.Button, "cancel-button", visible=False)
                self.stages_strip = gr.HTML(strip(None, seconds), elem_id="stages", scale=1, min_width=200)
            self.status = gr.HTML(elem_id="tryon-status")

    @property
    def components(self) -> list[gr.components.Component]:
        """All that a run updates; complete once `resting` is."""
        return [self.stages_strip, self.status, self.run, self.cancel, *self.resting]

    def idle(self) -> dict:
        """Run can be pressed, there is nothing to cancel."""
        return {self.run: gr.update(interactive=True), self.cancel: gr.update(visible=False)}

    def busy(self) -> dict:
        """A run is on: it can be cancelled, and no other one started."""
        return {self.run: gr.update(interactive=False), self.cancel: gr.update(visible=True)}

    def working(self, line: str) -> dict:
        """A line of progress while Cancel is offered."""
        return {self.status: messages.status(line), **self.busy()}

    def follow(self, what: str, report: Progress) -> dict:
        """The line of a run beside the try-on itself, and the stage that it is at."""
        return self.working(f"{what}: {STAGES[max(report.stage, 0)]}")

    def fail(self, error: BaseException) -> dict:
        """The sentence of an error, and the buttons at rest. It stays until something else is begun."""
        return self.rest(messages.failure(error))

    def rest(self, html: str = "") -> dict:
        """The status line after a run; what that has switched off can be pressed again."""
        return {self.status: html, **self.idle(), **{button: gr.update(interactive=True) for button in self.resting}}

    def stages(self, current: int | None, seconds: dict, ending: str = "") -> dict:
        """The strip of stages: the current one, seconds of those that are done, and why it stopped."""
        return {self.stages_strip: strip(current, seconds, ending)}

    def come_to_rest(self, stopping: bool, session: Session) -> dict:
        """The page at rest, where the visitor has asked for it."""
        if not stopping:
            return {self.stopping: False}
        line = messages.status("Cancelled. Your photos are still here; change what you like and try again.")
        return {**self.stages(None, session.result.seconds if session.result is not None else {}), **self.rest(line)}
