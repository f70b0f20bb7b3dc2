"""The page's style sheet, as Gradio takes it."""

import re

from ui import theme


def media_selectors(css):
    """The selectors of the rules between the brackets of every `@media`."""
    bodies = re.findall(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL))
    return [selector.strip() for body in bodies for selector in re.findall(r"([^{}]+)\{", body)]


def test_rules_for_some_screens_match_behind_the_beginning_that_gradio_gives_them():
    """Within `@media` Gradio writes `.gradio-container .contain` before everything that stands between two commas."""
    selectors = media_selectors(theme.css())
    assert len(selectors) > 50
    for selector in selectors:
        assert ".gradio-container" not in selector, selector
        assert not re.search(r":has\([^():]*,", selector), f"{selector}: write :has(:is(…, …))"
