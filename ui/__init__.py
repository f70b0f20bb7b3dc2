"""The page: one module per tab, each with its layout and its events."""

import os

# Read by Gradio when it is imported, so it has to be said before; the page talks to nobody but its visitor.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
