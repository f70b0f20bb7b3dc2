"""The events of the tab that belong to none of its views: runs, Cancel, undo, saved records, stale results."""

from functools import partial
from typing import Any

import gradio as gr
from gradio.events import Dependency

from ui.kit import QUICKLY, QUIETLY
from ui.tryon.bar import STOP_JS
from ui.tryon.inputs import ATTRIBUTES
from ui.tryon.runner import Runner
from ui.tryon.settings import Control


def wire(tab: Any, memory: gr.BrowserState, page: gr.Blocks) -> None:
    """Wires them, once the views are. tab: a `TryOnTab`; memory: where the zip of the last result lies."""
    runner, inputs = tab.runner, tab.inputs
    run_inputs = {*inputs.components, inputs.stop, inputs.readings}
    run = tab.begin_on(tab.bar.run.click, runner.new, run_inputs, "try_on_page")
    run.then(None, js="handlers.showResult", api_visibility="private", api_name="show_results")
    tab.begin_on(tab.outcome.go_on.click, runner.go_on, [tab.session], "go_on")
    for name in ATTRIBUTES:
        tab.attribute_on(name)
    box = tab.outcome.as_paper
    tab.connect_run(box.input, runner.publish, [tab.session, box], [tab.outcome.slider, *tab.bar.components], "publish")
    _cancel(runner, tab.runs)
    _back_and_open(tab, memory, page)
    _stale(runner)


def _stale(runner: Runner) -> None:
    """After every change of a box or a setting, what it means for the result, for the next run and for an old error."""
    inputs = {*runner.inputs.components, runner.inputs.readings, runner.session, runner.bar.status}
    fields: dict[str, gr.Image | Control] = {
        "person": runner.inputs.person,
        "garment": runner.inputs.garment,
        "model": runner.inputs.model,
        "device": runner.inputs.device,
        **runner.inputs.settings,
    }
    for name, component in fields.items():
        component.change(
            runner.note_change,
            inputs,
            [runner.outcome.stale, runner.bar.status],
            api_name=f"belongs_{name}",
            trigger_mode="always_last",
            **QUICKLY,
        )


def _cancel(runner: Runner, runs: dict[str, Dependency]) -> None:
    """Cancel ends any of the runs.

    The server may send the cancelled run's progress until it has stopped it. The page therefore comes to rest when the
    browser calls the run ended, which it does after the last of these; and a while later in any case, should the run
    have ended by itself as Cancel was pressed.
    """
    bar = runner.bar
    at_rest = [*bar.components, bar.stopping]
    for name, event in runs.items():
        event.then(bar.come_to_rest, [bar.stopping, runner.session], at_rest, api_name=f"rest_after_{name}", **QUICKLY)
    cancels: list[Any] = list(runs.values())  # Gradio takes events there, its types say dictionaries
    places = [bar.status, bar.stopping]
    stopping = bar.cancel.click(None, None, places, js=STOP_JS, cancels=cancels, api_name="cancel_try_on", **QUIETLY)
    # What the browser holds is read after the while: another run may have begun in it.
    waiting = stopping.then(None, js="handlers.afterAWhile", api_visibility="private", api_name="wait_for_rest")
    waiting.then(bar.come_to_rest, [bar.stopping, runner.session], at_rest, api_name="rest_at_last", **QUICKLY)


def _back_and_open(tab: Any, memory: gr.BrowserState, page: gr.Blocks) -> None:
    """Earlier records: undo, back to the first, a saved one, an earlier picture, and the last one after a reload."""
    runner = tab.runner
    everything = [*runner.inputs.components, *runner.components]
    for button, to_first, name in (
        (runner.outcome.undo, False, "back_one"),
        (runner.outcome.reset, True, "back_all"),
    ):
        event = button.click(partial(runner.back, to_first), runner.session, everything, api_name=name, **QUIETLY)
        tab.refresh_after(event, name)
    opening = runner.inputs.record_file.upload(
        runner.open_record, runner.inputs.record_file, everything, api_name="open_saved", **QUIETLY
    )
    choices = gr.BrowserState("", storage_key="atelier-try-on-choices")
    state = [memory, choices, runner.session]
    restoration = page.load(
        runner.restore, state, [*everything, runner.choices_memory], api_name="restore_try_on", **QUIETLY
    )
    recalling = runner.earlier.recall(runner.recall, None, everything, api_name="recall", **QUIETLY)
    photographs = {runner.inputs.person, runner.inputs.garment, runner.session}
    for name, event in (("open", opening), ("recall", recalling), ("restore", restoration)):
        stamp = event.then(runner.stamp, photographs, runner.session, api_name=f"stamp_{name}", **QUIETLY)
        tab.refresh_after(event, name)
    again = [runner.choices_memory, runner.session]
    back = stamp.then(runner.restore_choices, again, runner.inputs.restorable, api_name="choose_again", **QUICKLY)
    back.then(None, js="handlers.back", api_visibility="private", api_name="chosen_again")
    changes = [component.change for component in (*runner.inputs.restorable, runner.outcome.stale)]
    quietly = {"api_visibility": "private"}
    fields = [choices, *runner.inputs.restorable]
    gr.on(changes, None, fields, choices, js="handlers.keep", api_name="keep_choices", **quietly)
    download = runner.outcome.download
    for inputs, output, script, name in (
        ([download, runner.earlier], None, "handlers.rememberPicture", "remember_picture"),
        ([download, memory], memory, "handlers.remember", "remember"),
    ):
        download.change(None, inputs, output, js=script, api_name=name, **quietly)
