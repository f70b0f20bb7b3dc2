"""Only the view that is open draws itself when something new is shown."""

from types import SimpleNamespace

import gradio as gr

from ui.shown import Refresh


def made():
    calls = []
    tab = SimpleNamespace(view="view", refreshers={})

    def view(name, count):
        def refresh(*values):
            calls.append((name, values))
            return [f"{name}{i}" for i in range(count)] if count > 1 else f"{name}0"

        return refresh

    tab.refreshers["first"] = view("first", 2), ["shown", "layer"], ["map", "note"]
    tab.refreshers["second"] = view("second", 1), ["shown", "row"], ["steps"]
    tab.refreshers["third"] = view("third", 2), ["shown"], ["row", "note"]
    tab.refreshers["idle"] = (lambda *values: gr.skip()), ["shown"], ["map", "note"]
    return tab, calls


def test_only_the_open_view_draws_and_the_others_stay():
    tab, calls = made()
    draw = Refresh(tab)
    assert draw.inputs == ["view", "shown", "layer", "row"] and draw.outputs == ["map", "note", "steps", "row"]
    skip = gr.skip()
    assert draw("first", "sentence", 3, 5) == ["first0", "first1", skip, skip]
    assert draw("second", "sentence", 3, 5) == [skip, skip, "second0", skip]
    assert draw("idle", "sentence", 3, 5) == [skip] * 4
    assert calls == [("first", ("sentence", 3)), ("second", ("sentence", 5))]


def test_newer_values_win_and_what_the_caller_writes_is_left_to_it():
    tab, calls = made()
    draw = Refresh(tab, always=("third",), known=("row",))
    assert draw.outputs == ["map", "note", "steps"]
    drawn = draw("second", "old", 3, 5, known={"shown": "new", "row": 0})
    assert drawn == [gr.skip(), "third1", "second0"]
    assert calls == [("second", ("new", 0)), ("third", ("new",))]
