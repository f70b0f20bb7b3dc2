// The control points of the warp. Left the person: points on a regular grid, the cloth follows where they are dragged.
// Right the garment: the place in the cloth that each point looks at. Both sides show the same numbers. While a point
// moves the browser bends the cloth itself; what the networks make of it comes once it is let go.
const CELL = 8, // pixels of the preview for a cell of its mesh
  OPEN = [255, 140, 0],
  LONGEST = 288; // pixels of the preview's longer side
let points = [],
  current = null, // what was drawn last: sizes, start, pictures
  updates = [],
  pictures = null, // what the preview is made of: bytes of person, cloth and region, and a mesh
  exact = null, // the picture of the networks, for the points it was made of
  moving = false,
  due = 0;
const copy = () => points.map((point) => point.slice());
const side = () => Math.round(Math.sqrt(points.length));
const same = (one, other) =>
  one.every((point, i) => point.every((value, axis) => Math.abs(value - other[i][axis]) < 1e-4));
const steps = history(
  copy,
  (state) => {
    points = state.map((point) => point.slice());
  },
  () => send(),
);

// A point's place in each picture, in pixels.
const inCloth = (point) => [((point[0] + 1) * current.width - 1) / 2, ((point[1] + 1) * current.height - 1) / 2];
const inPerson = (index) => {
  const n = side(),
    column = Math.floor(index / n),
    row = index % n; // x varies slowest
  return [(column / (n - 1)) * (current.width - 1), (row / (n - 1)) * (current.height - 1)];
};

// -- the preview --------------------------------------------------------------------------------------------------

function bytesOf(image, width, height) {
  const sheet = new OffscreenCanvas(width, height),
    context = sheet.getContext('2d', { willReadFrequently: true });
  context.drawImage(image, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

async function prepare(value) {
  const scale = Math.min(1, LONGEST / Math.max(value.width, value.height)),
    width = Math.round(value.width * scale),
    height = Math.round(value.height * scale);
  const images = [value.person, value.cloth, value.region].map((address) => {
    const image = new Image();
    image.src = address;
    return image;
  });
  await Promise.all(images.map((image) => image.decode()));
  if (current !== value) return;
  const [person, cloth, shares] = images.map((image) => bytesOf(image, width, height));
  const region = new Uint8Array(width * height).map((_, i) => (shares[4 * i] > 127 ? 1 : 0));
  const columns = Math.ceil(width / CELL) + 1,
    rows = Math.ceil(height / CELL) + 1;
  pictures = { width, height, person, cloth, region, columns, mesh: splineMesh(side(), columns, rows) };
}

function preview() {
  due = 0;
  const canvas = element.querySelector('.warp-picture');
  if (!pictures || !canvas) return;
  const { width, height, person, cloth, region, columns, mesh } = pictures,
    pixels = new ImageData(width, height);
  layOver(pixels.data, person, cloth, region, width, height, looksAt(mesh, points), columns, OPEN);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  canvas.dataset.of = 'preview';
}

function follow() {
  updates.forEach((update) => update());
  if (!due) due = requestAnimationFrame(preview);
}

function showExact() {
  const canvas = element.querySelector('.warp-picture');
  if (!exact || !canvas || moving || !same(exact.points, points)) return;
  cancelAnimationFrame(due);
  due = 0;
  Object.assign(canvas, { width: current.width, height: current.height });
  canvas.getContext('2d').drawImage(exact.image, 0, 0);
  canvas.dataset.of = 'exact';
}

function load(address, of) {
  const image = new Image(),
    mine = { image, points: of };
  image.onload = () => {
    exact = mine;
    showExact();
  };
  image.src = address;
}

// -- the two pictures ---------------------------------------------------------------------------------------------

// Many points look at places beside the garment. The frame takes them in up to `BESIDE` of a picture's width, and those
// farther out lie pale on its border.
const BESIDE = 0.2;

function panel(title, picture, place, drag) {
  const { width, height } = current,
    n = side();
  const beyond = points
    .map((point, index) => place(point, index))
    .reduce((most, [x, y]) => Math.max(most, -x, -y, x - width, y - height), 0);
  const radius = width / (n > 5 ? 70 : 40),
    margin = Math.min(beyond, BESIDE * width) + 1.5 * radius;
  const bounds = [width + margin - radius, height + margin - radius];
  const figure = make('figure', 'warp-panel'),
    stage = make('div', 'warp-stage');
  const svg = node('svg', {
    viewBox: `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`,
    role: 'group',
    'aria-label': title,
  });
  picture.classList.add('warp-ground');
  const share = (pixels, of) => `${(100 * pixels) / (of + 2 * margin)}%`;
  Object.assign(picture.style, {
    left: share(margin, width),
    top: share(margin, height),
    width: share(width, width),
    height: share(height, height),
  });
  const lines = node('path', { class: 'warp-grid' });
  svg.append(lines);
  const discs = points.map((_, index) => {
    const disc = node('circle', {
      class: 'warp-point',
      r: radius,
      tabindex: index ? -1 : 0,
      role: 'button',
      'data-index': index,
      'aria-label': `Control point ${index + 1}`,
    });
    svg.append(disc);
    return disc;
  });
  const update = () => {
    const at = points.map((point, index) => place(point, index));
    let path = '';
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) path += `${j ? 'L' : 'M'}${at[i * n + j].join(' ')}`;
      for (let j = 0; j < n; j += 1) path += `${j ? 'L' : 'M'}${at[j * n + i].join(' ')}`;
    }
    lines.setAttribute('d', path);
    discs.forEach((disc, index) => {
      const position = at[index].map((value, axis) => Math.min(Math.max(value, radius - margin), bounds[axis]));
      disc.setAttribute('cx', position[0]);
      disc.setAttribute('cy', position[1]);
      disc.classList.toggle('beyond', position[0] !== at[index][0] || position[1] !== at[index][1]);
    });
  };
  discs.forEach((disc, index) => {
    let from = null,
      start = null;
    disc.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      disc.setPointerCapture(event.pointerId);
      from = [event.clientX, event.clientY];
      start = copy();
      moving = true;
    });
    disc.addEventListener('pointermove', (event) => {
      if (!from) return;
      const scale = (width + 2 * margin) / svg.getBoundingClientRect().width;
      points = start.map((point) => point.slice());
      drag(index, (event.clientX - from[0]) * scale, (event.clientY - from[1]) * scale, start);
      follow();
    });
    const end = () => {
      if (!from) return;
      from = null;
      moving = false;
      if (same(points, start)) return;
      steps.keep(start);
      send();
    };
    disc.addEventListener('pointerup', end);
    disc.addEventListener('pointercancel', end);
    disc.addEventListener('keydown', (event) => {
      // Page Up and Down, Home and End go from point to point, arrow keys move the one that has the focus.
      const to = { PageDown: index + 1, PageUp: index - 1, Home: 0, End: discs.length - 1 }[event.key];
      if (discs[to]) {
        event.preventDefault();
        disc.setAttribute('tabindex', -1);
        discs[to].setAttribute('tabindex', 0);
        discs[to].focus();
        return;
      }
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      steps.keep(copy());
      drag(index, (step[0] * width) / 100, (step[1] * width) / 100, copy());
      send();
    });
  });
  updates.push(update);
  stage.append(picture, svg);
  figure.append(stage, make('figcaption', '', title));
  update();
  return figure;
}

