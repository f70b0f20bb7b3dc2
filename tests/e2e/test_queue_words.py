"""A place in the queue is told in words and seconds, whatever Gradio's line says."""

from ui import theme

LINES = {
    "queue: 2/3 | 4.1/16.4s": "Place 2 in the queue, ready in about 12 s",
    "queue: 1/1 |  0.5s": "Place 1 in the queue",
    "queue: 1/1 | 20.0/16.4s": "Place 1 in the queue",
    "processing | 3.0/16.4s": None,
}


def test_a_place_in_the_queue_is_told_in_words_and_seconds(browser):
    page = browser.new_page()
    page.set_content("".join(f'<div class="progress-text">{line}</div>' for line in LINES))
    page.evaluate(f"() => {{ {(theme.STATIC / 'queue.js').read_text(encoding='utf-8')} }}")
    page.wait_for_selector("[data-words]")
    assert page.eval_on_selector_all("div", "all => all.map(one => one.dataset.words ?? null)") == list(LINES.values())
    # The run has begun: the words go.
    page.evaluate(
        "() => { for (const line of document.querySelectorAll('div')) line.textContent = 'processing | 1s'; }"
    )
    page.wait_for_function("() => !document.querySelector('[data-words]')")
    page.close()
