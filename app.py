"""Starts the page: `python app.py`, or `python app.py --host 0.0.0.0 --port 8000`."""

import argparse
import importlib.util
import os
from pathlib import Path

from training.arguments import CommandLine, Misuse, a_folder_to_write, integer

TRAINING_VARIABLE = "ATELIER_TRAINING"  # set to 1 on a Space: visitors may train, within limits
LEVELS = ("debug", "info", "warning", "error")
RELEASED_VARIABLE = "ATELIER_RELEASED"  # folders as for --released, separated by the system's path separator


def on_spaces() -> bool:
    """Whether this is a Space of Hugging Face."""
    return "SPACE_ID" in os.environ or os.environ.get("SYSTEM") == "spaces"


def parser() -> CommandLine:
    """The command line."""
    out = CommandLine(description="Atelier: translate and try on in the browser, and look inside.")
    out.add_argument("--host", default="0.0.0.0" if on_spaces() else "127.0.0.1", help="address to listen on")
    port = os.environ.get("GRADIO_SERVER_PORT", "7860")
    out.add_argument("--port", type=integer(0, 65535), default=port, help="port to listen on")
    out.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda", "mps"))
    out.add_argument("--translation-model", help="shipped model or folder")
    out.add_argument("--tryon-model", help="shipped model or folder")
    out.add_argument(
        "--runs", type=a_folder_to_write, default="runs", help="folder whose runs the Train tab shows and starts"
    )
    out.add_argument(
        "--local",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="visitors may name folders of this machine and models of the Hub; "
        "by default only if the page listens to this machine alone",
    )
    out.add_argument(
        "--training",
        choices=("on", "limited", "off"),
        help="whether visitors may start trainings: by default only if the page listens to this machine "
        "alone; on a Space it is off, or limited where the "
        f"environment variable {TRAINING_VARIABLE} is 1",
    )
    out.add_argument(
        "--released",
        metavar="[NAME=]DIR",
        action="append",
        default=[],
        help="folder with the released seg_final.pth, gmm_final.pth and alias_final.pth, offered in "
        f"Try on; may be repeated, or stand in {RELEASED_VARIABLE}",
    )
    out.add_argument("--log-level", default="info", choices=LEVELS, help="one line a run at info, never its content")
    out.add_argument("--mcp", action="store_true", help="offer the API as MCP tools, too (needs the extra `mcp`)")
    out.add_argument("--open", action="store_true", help="open the page in a browser")
    return out


def permissions(options: argparse.Namespace) -> tuple[bool, str]:
    """(whether visitors may name what lies on this machine, "on", "limited" or "off" for training)."""
    local = options.host in ("127.0.0.1", "localhost", "::1") if options.local is None else options.local
    if on_spaces():  # whatever the command line says: there the operator's word is the environment
        return False, "limited" if os.environ.get(TRAINING_VARIABLE) == "1" else "off"
    return local, options.training or ("on" if local else "off")


def released_folders(entries: list[str]) -> dict[str, Path]:
    """Folders by the names that the page offers. Raises Misuse for one that is not there.

    entries: "NAME=DIR" or "DIR"; those of `RELEASED_VARIABLE` come after them.
    """
    out = {}
    for entry in entries + [one for one in os.environ.get(RELEASED_VARIABLE, "").split(os.pathsep) if one]:
        name, _, folder = entry.rpartition("=")
        if not os.path.isdir(folder):
            raise Misuse(f"--released: there is no folder {folder}.")
        out[name or Path(folder).resolve().name] = Path(folder)
    return out


def main(argv: list[str] | None = None) -> None:
    """Parse the command line, build the page and serve it until interrupted; a mistake is one sentence and status 2."""
    command = parser()
    try:
        serve(command.parse_args(argv))
    except Misuse as error:
        command.exit(2, f"error: {error}\n")


def serve(options: argparse.Namespace) -> None:
    """Build the page and serve it until interrupted. Raises Misuse for options that this machine cannot follow."""
    local, training = permissions(options)
    releases = released_folders(options.released)
    if options.mcp and importlib.util.find_spec("mcp") is None:
        raise Misuse("--mcp needs the extra `mcp`: pip install -e '.[mcp]'.")

    from ui import shared_gpu  # before torch

    device = "cpu" if options.device == "auto" and shared_gpu.is_shared_space() else options.device

    from training.devices import choose_device
    from training.memory import keep_memory
    from training.start import PUBLIC, Limits
    from ui import gradio_private, page, services, serving

    try:
        choose_device(device)
    except ValueError as error:
        raise Misuse(str(error)) from None
    serving.set_up_log(options.log_level)
    keep_memory()
    models = {"translation_model": options.translation_model, "tryon_model": options.tryon_model}
    blocks = page.build(
        services.Services(
            device=device,
            runs=options.runs,
            local=local,
            releases=releases,
            training={"on": Limits(), "limited": PUBLIC, "off": None}[training],
            **{name: value for name, value in models.items() if value},
        )
    )
    if options.mcp:
        gradio_private.make_agents_patient()
    blocks.launch(
        server_name=options.host,
        server_port=options.port,
        inbrowser=options.open,
        share=False,
        mcp_server=options.mcp,
        **page.launch_options(),
    )


if __name__ == "__main__":
    main()
