"""The kit: views that draw themselves when they are open, a tour, errors as sentences; and the recipe for a view."""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from types import SimpleNamespace

import gradio as gr
import pytest

import ui
from ui import kit, page
from ui.gan import tab as gan_tab
from ui.kit import View, Views, alerts
from ui.kit.dropdown import ChangingDropdown
from ui.services import Services
from ui.translate import tab as translate_tab
from ui.tryon import tab as tryon_tab


def modules():
    found = pkgutil.walk_packages(ui.__path__, "ui.")
    return [importlib.import_module(module.name) for module in found]


def kinds(kind=View):
    """Every class of a view that could be on the page."""
    below = [one for sub in kind.__subclasses__() for one in (sub, *kinds(sub))]
    return {one for one in below if one.__module__.startswith("ui.") and not inspect.isabstract(one)}


def registered():
    tuples = [value for module in modules() for name in ("VIEWS", "TABS") if (value := getattr(module, name, None))]
    return [kind for found in tuples for kind in found]


def test_what_draws_the_open_view_reads_what_any_view_draws_with():
    """Views are wired one after the other, and an early one starts runs after which a late one is drawn."""
    drawn = [
        event for event in page.build(Services()).fns.values() if getattr(event.fn, "__func__", None) is Views.stream
    ]
    assert len(drawn) > 10
    for event in drawn:
        assert event.inputs == event.fn.__self__.inputs and set(event.outputs) == set(event.fn.__self__.outputs)


def test_every_view_is_on_the_page():
    known = registered()
    assert {one for one in kinds() if not one.__subclasses__()} == set(known)
    assert all(kind.name and kind.title for kind in known)
    with gr.Blocks():
        for tab in (translate_tab.TranslateTab, tryon_tab.TryOnTab, gan_tab.GanTab):
            names = list(tab(None, Services()).views.items)
            assert len(set(names)) == len(names)


@pytest.mark.parametrize("module", [translate_tab, tryon_tab, gan_tab], ids=lambda module: module.__name__)
def test_the_recipe_for_a_view_is_one_line(module, monkeypatch):
    """docs/ARCHITECTURE.md: a class with `build`, `wire` and `show`, and its place in VIEWS; the page does the rest."""

    class Dummy(View):
        name = "dummy"
        title = "A dummy"

        def build(self):
            self.text = gr.Textbox(elem_id="dummy-text")

        def wire(self):
            self.draw_with([self.text], [self.text])

        def show(self, text):
            return {self.text: f"{text}!"}

    monkeypatch.setattr(module, "VIEWS", (*module.VIEWS, Dummy))
    config = page.build(Services()).config
    assert "A dummy" in [one["props"].get("label") for one in config["components"] if one["type"] == "tabitem"]
    text = next(one["id"] for one in config["components"] if one["props"].get("elem_id") == "dummy-text")
    opening = [one for one in config["dependencies"] if str(one["api_name"]).endswith("dummy")]
    assert [one["inputs"] for one in opening] == [[text]] and text in opening[0]["outputs"]


def test_every_field_that_only_a_script_reads_can_be_changed():
    """Gradio takes a field with a value that no event reads for fixed, unless it says otherwise."""
    built = page.build(Services())
    read = {component._id for event in built.fns.values() for component in event.inputs}
    fields = (gr.Slider, gr.Number, gr.Dropdown, gr.Radio, gr.Checkbox, gr.Textbox)
    unread = [one for one in built.blocks.values() if isinstance(one, fields) and one._id not in read]
    assert any(one.interactive for one in unread)  # the speeds of the games
    assert [one.elem_id for one in unread if one.interactive is None and one.value is not None] == []


# -- what is drawn ---------------------------------------------------------------------------------------------------


@pytest.fixture
def views():
    """Two views that write what they are given into a field, and one that has nothing to draw."""

    class Echo(View):
        def build(self):
            self.place, self.given = gr.Textbox(), []

        def wire(self):
            self.draw_with([self.tab.current, self.place], [self.place])

        def show(self, current, place):
            self.given.append((current, place))
            return {self.place: f"{self.name} {current}"}

    class First(Echo):
        name, title = "first", "First"

    class Second(Echo):
        name, title = "second", "Second"

    class Idle(View):
        name, title = "idle", "Idle"

        def build(self):
            pass

    with gr.Blocks():
        tab = SimpleNamespace(current=gr.State(), note=gr.Textbox())
        made = Views((First, Second, Idle), tab, Services(), "views")
        made.draw_always("note", lambda current: {tab.note: f"about {current}"}, [tab.current], [tab.note])
        made.wire()
    return made, tab, *(view for view in made)


def test_only_the_open_view_draws_and_what_is_always_drawn(views):
    made, tab, first, second, _ = views
    assert made.inputs == [made.open, tab.current, first.place, second.place]
    assert made.draw(["first", "sentence", "a", "b"]) == {first.place: "first sentence", tab.note: "about sentence"}
    assert made.draw(["idle", "sentence", "a", "b"]) == {tab.note: "about sentence"}
    assert (first.given, second.given) == ([("sentence", "a")], [])
    assert list(made.stream("second", "x", "a", "b")) == [{second.place: "second x"}, {tab.note: "about x"}]


