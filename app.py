"""Starts the page: `python app.py`, or `python app.py --host 0.0.0.0 --port 8000`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def main(argv: list[str] | None = None) -> None:
    """Parse the command line, build the page and serve it until interrupted."""
    on_spaces = os.environ.get("SYSTEM") == "spaces"
    parser = argparse.ArgumentParser(description="Atelier: translate and try on in the browser, and look inside.")
    parser.add_argument("--host", default="0.0.0.0" if on_spaces else "127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=7860, help="port to listen on")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda", "mps"))
    parser.add_argument("--translation-model", help="shipped model or folder")
    parser.add_argument("--tryon-model", help="shipped model or folder")
    parser.add_argument("--runs", default="runs", help="folder whose runs the Train tab shows")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    options = parser.parse_args(argv)

    from ui import page, services

    chosen = {"translation_model": options.translation_model, "tryon_model": options.tryon_model}
    built = page.build(
        services.Services(device=options.device, **{name: value for name, value in chosen.items() if value}),
        runs=Path(options.runs),
    )
    built.launch(
        server_name=options.host,
        server_port=options.port,
        inbrowser=options.open,
        share=False,
        **page.launch_options(),
    )


if __name__ == "__main__":
    main()
