"""`python -m lab.tryon.pseudo_labels --people DIR --parser DIR --out DIR`: labels of unlabelled people for
self-training.

A trained parser is the teacher (Xie et al., Noisy Student, CVPR 2020): its mean answer over sizes and mirror images
becomes the parse, and where it is unsure, the pixel stays out of the loss.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import cv2
import numpy as np
from torch import nn

from training.arguments import CommandLine, a_folder_to_write, an_existing_folder
from training.command import one_sentence
from vton.inputs import pose
from vton.inputs.parsing import label_probabilities
from vton.labels import read_indices
from vton.pipeline import load_network

HEIGHTS = (256, 320, 400)  # of the picture as the teacher sees it
SURE = 0.6  # least probability of a label that the student learns


def label_people(parser: nn.Module, people: Path, out: Path) -> int:
    """Writes a folder of labelled people in the layout of `vton.data`; returns how many.

    Args:
        parser: the teacher. people: folder with image/, openpose-json/, person-mask/, viton_crop.tsv and list.txt.
        out: gets the same, with image-parse/ (the teacher's labels), carried/ (255 where it is unsure), train.txt and
            val.txt.

    Raises FileNotFoundError with one sentence when a file is missing.
    """
    if not (people / "list.txt").is_file():
        raise FileNotFoundError(f"'{people.name}' has no file list.txt.")
    names = (people / "list.txt").read_text().split()
    for folder in ("image", "openpose-json", "person-mask"):
        shutil.copytree(people / folder, out / folder, dirs_exist_ok=True)
    shutil.copy(people / "viton_crop.tsv", out)
    for folder in ("image-parse", "carried"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        image = cv2.imread(str(people / "image" / f"{name}.jpg"))
        if image is None:
            raise FileNotFoundError(f"'{people.name}' has no picture image/{name}.jpg.")
        keypoints = pose.load_openpose_json(people / "openpose-json" / f"{name}_keypoints.json")
        mask = read_indices(people / "person-mask" / f"{name}.png").astype(np.float32) / 255
        answers = [label_probabilities(parser, image[..., ::-1], keypoints, mask, height=height) for height in HEIGHTS]
        probabilities = np.asarray(sum(answers) / len(answers))
        cv2.imwrite(str(out / "image-parse" / f"{name}.png"), probabilities.argmax(0).astype(np.uint8))
        cv2.imwrite(str(out / "carried" / f"{name}.png"), (probabilities.max(0) < SURE).astype(np.uint8) * 255)
    (out / "train.txt").write_text("\n".join(names) + "\n")
    (out / "val.txt").write_text("")
    return len(names)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    command = CommandLine(prog="python -m lab.tryon.pseudo_labels", description=__doc__.splitlines()[0])
    command.add_argument("--people", type=an_existing_folder, required=True, metavar="DIR")
    command.add_argument(
        "--parser", type=an_existing_folder, required=True, metavar="DIR", help="weights of the teacher"
    )
    command.add_argument("--out", type=a_folder_to_write, required=True, metavar="DIR")
    options = command.parse_args(argv)
    parser = load_network("parser", options.parser)
    print(f"{label_people(parser, options.people, options.out)} people labelled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
