"""`python -m vton.tryon person.jpg garment.jpg --out DIR`: every map of a try-on as a PNG named by its stage."""
from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from PIL import Image

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vton.tryon", description="Try a garment on a person.")
    parser.add_argument("person", type=Path)
    parser.add_argument("garment", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the maps")
    parser.add_argument("--size", default="512x384", help="of the maps: 256x192, 512x384 or 1024x768")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="tryon-lite", help="name of a shipped model, or a folder")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-fit", action="store_true", help="leave the control points as the network predicts them")
    parser.add_argument("--norm", default="alias", choices=("alias", "instance"))
    parser.add_argument("--no-noise", action="store_true")
    options = parser.parse_args(argv)
    try:
        size = tuple(int(v) for v in options.size.lower().split("x"))
        if len(size) != 2:
            raise ValueError
    except ValueError:
        print(f"error: --size must look like 512x384, not '{options.size}'.", file=sys.stderr)
        return 2
    from vton.pipeline import TryOn
    try:
        tryon = TryOn.from_pretrained(options.model, options.device)
        result = tryon.run(options.person, options.garment, size=size, seed=options.seed, fit=not options.no_fit,
                           norm=options.norm, noise=not options.no_noise)
        options.out.mkdir(parents=True, exist_ok=True)
        for name, picture in result.pictures().items():
            Image.fromarray(picture).save(options.out / f"{name}.png")
        settings = {"weights": result.weights, **asdict(result.options), "seconds": result.seconds, "notes": list(result.notes)}
        (options.out / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
