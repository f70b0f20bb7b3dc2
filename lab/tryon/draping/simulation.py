"""Cloth on a moving body by extended position-based dynamics, in NVIDIA Warp on one core.

After Macklin et al., "XPBD: Position-Based Simulation of Compliant Constrained Dynamics" (2016), and "Small Steps in
Physics Simulation" (2019): one pass over the constraints in each of many short steps. Constraints keep the lengths of
edges and of pairs across an edge (bending), draw seams together, keep cloth apart from cloth and outside of the body,
with friction. One thread runs through all of them in turn (Gauss-Seidel), which converges faster than parallel passes.
"""

# Warp reads the annotations of its kernels, so they are no strings here.
# mypy: ignore-errors

import warp as wp

NEIGHBOURS = 20  # of a point that cloth may touch, at most
REACH = 0.06  # metres from the body within which contact is sought


@wp.kernel
def find_contacts(
    mesh: wp.uint64,
    x: wp.array(dtype=wp.vec3),
    face: wp.array(dtype=int),
    place: wp.array(dtype=wp.vec2),
):
    """The face of the body that is nearest to each point, and the nearest place on it; -1 where none is near."""
    i = wp.tid()
    query = wp.mesh_query_point_no_sign(mesh, x[i], REACH)
    if query.result:
        face[i] = query.face
        place[i] = wp.vec2(query.u, query.v)
    else:
        face[i] = -1


@wp.kernel
def find_neighbours(
    grid: wp.uint64,
    x: wp.array(dtype=wp.vec3),
    flat: wp.array(dtype=wp.vec3),
    radius: float,
    apart: float,
    neighbours: wp.array(dtype=int),
    counts: wp.array(dtype=int),
):
    """Points of the cloth nearer than `radius` that are not neighbours in the panel (`apart`, of flat x, y, panel)."""
    i = wp.tid()
    n = int(0)  # noqa: UP018 - Warp takes a plain 0 for a constant
    for j in wp.hash_grid_query(grid, x[i], radius):
        if j > i and n < NEIGHBOURS:
            if wp.length(x[i] - x[j]) < radius and wp.length(flat[i] - flat[j]) > apart:
                neighbours[i * NEIGHBOURS + n] = j
                n += 1
    counts[i] = n


@wp.kernel
def advance(
    steps: int,
    first: float,
    last: float,
    dt: float,
    gravity: float,
    keep: float,
    friction: float,
    skin: float,
    thick: float,
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    old: wp.array(dtype=wp.vec3),
    pair: wp.array(dtype=wp.vec2i),
    rest: wp.array(dtype=float),
    soft: wp.array(dtype=float),
    seam: wp.array(dtype=wp.vec2i),
    open: wp.array(dtype=float),
    closed_from: float,
    closed_to: float,
    neighbours: wp.array(dtype=int),
    counts: wp.array(dtype=int),
    faces: wp.array(dtype=int),
    face: wp.array(dtype=int),
    place: wp.array(dtype=wp.vec2),
    before: wp.array(dtype=wp.vec3),
    after: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    tucked: wp.array(dtype=float),
):
    """One frame in `steps` short steps, all by one thread.

    The body goes from `before` to `after` between shares `first` and `last` of the way; the seams' lengths from
    `closed_from` to `closed_to` of what they were `open` at first. keep: share of the speed that is kept in a step.
    tucked: how far each point may be from the body, 0 = any distance.
    """
    n = x.shape[0]
    for s in range(steps):
        share = (float(s) + 1.0) / float(steps)
        past = float(s) / float(steps)
        for i in range(n):
            old[i] = x[i]
            speed = v[i] + wp.vec3(0.0, 0.0, -gravity * dt)
            fast = wp.length(speed)
            if fast > 4.0:
                speed = speed * (4.0 / fast)
            x[i] = x[i] + speed * dt
        for k in range(seam.shape[0]):
            i = seam[k][0]
            j = seam[k][1]
            target = open[k] * (closed_from + (closed_to - closed_from) * share)
            apart = x[j] - x[i]
            length = wp.length(apart)
            if length > target and length > 1.0e-9:
                move = apart * (0.5 * (length - target) / length)
                x[i] = x[i] + move
                x[j] = x[j] - move
        for k in range(pair.shape[0]):
            i = pair[k][0]
            j = pair[k][1]
            apart = x[j] - x[i]
            length = wp.length(apart)
            if length > 1.0e-9:
                move = apart * ((length - rest[k]) / (length * (2.0 + soft[k])))
                x[i] = x[i] + move
                x[j] = x[j] - move
        for i in range(n):
            for k in range(counts[i]):
                j = neighbours[i * NEIGHBOURS + k]
                apart = x[j] - x[i]
                length = wp.length(apart)
                if length < thick and length > 1.0e-9:
                    move = apart * (0.5 * (length - thick) / length)
                    x[i] = x[i] + move
                    x[j] = x[j] - move
                    slip = 0.25 * ((x[j] - old[j]) - (x[i] - old[i]))
                    x[i] = x[i] + slip
                    x[j] = x[j] - slip
        for i in range(n):
            f = face[i]
            if f >= 0:
                a = faces[3 * f]
                b = faces[3 * f + 1]
                c = faces[3 * f + 2]
                p = place[i]
                w = 1.0 - p[0] - p[1]
                start = before[a] * p[0] + before[b] * p[1] + before[c] * w
                end = after[a] * p[0] + after[b] * p[1] + after[c] * w
                here = start + (end - start) * (first + (last - first) * share)
                there = start + (end - start) * (first + (last - first) * past)
                normal = wp.normalize(normals[a] * p[0] + normals[b] * p[1] + normals[c] * w)
                depth = wp.dot(x[i] - here, normal)
                if tucked[i] > 0.0 and depth > tucked[i]:
                    x[i] = x[i] - normal * (0.5 * (depth - tucked[i]))
                if depth < skin:
                    push = skin - depth
                    x[i] = x[i] + normal * push
                    slip = (x[i] - old[i]) - (here - there)
                    slip = slip - normal * wp.dot(slip, normal)
                    size = wp.length(slip)
                    if size > 1.0e-9:
                        x[i] = x[i] - slip * wp.min(1.0, friction * push / size)
        for i in range(n):
            v[i] = (x[i] - old[i]) * (keep / dt)
