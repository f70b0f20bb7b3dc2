"""Markup where text is expected, on the page and in what one takes home, with a tripwire in every frame.

About 120 known vectors stand as texts, tokens, names of files, runs and models.
"""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from driving import choose, enter, open_training_form, open_view, titled, typed
from PIL import Image

from gan import laboratory
from training import card
from training.run import Run
from transformer.insight.interpret import KINDS
from transformer.parsing.parser import SentenceParse
from transformer.parsing.trees import Leaf, Tree
from transformer.translator import Attention, Hypothesis, Sentence, Translation
from ui import messages
from ui.gan import exports as gan_exports
from ui.translate import answers, attention, bertviz, decoding_figures, layers, parse, save, tour
from ui.translate.view import CurrentTranslation
from ui.tryon import work

VECTORS = Path(__file__).with_name("xss.txt").read_text(encoding="utf-8").splitlines()
TRIPWIRE = """() => { for (const name of ['alert', 'confirm', 'prompt'])
  window[name] = () => {
    window.ran = (window.ran || 0) + 1;
    window.trip(`${name} in ${location.href.slice(0, 80)}`);
  }; }"""
# Everything that a careless visitor could touch; a list gets no focus, which would open it over the page.
TOUCH = """() => {
  for (const node of document.querySelectorAll('body *'))
    for (const kind of ['mouseover', 'mouseenter', 'focus', 'toggle', 'animationstart'])
      if (kind !== 'focus' || node.role !== 'combobox')
        node.dispatchEvent(new Event(kind));
}"""
PLANT = """text => {
  const box = document.createElement('div');
  document.body.append(box);
  box.innerHTML = text;
}"""
PLANTED = """() => [...document.querySelectorAll('*')].filter((node) =>
    [...node.attributes].some((one) => /^on/i.test(one.name)
      || (/^(href|xlink:href|src|action|formaction|data|to)$/i.test(one.name) && /^\\s*javascript:/i.test(one.value))
      || (one.name === 'srcdoc' && node.className.indexOf('bertviz') < 0))
    || (node.localName === 'script' && node.textContent.trim() === 'alert(1)'))
    .map((node) => node.outerHTML.slice(0, 200))"""


@pytest.fixture
def trap(browser):
    """`trap()` returns a page without a network, the tripwire in every frame, and the list of what ran."""
    contexts = []

    def set_up():
        context = browser.new_context(offline=True)
        contexts.append(context)
        page = context.new_page()
        return page, wire(page)

    yield set_up
    for context in contexts:
        context.close()


def wire(page, ran=None):
    """Sets the tripwire and returns the list of what ran."""
    ran = [] if ran is None else ran
    page.expose_binding("trip", lambda source, what: ran.append(what))
    page.add_init_script(f"({TRIPWIRE})()")
    return ran


def safe(page, ran):
    """Nothing ran, whatever is touched, and no element stands there that could."""
    for frame in page.frames:
        frame.evaluate(TOUCH)
        assert frame.evaluate(PLANTED) == []
    page.evaluate("() => new Promise((done) => setTimeout(done, 50))")  # pictures that fail to load have failed by now
    assert ran == []


def hostile():
    """A translation with its attention in which every text and token is a vector."""
    source, target = [*VECTORS, "</s>"], [*reversed(VECTORS), "</s>"]
    rng = np.random.default_rng(0)

    def weights(rows, columns):
        drawn = rng.random((1, 1, rows, columns), np.float32)
        return drawn / drawn.sum(-1, keepdims=True)

    S, T = len(source), len(target)
    seen = Attention(weights(S, S), weights(T, T), weights(T, S), source, target, ["<s>", *target[:-1]])
    text = " ".join(VECTORS)
    hypothesis = Hypothesis(text, target[:-1], -1.0, -1.0)
    sentence = Sentence(text, [1], [[1]], [hypothesis], None)
    whole = Translation(text, target[:-1], text, source[:-1], -1.0, [hypothesis], None, [sentence], list(VECTORS))
    return CurrentTranslation(whole, attention=seen, pair="en-de", model=VECTORS[0])


def test_the_tripwire_sees_what_runs_where_nothing_is_escaped(trap):
    page, ran = trap()
    page.goto("about:blank")
    for vector in VECTORS:
        page.evaluate(PLANT, vector)
    page.wait_for_function("() => window.ran >= 20")
    assert len(VECTORS) >= 100
    with pytest.raises(AssertionError):
        safe(page, ran)


