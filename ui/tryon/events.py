"""Which event of the tab calls which handler, and how a run is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr

from ui.tryon.inputs import ATTRIBUTES
from ui.tryon.inside import Inside
from ui.tryon.runner import Runner
from ui.tryon.settings import Control
from ui.tryon.variants import Compare, Several
from ui.tryon.views import MapViews

QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
AT_DEVICE = {**QUIET, "concurrency_id": "try-on"}

# A cancelled event may stay pending in the browser, which would swallow the next one.
AGAIN: dict[str, Any] = {"trigger_mode": "multiple"}
# On a phone the result lies below the boxes; where it is in view already, nothing moves.
SHOW_RESULT = """() => {
  const result = document.querySelector('#tryon-outcome'), box = result && result.getBoundingClientRect();
  const away = box && (box.top < 0 || box.top > innerHeight / 2);
  if (away && !document.querySelector('#tryon-status [role=alert]')) {
    result.scrollIntoView({ behavior: 'smooth', block: 'start' });
  }
}"""
# What Figure 3 has opened is far above the figure's lower end.
SHOW_VIEW = "() => document.querySelector('#tryon-views').scrollIntoView({ behavior: 'smooth', block: 'start' })"
# The browser remembers where the zip of the last result lies, for a reload.
REMEMBER = "(file, old) => (file && file.path) || old || ''"
AFTER_A_WHILE = """async (...given) => {
  await new Promise((done) => setTimeout(done, 2000));
  return given;
}"""


def _waiting(runner: Runner) -> dict:
    """Options of an event of the bar: while others come first, its line says how many."""
    return {**AT_DEVICE, "show_progress": "minimal", "show_progress_on": runner.bar.status}


def wire(
    runner: Runner,
    views: MapViews,
    others: tuple[Compare, Several, Inside],
    tabs: dict[str, gr.Tab],
    all_tabs: gr.Tabs,
    remembered: gr.BrowserState,
    page: gr.Blocks,
) -> None:
    """Wire all that a visitor can do with a try-on. others: the views that run something of their own; all_tabs: what
    holds the views' tabs.
    """
    compare, several, inside = others
    runs = {
        **_runs(runner, views),
        "pair": _pair(runner, views, compare),
        **_corrections(runner, views),
        **_attributes(runner, views),
    }
    runs["publish"] = runner.outcome.published.input(
        runner.publish,
        [runner.kept, runner.outcome.published],
        [runner.outcome.slider, *runner.bar.components],
        api_name="publish",
        **AGAIN,
        **AT_DEVICE,
    )
    runs["compare"] = compare.button.click(
        compare.run, [runner.kept, compare.comparison], compare.components, api_name="compare", **AGAIN, **AT_DEVICE
    )
    runs["several"] = several.button.click(
        several.run,
        [runner.kept, several.kind, several.files],
        several.components,
        api_name="several",
        **AGAIN,
        **AT_DEVICE,
    )
    runs["inside"] = inside.button.click(
        inside.run, [runner.kept, inside.subject], inside.components, api_name="look_inside", **AGAIN, **AT_DEVICE
    )
    chosen = runner.steps.figure.network(
        inside.choose, None, [all_tabs, inside.subject], api_name="open_network", queue=False, **QUIET
    )
    chosen.then(None, js=SHOW_VIEW, api_visibility="private", api_name="show_network")
    runs["network"] = chosen.then(
        inside.run, [runner.kept, inside.subject], inside.components, api_name="look_inside_network", **AT_DEVICE
    )
    several.files.change(several.preview, several.files, several.chosen, api_name="several_chosen", **QUIET)
    _cancel(runner, runs)
    _back_and_open(runner, views, remembered, page)
    _stale(runner)
    _choices(runner, views, tabs)


def _refreshed(event: gr.events.Dependency, runner: Runner, views: MapViews, name: str) -> None:
    """After the event, make the open view again."""
    given = [runner.kept, views.view, views.look, views.paint]
    event.then(views.refresh, given, views.components, api_name=f"refresh_{name}", **QUIET)


def _begun(runner: Runner, trigger: Callable, handler: Callable, given: Any, name: str) -> gr.events.Dependency:
    """What `handler` runs when `trigger` fires; that it was asked for is said at once, outside the queue."""
    bar = runner.bar
    said = [bar.status, bar.run, bar.cancel, bar.stopping]
    asked = trigger(bar.asked, None, said, api_name=f"ask_{name}", queue=False, **QUIET)
    return asked.then(handler, given, runner.components, api_name=name, **AGAIN, **_waiting(runner))


def _pair(runner: Runner, views: MapViews, compare: Compare) -> gr.events.Dependency:
    """A pair that Compare offers goes into the boxes and is tried on."""
    inputs = runner.inputs
    boxes = [inputs.person, inputs.garment, *(inputs.settings[name] for name in ATTRIBUTES)]
    picked = compare.pairs.pick(inputs.pick_pair, None, boxes, api_name="pick_pair", queue=False, **QUIET)
    run = _begun(runner, picked.then, runner.new, {*inputs.components, inputs.stop}, "try_on_pair")
    _refreshed(run, runner, views, "pair")
    return run


def _runs(runner: Runner, views: MapViews) -> dict[str, gr.events.Dependency]:
    """A new run and one that goes on: the wait is said first, the buttons keep two apart."""
    inputs = runner.inputs
    run = _begun(runner, runner.bar.run.click, runner.new, {*inputs.components, inputs.stop}, "try_on_page")
    run.then(None, js=SHOW_RESULT, api_visibility="private", api_name="show_results")
    going_on = _begun(runner, runner.outcome.go_on.click, runner.go_on, [runner.kept], "go_on")
    for name, event in (("run", run), ("go_on", going_on)):
        _refreshed(event, runner, views, name)
    return {"run": run, "go_on": going_on}


def _corrections(runner: Runner, views: MapViews) -> dict[str, gr.events.Dependency]:
    """Runs from a corrected map. Events of the canvases carry their own data, so they begin without a first step."""
    common = [runner.kept, runner.inputs.stop]
    wanted = [
        ("correct", views.painter.apply, runner.painted, common),
        ("upload_map", views.paint_in.upload, runner.uploaded, [*common, views.paint, views.paint_in]),
        ("move_warp", views.points.apply, runner.warped, common),
    ]
    corrections = {}
    for name, trigger, handler, given in wanted:
        trigger(lambda: False, None, runner.bar.stopping, api_name=f"begin_{name}", queue=False, **AGAIN, **QUIET)
        event = trigger(handler, given, runner.components, api_name=name, **AGAIN, **_waiting(runner))
        event.success(None, js=SHOW_RESULT, api_visibility="private", api_name=f"show_{name}")
        _refreshed(event, runner, views, name)
        corrections[name] = event
    views.points.move(
        views.moved,
        [runner.kept],
        [views.points, views.note],
        api_name="try_warp",
        trigger_mode="always_last",
        **AT_DEVICE,
    )
    return corrections


def _attributes(runner: Runner, views: MapViews) -> dict[str, gr.events.Dependency]:
    """Sleeves, neckline and hem, beside the garment: a result of the same pictures goes on from there at once."""
    events = {}
    for name in ATTRIBUTES:
        event = runner.inputs.settings[name].input(
            partial(runner.attribute, name),
            {*runner.inputs.components, runner.inputs.stop, runner.kept},
            runner.components,
            api_name=f"set_{name}",
            **AGAIN,
            **_waiting(runner),
        )
        _refreshed(event, runner, views, f"set_{name}")
        events[f"set_{name}"] = event
    return events


def _stale(runner: Runner) -> None:
    """After every change of a box or a setting, say what the shown result no longer belongs to."""
    given = {*runner.inputs.components, runner.kept}
    fields: dict[str, gr.Image | Control] = {
        "person": runner.inputs.person,
        "garment": runner.inputs.garment,
        "model": runner.inputs.model,
        "device": runner.inputs.device,
        **runner.inputs.settings,
    }
    for name, component in fields.items():
        component.change(
            runner.stale,
            given,
            runner.outcome.stale,
            api_name=f"belongs_{name}",
            trigger_mode="always_last",
            queue=False,
            **QUIET,
        )


def _cancel(runner: Runner, runs: dict[str, gr.events.Dependency]) -> None:
    """Cancel ends any of the runs.

    The server may send the cancelled run's progress until it has stopped it. The page therefore comes to rest when the
    browser calls the run ended, which it does after the last of these; and a while later in any case, should the run
    have ended by itself as Cancel was pressed.
    """
    bar, unqueued = runner.bar, {"queue": False, **QUIET}
    at_rest = [*bar.components, bar.stopping]
    for name, event in runs.items():
        event.then(bar.stopped, [bar.stopping, runner.kept], at_rest, api_name=f"rest_after_{name}", **unqueued)
    cancels: list[Any] = list(runs.values())  # Gradio takes events there, its types say dictionaries
    stopping = bar.cancel.click(
        bar.stop, None, [bar.status, bar.stopping], cancels=cancels, api_name="cancel_try_on", **unqueued
    )
    stopping.then(
        bar.stopped, [bar.stopping, runner.kept], at_rest, js=AFTER_A_WHILE, api_name="rest_at_last", **unqueued
    )


def _back_and_open(runner: Runner, views: MapViews, remembered: gr.BrowserState, page: gr.Blocks) -> None:
    """Earlier records: undo, back to the first, a saved one, and the last one after a reload."""
    everything = [*runner.inputs.components, *runner.components]
    for button, to_first, name in (
        (runner.outcome.undo, False, "back_one"),
        (runner.outcome.reset, True, "back_all"),
    ):
        event = button.click(partial(runner.back, to_first), runner.kept, everything, api_name=name, **QUIET)
        _refreshed(event, runner, views, name)
    opened = runner.inputs.saved.upload(runner.opened, runner.inputs.saved, everything, api_name="open_saved", **QUIET)
    restored = page.load(runner.restored, [remembered, runner.kept], everything, api_name="restore_try_on", **QUIET)
    given = {runner.inputs.person, runner.inputs.garment, runner.kept}
    for name, event in (("open", opened), ("restore", restored)):
        event.then(runner.stamp, given, runner.kept, api_name=f"stamp_{name}", **QUIET)
        _refreshed(event, runner, views, name)
    runner.outcome.download.change(
        None,
        [runner.outcome.download, remembered],
        remembered,
        js=REMEMBER,
        api_visibility="private",
        api_name="remember",
    )


def _choices(runner: Runner, views: MapViews, tabs: dict[str, gr.Tab]) -> None:
    """Opening a view, and choosing a map in it."""
    for name, item in tabs.items():
        item.select(
            partial(views.open, name),
            [runner.kept, views.look, views.paint],
            views.components,
            api_name=f"open_{name}",
            **QUIET,
        )
    for choice, name in ((views.look, "look"), (views.paint, "paint")):
        choice.change(
            views.refresh,
            [runner.kept, views.view, views.look, views.paint],
            views.components,
            api_name=f"choose_{name}",
            trigger_mode="always_last",
            **QUIET,
        )
