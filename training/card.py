"""The card that travels with an exported checkpoint: what it is and how it was made, out of the run folder alone."""

from typing import Any

from training.run import Run


def text(run: Run, step: int, title: str) -> str:
    """Markdown: network, figures at that update, and the whole recipe. Raises ValueError when the folder is no run."""
    recipe = run.recipe()
    figures: dict[str, Any] = {}
    start: dict[str, Any] = {}
    losses: dict[str, Any] = {}
    for event in run.events():
        if event["event"] == "start":
            start = event
        if event.get("step", 0) <= step:
            figures = event["figures"] if event["event"] == "evaluation" else figures
            losses = event["losses"] if event["event"] == "log" else losses
    data = recipe.get("pack") or recipe.get("data") or "draped people"
    lines = [
        f"# {title}, update {step:,} of the run {_plain(run.folder.name)}",
        "",
        f"Trained by Atelier (`{_plain(recipe.get('task', ''))}`) with torch "
        f"{_plain(start.get('torch', 'of unknown version'))} on "
        f"{_plain(start.get('device', 'an unknown device'))}. Weights as float16.",
        "",
        f"Data: `{_plain(data)}`. The licence of the data holds for the weights; nobody has "
        f"checked what they may be used for.",
        "",
        "| Figure | Value |",
        "|---|---|",
        *[f"| {_plain(k)}, validation | {v:.4g} |" for k, v in figures.items() if isinstance(v, (int, float))],
        *[f"| {_plain(k)}, training | {v:.4g} |" for k, v in losses.items() if isinstance(v, (int, float))],
        "",
        "| Setting | Value |",
        "|---|---|",
        *[f"| {_plain(k)} | {_plain(v)} |" for k, v in recipe.items() if k != "task"],
        "",
    ]
    return "\n".join(lines)


def _plain(value: object) -> str:
    """Text that cannot break out of a table cell or a line."""
    return str(value).replace("\n", " ").replace("|", "/").replace("`", "'").replace("<", "&lt;")