def test_what_one_takes_home_holds_text_as_text(trap, tmp_path):
    """Saved pages and drawings, the frame of bertviz, the tree, a game, and the card of a run."""
    current = hostile()
    settings = {"kind": "cross", "layer": 1, "head": 1, "without_ends": False, "threshold": 0.0, "stretch": False}
    settings |= {"look": "map", "model": VECTORS[3]}
    files = save.save(current, settings, tmp_path)
    files = [file for file in files if file.suffix in (".html", ".svg")]
    assert {file.suffix for file in files} == {".html", ".svg"}

    leaves = tuple(Leaf(vector, vector) for vector in VECTORS)
    tree = Tree("TOP", (Tree("<img/src=x/onerror=alert(1)>", leaves),))
    parsed = SentenceParse(VECTORS[0], [1], [[1]], [], None, words=VECTORS, trees=[tree])
    files.append(tmp_path / "tree.svg")
    files[-1].write_text(parse.tree_svg(parsed), encoding="utf-8")

    lab = laboratory.Laboratory("line")
    lab.advance(1)
    for number, vector in enumerate(("@@DATA@@</script><img src=x onerror=alert(1)>", VECTORS[0])):
        object.__setattr__(lab.mixture, "name", vector)
        files.append(tmp_path / f"game-{number}.html")
        files[-1].write_text(gan_exports.html(lab), encoding="utf-8")

    for view in bertviz.SCRIPTS:
        files.append(tmp_path / f"bertviz-{view}.html")
        few = [*VECTORS[:30], "</s>"]
        cut = {kind: getattr(current.attention, kind)[..., :31, :31] for kind in KINDS}
        seen = Attention(**cut, source_tokens=few, target_tokens=few, decoder_tokens=few)
        files[-1].write_text(f"<!doctype html><body>{bertviz.frame(seen, 'cross', view)}", encoding="utf-8")

    for file in files:
        page, ran = trap()
        page.goto(file.as_uri())
        page.wait_for_load_state()
        safe(page, ran)
        page.close()


def test_every_piece_of_html_of_the_page_holds_text_as_text(trap, tmp_path):
    """What is built in Python and shown as it is: notes, tables, tours, lists of words, names of files and of runs."""
    current = hostile()
    seen, sentence = current.attention, current.translation.sentences[0]
    words = [(sign, vector) for sign in "-+ " for vector in VECTORS]
    recipe = {"task": VECTORS[0], "data": VECTORS[1], **{vector: vector for vector in VECTORS}}
    run = Run(tmp_path / "<img src=x onerror=alert(1)>")
    run.folder.mkdir()
    (run.folder / "recipe.json").write_text(json.dumps(recipe))
    run.log("start", torch=VECTORS[0], device=VECTORS[16])
    run.log("evaluation", step=1, figures=dict.fromkeys(VECTORS, 1.0))
    pieces = [
        messages.notes(VECTORS),
        *map(messages.alert, VECTORS),
        *map(messages.status, VECTORS),
        decoding_figures.difference(words),
        decoding_figures.side_by_side([(v, v, 0.0, 0.0, 1, 0.1) for v in VECTORS], words),
        answers.scroll_table(["sentence"], [f"<td>{layers.word(vector)}</td>" for vector in VECTORS], VECTORS[0]),
        layers.typical_sentences_html(
            VECTORS, next(iter(layers.TRAITS)), [(n, 0.5) for n in range(len(VECTORS))], VECTORS[30]
        ),
        *(attention.cell_note(seen, "cross", 0, 0, False, 0, column) for column in range(len(VECTORS))),
        *(stop.text for stop in tour.stops(current)),
        *(work.thumbnails([f"/nowhere/{vector.replace('/', '')}.png"]) for vector in VECTORS),
        card.text(run, 1, "Transformer"),
    ]
    assert sentence.source_text.startswith(VECTORS[0])
    page, ran = trap()
    page.goto("about:blank")
    for piece in pieces:
        page.evaluate(PLANT, piece)
    safe(page, ran)


