"""Only the view that is open draws itself when something new is shown."""

from types import SimpleNamespace

import gradio as gr

from ui.translate.shown import Refresh


def made():
    calls = []
    tab = SimpleNamespace(view="view", refreshers={})

    def view(name, outputs):
        def refresh(*values):
            calls.append((name, values))
            return {one: f"{name} {one}" for one in outputs}

        return refresh

    tab.refreshers["first"] = view("first", ["map", "note"]), ["shown", "layer"], ["map", "note"]
    tab.refreshers["second"] = view("second", ["steps"]), ["shown", "row"], ["steps"]
    tab.refreshers["third"] = view("third", ["row", "note"]), ["shown"], ["row", "note"]
    tab.refreshers["idle"] = (lambda *values: gr.skip()), ["shown"], ["map", "note"]
    return tab, calls


def test_only_the_open_view_draws_and_the_others_stay():
    tab, calls = made()
    draw = Refresh(tab)
    assert draw.inputs == ["view", "shown", "layer", "row"] and draw.outputs == ["map", "note", "steps", "row"]
    assert draw("first", "sentence", 3, 5) == {"map": "first map", "note": "first note"}
    assert draw("second", "sentence", 3, 5) == {"steps": "second steps"}
    assert draw("idle", "sentence", 3, 5) == gr.skip()
    assert calls == [("first", ("sentence", 3)), ("second", ("sentence", 5))]


def test_newer_values_win_and_what_the_caller_writes_is_left_to_it():
    tab, calls = made()
    draw = Refresh(tab, always=("third",), known=("row",))
    assert draw.outputs == ["map", "note", "steps"]
    drawn = draw.draw(("second", "old", 3, 5), known={"shown": "new", "row": 0})
    assert drawn == {"steps": "second steps", "note": "third note"}
    assert calls == [("second", ("new", 0)), ("third", ("new",))]