// On the cloth the point itself moves.
function dragCloth(index, dx, dy, start) {
  points[index] = [start[index][0] + (2 * dx) / current.width, start[index][1] + (2 * dy) / current.height];
}

// On the person the cloth under the point moves with the pointer: the point then has to look at what lay on the other
// side, which its neighbours tell to first order.
function dragPerson(index, dx, dy, start) {
  const n = side(),
    { width, height } = current,
    column = Math.floor(index / n),
    row = index % n;
  const slope = (a, b, pixels) => [0, 1].map((axis) => (start[b][axis] - start[a][axis]) / pixels);
  const left = Math.max(column - 1, 0),
    right = Math.min(column + 1, n - 1),
    top = Math.max(row - 1, 0),
    low = Math.min(row + 1, n - 1);
  const alongX = slope(left * n + row, right * n + row, ((right - left) / (n - 1)) * (width - 1));
  const alongY = slope(column * n + top, column * n + low, ((low - top) / (n - 1)) * (height - 1));
  points[index] = [0, 1].map((axis) => start[index][axis] - alongX[axis] * dx - alongY[axis] * dy);
}

function send() {
  follow();
  outdateBeside('The result with these points is being painted …');
  trigger('move', { points });
  buttons();
}

function buttons() {
  const differs = !same(points, current.start),
    apply = element.querySelector('.apply');
  steps.show(differs);
  if (apply) apply.disabled = !differs;
}

function draw() {
  const host = element.querySelector('.warp-editor'),
    value = props.value;
  if (!host) return;
  if (!value?.points) {
    current = pictures = null;
    host.replaceChildren();
    return;
  }
  if (!value.fresh) {
    // What has become of the points that were sent last; those that have moved on since are waited for.
    if (current && same(value.points, points)) {
      host.querySelector('.warp-note').textContent = value.note;
      load(value.exact, value.points);
    }
    return;
  }
  current = value;
  points = value.points.map((point) => point.slice());
  steps.begin(value.start);
  updates = [];
  exact = null;
  pictures = null;
  const tools = make('div', 'canvas-tools'),
    panels = make('div', 'warp-panels'),
    apply = button('apply', 'Run on from here', () => trigger('apply', { points })),
    cloth = make('img');
  Object.assign(cloth, { src: value.cloth, alt: '' });
  tools.append(...steps.buttons, apply, make('span', 'warp-note', value.note));
  panels.append(
    panel('Drag a point and the cloth follows.', make('canvas', 'warp-picture'), (_, i) => inPerson(i), dragPerson),
    panel('The place in the garment that each point looks at.', cloth, inCloth, dragCloth),
    beside,
  );
  host.replaceChildren(tools, panels);
  load(value.exact, value.points);
  prepare(value);
  buttons();
}

watch('value', draw);
draw();
