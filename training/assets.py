"""Finds what the project ships: trained weights and examples.

In a checkout they lie in `assets/`; a wheel installs the same folder as `atelier_assets/` beside the packages.
"""

from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[1]


def assets_dir() -> Path:
    """Folder that holds `models/` and `examples/`.

    Raises FileNotFoundError if neither a checkout nor an installed wheel carries it.
    """
    for name in ("assets", "atelier_assets"):
        folder = _BESIDE / name
        # A foreign folder that happens to be called `assets` has no models in it.
        if (folder / "models").is_dir():
            return folder
    raise FileNotFoundError(
        f"No shipped models were found beside {_BESIDE}; install the project's wheel or work from its checkout."
    )


def list_models() -> list[str]:
    """Names of the shipped models, sorted: folders in `models/` with a `config.json` in them or one level below."""
    models = assets_dir() / "models"
    return sorted({config.relative_to(models).parts[0] for config in models.glob("*/**/config.json")})


def model_dir(name: str) -> Path:
    """Folder of the shipped model `name`: `CARD.md`, `config.json`, `model.safetensors` and a tokenizer if it has one;
    a model of several networks has one such folder for each of them.
    Raises FileNotFoundError, with the known names, if no such model is shipped.
    """
    names = list_models()
    # Only listed names are joined to a path, so a name can never point outside the folder.
    if name not in names:
        raise FileNotFoundError(
            f"There is no shipped model {name!r}; the shipped models are: {', '.join(names) or 'none'}."
        )
    return assets_dir() / "models" / name


def model_or_dir(name: str | Path) -> Path:
    """`name` itself where it is a folder, else that of the shipped model; raises as `model_dir`."""
    return Path(name) if Path(name).is_dir() else model_dir(str(name))


def drapes_file() -> Path:
    """The packed file of draped garments that ships, see `vton.data.draped.pack`."""
    return assets_dir() / "drapes" / "drapes.npz"


def examples_dir() -> Path:
    """Folder of the drawn and public-domain example pictures that may be shipped."""
    return assets_dir() / "examples"
