"""`python -m vton.infer`: the released inference recipe on a data set in the released layout.

    python -m vton.infer --checkpoints DIR --data ROOT/test --pairs ROOT/test_pairs.txt --out DIR [--noise 0]

Everything is computed at 1024x768. Pictures are written lossless as <person number>_<cloth stem>.png. All pairs are
looked through before the first is dressed: what is wrong with one is said at once, and then nothing is written.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image
from torch import nn

from training.arguments import (
    CommandLine,
    a_device,
    a_folder_to_write,
    a_seed,
    an_existing_file,
    an_existing_folder,
    integer,
)
from training.command import one_sentence
from training.devices import choose_device
from training.files import write_atomic
from vton import inference, labels
from vton.inference import Conditions
from vton.inputs import pose
from vton.inputs.agnostic import agnostic_image, agnostic_parse
from vton.joints import HIPS, SHOULDERS, present
from vton.labels import read_indices
from vton.networks import alias
from vton.networks.checkpoints import load_released
from vton.networks.config import NETWORK_SIZE
from vton.networks.segmentation import binary_noise
from vton.record import png
from vton.tensors import labels_to_tensor, mask_to_tensor, picture_to_tensor, tensor_to_picture

SIZE = (1024, 768)
# Of each part of a pair: its folder in either naming style, and its file there.
FILES = {
    "image": (("image",), "{person}"),
    "parse": (("image-parse", "image-parse-v3"), "{stem}.png"),
    "keypoints": (("openpose-json", "openpose_json"), "{stem}_keypoints.json"),
    "pose": (("openpose-img", "openpose_img"), "{stem}_rendered.png"),
    "cloth": (("cloth",), "{cloth}"),
    "cloth_mask": (("cloth-mask",), "{cloth}"),
}


@dataclass
class Sample:
    """One pair at 1024x768."""

    person: np.ndarray  # (H,W,3) uint8
    parse: np.ndarray  # (H,W) LIP
    keypoints: np.ndarray  # (25,3)
    pose: np.ndarray  # (H,W,3) uint8
    cloth: np.ndarray  # (H,W,3) uint8
    cloth_mask: np.ndarray  # (H,W) bool


def read_pairs(file: Path) -> list[tuple[str, str]]:
    """(person file, cloth file) per line. ValueError for an empty list, and for a line that holds something else."""
    pairs = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 2 or any(Path(p).name != p for p in parts):
            raise ValueError(f"{file.name}, line {number}: expected 'person.jpg cloth.jpg', got '{line[:80]}'.")
        pairs.append((parts[0], parts[1]))
    if not pairs:
        raise ValueError(f"{file.name} holds no pair; expected 'person.jpg cloth.jpg' on each line.")
    return pairs


def find_folders(root: Path) -> dict[str, Path]:
    """The folders of a data set in either naming style. FileNotFoundError names the missing one."""
    folders = {}
    for kind, (names, _) in FILES.items():
        folder = next((root / n for n in names if (root / n).is_dir()), None)
        if folder is None:
            raise FileNotFoundError(f"'{root.name}' has no folder {' or '.join(names)}.")
        folders[kind] = folder
    return folders


def sample_files(folders: dict[str, Path], person: str, cloth: str) -> dict[str, Path]:
    """The six files of a pair. FileNotFoundError names the missing one."""
    words = {"person": person, "stem": Path(person).stem, "cloth": cloth}
    files = {kind: folders[kind] / name.format(**words) for kind, (_, name) in FILES.items()}
    for file in files.values():
        if not file.is_file():
            raise FileNotFoundError(f"{_name(file)} is missing, which the pair '{person} {cloth}' needs.")
    return files


def _name(file: Path) -> str:
    """A file by its folder and its name."""
    return f"{file.parent.name}/{file.name}"


def check_sample(files: dict[str, Path]) -> None:
    """Looks at a pair's files without decoding the photographs. ValueError names the file and says what is wrong."""
    sizes = {}
    for kind in ("image", "parse", "cloth", "cloth_mask", "pose"):
        try:
            with Image.open(files[kind]) as picture:
                sizes[kind] = f"{picture.height}x{picture.width}"
        except OSError:
            raise ValueError(f"{_name(files[kind])} cannot be read as a picture.") from None
    for kind, other, what in (("parse", "image", "photograph"), ("cloth_mask", "cloth", "picture")):
        if sizes[kind] != sizes[other]:
            raise ValueError(f"{_name(files[kind])} has size {sizes[kind]}, its {what} {sizes[other]}.")
    parse = read_indices(files["parse"])
    if parse.max() >= len(labels.LIP):
        raise ValueError(f"{_name(files['parse'])} holds label {parse.max()}; a parse holds the labels 0 to 19.")
    keypoints, name = pose.load_openpose_json(files["keypoints"]), files["keypoints"].name
    for what, pair in (("shoulders", SHOULDERS), ("hips", HIPS)):
        if not present(keypoints)[list(pair)].all():
            raise ValueError(f"{name} does not hold both {what}; the person cannot be dressed.")
        if np.abs(keypoints[pair[0], :2] - keypoints[pair[1], :2]).max() < 1:
            raise ValueError(f"{name} has both {what} in one place; the person cannot be dressed.")


