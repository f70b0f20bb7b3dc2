// The thin-plate spline of vton/networks/warping.py: for every place of the output where in the cloth to look. It is
// linear in the places that the control points look at, so all but these is known in advance.
const EXTENT = 0.9; // control points and output span [-0.9, 0.9]

const basis = (squared) => (squared === 0 ? 0 : squared * Math.log(squared)); // U(r) = r^2 log r^2 of r^2

// [U, 1, x, y] of a place.
function terms(x, y, points) {
  const row = points.map(([u, v]) => basis((x - u) ** 2 + (y - v) ** 2));
  row.push(1, x, y);
  return row;
}

function inverted(matrix) {
  const size = matrix.length,
    rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))]);
  for (let i = 0; i < size; i += 1) {
    let best = i;
    for (let j = i + 1; j < size; j += 1) if (Math.abs(rows[j][i]) > Math.abs(rows[best][i])) best = j;
    [rows[i], rows[best]] = [rows[best], rows[i]];
    const head = rows[i][i];
    rows[i] = rows[i].map((value) => value / head);
    for (let j = 0; j < size; j += 1) {
      const factor = rows[j][i];
      if (j !== i && factor !== 0) for (let k = i; k < 2 * size; k += 1) rows[j][k] -= factor * rows[i][k];
    }
  }
  return rows.map((row) => row.slice(size));
}

// One row of n * n weights for every vertex of a mesh of columns x rows over the output, row by row.
function splineMesh(n, columns, rows) {
  const axis = (count) => Array.from({ length: count }, (_, i) => -EXTENT + (2 * EXTENT * i) / (count - 1));
  const points = axis(n).flatMap((x) => axis(n).map((y) => [x, y])); // x varies slowest
  const system = points.map(([x, y]) => terms(x, y, points));
  for (let i = 0; i < 3; i += 1) system.push([...points.map(([x, y]) => [1, x, y][i]), 0, 0, 0]);
  const inverse = inverted(system);
  return axis(rows).flatMap((y) =>
    axis(columns).map((x) => {
      const row = terms(x, y, points),
        weights = new Float64Array(points.length);
      row.forEach((value, k) => {
        for (let i = 0; i < weights.length; i += 1) weights[i] += value * inverse[k][i];
      });
      return weights;
    }),
  );
}

// Where in the cloth the vertices of a mesh look, as x, y after each other.
function looksAt(mesh, points) {
  const places = new Float32Array(2 * mesh.length);
  mesh.forEach((weights, vertex) => {
    let x = 0,
      y = 0;
    for (let i = 0; i < weights.length; i += 1) {
      x += weights[i] * points[i][0];
      y += weights[i] * points[i][1];
    }
    places[2 * vertex] = x;
    places[2 * vertex + 1] = y;
  });
  return places;
}

// Lays a cloth over a person, both RGBA bytes, by the places of a mesh; where the region of the garment stays open,
// `open` (r, g, b) shows at 65 %. All pictures have the same size.
function layOver(out, person, cloth, region, width, height, places, columns, open) {
  const rows = places.length / 2 / columns;
  for (let y = 0; y < height; y += 1) {
    const v = (y / (height - 1)) * (rows - 1),
      top = Math.min(Math.floor(v), rows - 2),
      b = v - top;
    for (let x = 0; x < width; x += 1) {
      const u = (x / (width - 1)) * (columns - 1),
        left = Math.min(Math.floor(u), columns - 2),
        a = u - left,
        one = 2 * (top * columns + left),
        two = one + 2 * columns;
      const lookX =
          (1 - b) * ((1 - a) * places[one] + a * places[one + 2]) + b * ((1 - a) * places[two] + a * places[two + 2]),
        lookY =
          (1 - b) * ((1 - a) * places[one + 1] + a * places[one + 3]) +
          b * ((1 - a) * places[two + 1] + a * places[two + 3]);
      const i = 4 * (y * width + x),
        cx = Math.round(((lookX + 1) * width - 1) / 2),
        cy = Math.round(((lookY + 1) * height - 1) / 2),
        from = cx >= 0 && cy >= 0 && cx < width && cy < height ? 4 * (cy * width + cx) : -1;
      const covered = from >= 0 && cloth[from + 3] > 127,
        source = covered ? cloth : person,
        j = covered ? from : i,
        share = !covered && region[y * width + x] ? 0.65 : 0;
      out[i] = (1 - share) * source[j] + share * open[0];
      out[i + 1] = (1 - share) * source[j + 1] + share * open[1];
      out[i + 2] = (1 - share) * source[j + 2] + share * open[2];
      out[i + 3] = 255;
    }
  }
}