def test_newer_values_win(views):
    made, tab, first, second, _ = views
    newer = {tab.current: "new", second.place: gr.update(value="c", visible=True), made.open: "second"}
    assert made.draw(["first", "old", "a", "b"], newer)[second.place] == "second new"
    assert second.given == [("new", "c")] and first.given == []


def test_a_change_and_its_drawing_are_one_round_trip(views):
    made, tab, first, _, _ = views
    connected = {}

    def trigger(act, inputs, outputs, **options):
        connected.update(act=act, inputs=inputs, outputs=outputs, **options)

    made.redraw_on(trigger, lambda text: {tab.current: text.upper()}, [first.place], [tab.current], api_name="change")
    assert connected["inputs"] == [first.place, *made.inputs] and connected["api_name"] == "change"
    drawn = connected["act"]("text", "first", "old", "text", "")
    assert drawn[tab.current] == "TEXT" and drawn[first.place] == "first TEXT"
    assert set(drawn) <= set(connected["outputs"])
    made.redraw_on(trigger, lambda event, text: gr.skip() if event == 1 else {tab.current: text}, [first.place], [])
    assert connected["act"](1, "text", "first", "old", "", "") == gr.skip()
    assert connected["act"](2, "b", "first", "old", "", "")[first.place] == "first b"


def test_the_open_view_is_saved_and_files_go_with_the_next_drawing(views, tmp_path):
    made, tab, first, second, _ = views
    made.transients = [files := gr.File(render=False)]
    first.save_with([first.place], lambda folder, text: [folder / text])
    second.save_with([tab.current, second.place], lambda folder, *told: [folder / "-".join(told)])
    assert made.save_inputs == [made.open, first.place, tab.current, second.place]
    assert made.save(tmp_path, "first", "a", "sentence", "b") == [tmp_path / "a"]
    assert made.save(tmp_path, "second", "a", "sentence", "b") == [tmp_path / "sentence-b"]
    with pytest.raises(ValueError, match="nothing to save"):
        made.save(tmp_path, "idle", "a", "sentence", "b")
    assert made.draw(["idle", "sentence", "a", "b"])[files]["visible"] is False and files in made.outputs


# -- tour and errors -------------------------------------------------------------------------------------------------


def test_a_tour_stays_within_its_stops_and_opens_their_views():
    class Guide(kit.Tour):
        invitation = "Go"

        def stops(self):
            return [kit.Stop("A <", "first", "one"), kit.Stop("B", "second", "two")]

    with gr.Blocks():
        guide = Guide(SimpleNamespace(views=SimpleNamespace(tabs=gr.Tabs(), open=gr.State())))
        guide.build_start()
        guide.build_card()
    made = guide.go(None, -1)
    assert made[guide.at] == 0 and "1 / 2" in made[guide.card] and "A &lt;" in made[guide.card]
    assert made[guide.tab.views.tabs]["selected"] == "one" and made[guide.back]["interactive"] is False
    last = guide.go(1, 1)
    assert last[guide.at] == 1 and last[guide.next]["interactive"] is False
    assert guide.show(1)[guide.card] == last[guide.card] and guide.show(-1) == gr.skip()
    assert guide.leave()[guide.at] == -1


@dataclass(eq=False)
class Owner:
    """Handlers that fail."""

    note: gr.HTML
    body: gr.HTML

    @alerts("note", hide="body")
    def work(self, text):
        """Fails."""
        raise ValueError(f"{text} <b>")

    @alerts("note")
    def stream(self):
        """Fails after its first update."""
        yield {self.body: "begun"}
        raise ValueError("Choose another one.")

    @alerts()
    def line(self, event: gr.EventData):
        """Its sentence is all that it returns."""
        raise RuntimeError("internal")

    @alerts("failed")
    def run(self):
        """Says by a method what an error changes."""
        raise ValueError("No.")

    def failed(self, error):
        return {self.body: str(error)}


def test_an_error_becomes_a_sentence_where_the_handler_says():
    with gr.Blocks():
        owner = Owner(gr.HTML(), gr.HTML())
    made = owner.work("Bad")
    assert "Bad &lt;b&gt;" in made[owner.note] and made[owner.body]["visible"] is False
    begun, failed = owner.stream()
    assert begun == {owner.body: "begun"} and "Choose another one." in failed[owner.note]
    assert "internal" not in owner.line(None) and 'role="alert"' in owner.line(None)
    assert owner.run() == {owner.body: "No."}
    assert list(inspect.signature(owner.line).parameters) == ["event"]  # which Gradio looks at


def test_a_changing_dropdown_takes_what_was_in_its_list_a_moment_ago():
    box = ChangingDropdown([("English → German", "en-de")], value="en-de")
    assert box.preprocess("english-german") == "english-german" and box.preprocess(None) is None
    assert box.get_block_name() == "dropdown"
    with pytest.raises(gr.Error):  # no text is nobody's old choice
        box.preprocess(7)