@pytest.fixture
def hostile_runs(runs):
    """Runs whose names, recipes, figures, samples and outputs are vectors, as folders from elsewhere may have."""
    names = [v for v in VECTORS if "/" not in v and len(v) < 60][:6]
    for number, name in enumerate(names):
        run = Run(runs / name)
        run.checkpoints.mkdir(parents=True)
        step = run.checkpoints / "step-00000001"
        step.mkdir()
        (step / "state.json").write_text("{}")
        task = ("TranslationTask", "GanTask", VECTORS[number])[number % 3]
        (run.folder / "recipe.json").write_text(
            json.dumps({"task": task, "data": VECTORS[16], VECTORS[20]: VECTORS[20]})
        )
        (run.folder / "command.json").write_text(json.dumps({"shell": VECTORS[16], "process": 0, "time": 0}))
        (run.folder / "output.log").write_text("\n".join(VECTORS))
        (run.folder / "plan.json").write_text(json.dumps({"formula": VECTORS[16], "rates": {VECTORS[16]: [[1, 0.1]]}}))
        run.log("start", steps=1, torch=VECTORS[0], device=VECTORS[16])
        common = {"step": 1, "items_per_second": 1.0, "seconds_left": 0.0, "memory_mb": 1.0}
        run.log("log", losses={VECTORS[16]: 1.0}, gradient_norms={VECTORS[41]: 1.0}, **common)
        run.log("evaluation", step=1, figures={VECTORS[16]: 1.0})
        run.samples(1).mkdir(parents=True, exist_ok=True)
        (run.samples(1) / "texts.txt").write_text("\n".join(VECTORS))
    yield names
    for name in names:
        shutil.rmtree(runs / name)


def test_vectors_typed_and_found_as_runs_are_text_in_every_view(visit, hostile_runs):
    ran = []
    page = visit(prepare=lambda page: wire(page, ran))
    few = [vector for vector in VECTORS if len(vector) < 36 and not set(vector) & set(".!?")][:7]
    text = "A man " + " ".join(few)
    enter(page, text)
    assert page.input_value("#source-text textarea") == text
    titled(page, "Cross attention")
    safe(page, ran)
    for view in page.locator("#views").get_by_role("tab").all_inner_texts():
        open_view(page, view)
        page.locator("#views [role=tabpanel]:visible").first.wait_for()
        safe(page, ran)
    page.get_by_text("Model and search").click()
    page.click("#translation-model input")
    option = page.get_by_role("option").filter(has_text=hostile_runs[0])
    option.first.wait_for()
    option.first.click()
    page.locator("#translate-status [role=alert]").wait_for()
    safe(page, ran)


def bring(page, where, name, content, kind="text/plain"):
    """Uploads a file of that name."""
    page.locator(f"{where} input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": content})


def table(rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


@pytest.mark.slow
def test_vectors_in_uploads_are_text_in_train_and_try_on(visit, runs):
    """Names of files, of columns and of runs, cells of a table, and saved settings."""
    ran = []
    page = visit(prepare=lambda page: wire(page, ran))
    plain = [vector for vector in VECTORS if "/" not in vector and len(vector) < 80]
    assert len(plain) >= 10
    open_training_form(page, "800 steps")
    choose(page, "train-data", "My own table: two columns")
    cells = [" ".join(VECTORS[:40]), " ".join(VECTORS[40:])]
    bring(page, "#train-upload", f"{plain[0]}.csv", table([VECTORS, *[(cells * len(VECTORS))[: len(VECTORS)]] * 2]))
    page.locator("#train-preview .train-pair", has_text=VECTORS[0][:20]).wait_for()
    safe(page, ran)
    page.click("#train-source input")
    page.locator("#train-source").get_by_role("option", name=VECTORS[0], exact=True).wait_for()
    safe(page, ran)
    page.keyboard.press("Escape")
    typed(page, "train-name", plain[1])
    page.locator("#train-command", has_text=plain[1][:12]).wait_for()
    safe(page, ran)
    assert not any(name in {folder.name for folder in runs.iterdir()} for name in plain)

    page.get_by_role("tab", name="Try on", exact=True).click()
    page.locator("#tryon-more").get_by_text("More settings").click()
    hostile_settings = {key: VECTORS[number] for number, key in enumerate(("model", "weights", "size", "until"))}
    bring(page, "#saved", f"{plain[2]}.json", json.dumps(hostile_settings).encode(), "application/json")
    page.locator("#tryon-status [role=alert]").wait_for()
    safe(page, ran)
    for where, name in (("#person", plain[3]), ("#garment", plain[4])):
        page.locator(where).get_by_role("button", name="Remove Image").click()
        page.locator(f"{where} img").wait_for(state="detached")
        picture = io.BytesIO()
        Image.fromarray(np.full((64, 48, 3), 200, np.uint8)).save(picture, "PNG")
        bring(page, where, f"{name}.png", picture.getvalue(), "image/png")
        page.locator(f"{where} img").wait_for()
    safe(page, ran)
