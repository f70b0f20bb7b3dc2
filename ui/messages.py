"""Errors to one sentence, and the small HTML notes that carry them."""

import logging
from html import escape

log = logging.getLogger("atelier")

GENERAL = "Something went wrong on this page's side; its log has the details. Try again or change the input."
OUT_OF_MEMORY = "There was not enough memory for this; choose a smaller size or a shorter text and try again."


def sentence(error: BaseException) -> str:
    """The sentence a visitor reads for `error`, plain text, not yet escaped.

    A ValueError (InputError is one) and a FileNotFoundError of our own say what to do and pass through. Everything
    else is logged with its traceback and becomes a general sentence, so that no internals reach the page.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return OUT_OF_MEMORY
    # An error of the operating system carries an errno and a path of this machine; one of our own carries a sentence.
    ours = isinstance(error, ValueError) or (isinstance(error, FileNotFoundError) and error.errno is None)
    text = " ".join(str(error).split())
    if ours and text and not isinstance(error, UnicodeError):
        return text
    log.error("unexpected error", exc_info=error)
    return GENERAL


def alert(text: str) -> str:
    """HTML of a sentence that asks the visitor to change something; `text` is escaped here."""
    return f'<div class="note note-alert" role="alert">{escape(text)}</div>'


def failure(error: BaseException) -> str:
    """HTML of an error's sentence."""
    return alert(sentence(error))


def is_alert(html: str | None) -> bool:
    """Whether some HTML is that of `alert`."""
    return 'role="alert"' in (html or "")


def status(text: str) -> str:
    """HTML of a line that reports what was done; `text` is escaped here."""
    return f'<div class="note note-status" role="status">{escape(text)}</div>'


def notes(lines: list[str]) -> str:
    """HTML of a list of remarks about a result, empty without any; every line is escaped here."""
    if not lines:
        return ""
    return '<ul class="note note-list">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
