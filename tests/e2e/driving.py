"""What a visitor of the page does again and again, and the shape of the model that the page begins with."""

import json

from training import assets
from transformer.translate import DEFAULT_MODEL

SENTENCE = "A man is riding a bicycle."
_SHAPE = json.loads((assets.model_dir(DEFAULT_MODEL) / "config.json").read_text())["transformer"]
HEADS = _SHAPE["heads"]
WIDTH = _SHAPE["d_model"]
# Cross-attention is the decoder's, and an encoder may have more layers than the decoder.
LAYERS = {
    "encoder": _SHAPE["encoder_layers"],
    "decoder": _SHAPE["decoder_layers"],
    "cross": _SHAPE["decoder_layers"],
}


# Whether the sentence that is shown, cut after its beginning, is that of a text.
SHOWN = """text => text.trim().replace(/\\s+/g, ' ').startsWith(
  (document.querySelector('#now span')?.textContent || '\\u0000').slice(0, 30).replace(/…$/, ''))"""


def enter(page, text=SENTENCE):
    """Enter a text, ask for its translation, and wait until it is there, or a sentence that says why not."""
    told = page.inner_text("#translate-status")
    if not page.evaluate(SHOWN, text):
        told = None  # two texts may have the same count of tokens in the same time
    page.fill("#source-text textarea", text)
    page.click("#translate-button")
    translated(page, told)


def translated(page, told):
    """Wait until the status says something else than `told` (or None), and what is shown belongs to the text."""
    page.wait_for_function(
        f"""told => {{
          const status = document.querySelector('#translate-status');
          if (status.querySelector('[role=alert]')) return true;
          return status.innerText !== told && ({SHOWN})(document.querySelector('#source-text textarea').value);
        }}""",
        arg=told,
    )


def choose_kind(page, kind, where="kind"):
    """Choose "cross", "encoder" or "decoder"."""
    page.locator(f"#{where} label", has_text=f"({kind.lower()})").click()


def translate(page, text=SENTENCE):
    """The same, and wait for the first view."""
    enter(page, text)
    titled(page, "Cross attention")
    page.locator("#translate-status", has_text="pieces/s").wait_for()


def titled(page, title, where="#heat-map"):
    """Wait for the map of that title and return its drawing."""
    page.locator(f"{where} .heat-title", has_text=title).wait_for()
    return page.locator(f"{where} svg")


def labels(page, axis, where="#heat-map"):
    """Tokens on an axis of a map, "row" or "column"."""
    return page.locator(f"{where} .heat-label[data-{axis}]").evaluate_all(
        "nodes => nodes.map(node => node.querySelector('title').textContent)"
    )


def open_view(page, name):
    """Open one of the views below a translation."""
    page.locator("#views").get_by_role("tab", name=name, exact=True).click()


def ask_what_if(page, part):
    """Open What if, and of it "begin", "model" or "sides"."""
    open_view(page, "What if")
    page.locator(f"#what-if input[value={part}]").check()


def choose(page, dropdown, option):
    """Choose an option of a dropdown by its text."""
    page.click(f"#{dropdown} input")
    found = page.locator(f"#{dropdown}").get_by_role("option", name=option, exact=True)
    found.click()
    found.wait_for(state="hidden")


def choose_model(page, name, pair):
    """Choose the model that translates, and wait until its first language pair is chosen."""
    if not page.locator("#translation-model input").is_visible():
        page.get_by_text("Model and search").click()
    choose(page, "translation-model", name)
    page.wait_for_function("pair => document.querySelector('#pair input').value === pair", arg=pair)


def set_number(page, where, value):
    """Type the number of a slider or a number field."""
    field = page.locator(f"{where} input[type=number]")
    field.fill(str(value))
    field.press("Tab")


def typed(page, name, value):
    """Type into a text field as a person does, key by key; again if the page was still filling the field itself."""
    box = page.locator(f"#{name} input, #{name} textarea").first
    for _ in range(3):
        box.fill("")
        box.press_sequentially(value)
        if box.input_value() == value:
            return
    raise AssertionError(f"{name} holds {box.input_value()!r} instead of {value!r}")


def open_training_form(page, about):
    """The form of the Train tab, filled for its first network, with all that is folded away.

    about: words of the line on size and time.
    """
    page.get_by_role("tab", name="Train").click()
    if not page.locator("#train-start").is_visible():
        page.locator("#train-form").get_by_role("button", name="Start a training").click()
    page.locator("#train-about", has_text=about).wait_for()
    page.get_by_role("button", name="Everything else").click()
    page.locator("#train-command", has_text="--run").wait_for()


FIND_BOX = """label => [...document.querySelectorAll('[id^=setting-]')].find(
  box => box.querySelector('[data-testid=block-info]')?.innerText.trim() === label)?.id"""


def set_up_training(page, name, **fields):
    """Type settings of a training and its name, and wait until the command has them. fields: option="label: text"."""
    for option, told in fields.items():
        label, _, value = told.rpartition(": ")
        typed(page, page.wait_for_function(FIND_BOX, arg=label).json_value(), value)
        page.locator("#train-command", has_text=f"--{option.replace('_', '-')} {value}").wait_for()
    typed(page, "train-name", name)
    page.locator("#train-command", has_text=name).wait_for()