def read_sample(files: dict[str, Path]) -> Sample:
    """Reads a pair. ValueError names the file and what is wrong with it."""
    check_sample(files)

    def fit(image, how=cv2.INTER_AREA):
        same = image.shape[:2] == SIZE
        return np.ascontiguousarray(image) if same else cv2.resize(image, SIZE[::-1], interpolation=how)

    pictures = {}
    for kind in ("image", "pose", "cloth", "cloth_mask"):
        image = cv2.imread(str(files[kind]), cv2.IMREAD_GRAYSCALE if kind == "cloth_mask" else cv2.IMREAD_COLOR)
        if image is None:
            raise ValueError(f"{_name(files[kind])} cannot be read as a picture.")
        pictures[kind] = image
    person, cloth, skeleton = (pictures[kind][..., ::-1] for kind in ("image", "cloth", "pose"))
    keypoints = pose.load_openpose_json(files["keypoints"])
    keypoints[:, :2] *= (SIZE[1] / person.shape[1], SIZE[0] / person.shape[0])
    parse = fit(read_indices(files["parse"]), cv2.INTER_NEAREST)
    return Sample(fit(person), parse, keypoints, fit(skeleton), fit(cloth), fit(pictures["cloth_mask"]) >= 128)


def synthesise(
    networks: dict[str, nn.Module], sample: Sample, seed: int | None = 0, device: torch.device | str = "cpu"
) -> np.ndarray:
    """The released recipe on one pair -> (1024, 768, 3) uint8. seed: of both noises; None sets them to zero."""
    agnostic = agnostic_image(sample.person, sample.parse, sample.keypoints)
    parse_agnostic = labels.lip_to_13(agnostic_parse(sample.parse, sample.keypoints))
    inputs = Conditions(
        picture_to_tensor(agnostic, device),
        picture_to_tensor(sample.pose, device),
        picture_to_tensor(sample.cloth, device),
        mask_to_tensor(sample.cloth_mask, device),
        labels_to_tensor(parse_agnostic, len(labels.SEGMENTATION), device),
    )
    noise = planes = None
    if seed is not None:
        noise = binary_noise((1, 1, *NETWORK_SIZE), torch.Generator().manual_seed(seed), device)
        planes = alias.gaussian_noise(seed, device)
    classes = inference.predict_segmentation(networks["segmentation"], inputs, noise)[0].cpu().numpy()
    seven = labels_to_tensor(labels.thirteen_to_7(classes), len(labels.ALIAS), device)
    region = seven[:, labels.ALIAS_UPPER : labels.ALIAS_UPPER + 1]
    theta, _ = inference.predict_warp(networks["matching"], inputs, region, fit=False)
    warp = inference.warp_cloth(theta, inputs, soft_mask=True)
    misalign, _ = alias.misalignment(seven, warp.mask)
    picture, *_ = inference.synthesise(networks["alias"], inputs, warp.cloth, seven, misalign, "alias", planes)
    return tensor_to_picture(picture)


def result_name(person: str, cloth: str) -> str:
    """08909_00.jpg with 06802_00.jpg -> 08909_06802_00.png."""
    return f"{Path(person).stem.split('_')[0]}_{Path(cloth).stem}.png"


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = CommandLine(prog="python -m vton.infer", description=__doc__)
    parser.add_argument("--checkpoints", type=an_existing_folder, required=True, metavar="DIR")
    parser.add_argument("--data", type=an_existing_folder, required=True, metavar="DIR")
    parser.add_argument("--pairs", type=an_existing_file, required=True, metavar="FILE")
    parser.add_argument("--out", type=a_folder_to_write, required=True, metavar="DIR")
    noise = "0 sets the noise channel and the noise planes to zero"
    parser.add_argument("--noise", type=integer(0, 1), default=1, choices=(0, 1), help=noise)
    parser.add_argument("--seed", type=a_seed, default=0)
    parser.add_argument("--skip", action="store_true", help="leave out pairs that cannot be dressed, and name them")
    parser.add_argument("--device", type=a_device, default="auto")
    options = parser.parse_args(argv)
    device = choose_device(options.device)
    pairs, folders = read_pairs(options.pairs), find_folders(options.data)
    files = {}
    for pair in pairs:
        try:
            paths = sample_files(folders, *pair)
            check_sample(paths)
            files[pair] = paths
        except (ValueError, FileNotFoundError) as error:
            if not options.skip:
                raise
            print(f"skipped {' '.join(pair)}: {error}", file=sys.stderr)
    if not files:
        raise ValueError(f"No pair of {options.pairs.name} can be dressed.")
    networks = {k: n.to(device) for k, n in load_released(options.checkpoints).items()}
    options.out.mkdir(parents=True, exist_ok=True)
    for pair, paths in files.items():
        picture = synthesise(networks, read_sample(paths), options.seed if options.noise else None, device)
        write_atomic(options.out / result_name(*pair), png(picture))
        print(result_name(*pair), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
