// The control points of the warp. Left the person: points on a regular grid, the cloth follows where they are dragged.
// Right the garment: the place in the cloth that each point looks at. Both sides show the same numbers.
let points = [],
  undo = [],
  redo = [],
  updates = [];
const copy = () => points.map((point) => point.slice());
const side = () => Math.round(Math.sqrt(points.length));

// A point's place in each picture, in pixels.
const inCloth = (point) => [
  ((point[0] + 1) * props.value.width - 1) / 2,
  ((point[1] + 1) * props.value.height - 1) / 2,
];
const inPerson = (index) => {
  const n = side(),
    column = Math.floor(index / n),
    row = index % n; // x varies slowest
  return [(column / (n - 1)) * (props.value.width - 1), (row / (n - 1)) * (props.value.height - 1)];
};

function panel(title, address, place, drag) {
  const { width, height } = props.value,
    n = side();
  // Many points look at places beside the garment: the frame takes them in, up to a picture's width on each side.
  const beyond = points
    .map((point, index) => place(point, index))
    .reduce((most, [x, y]) => Math.max(most, -x, -y, x - width, y - height), 0);
  const margin = Math.min(beyond, width) + width * 0.06;
  const figure = document.createElement('figure');
  figure.className = 'warp-panel';
  const svg = node('svg', {
    viewBox: `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`,
    role: 'group',
    'aria-label': title,
  });
  svg.append(node('image', { href: address, x: 0, y: 0, width, height }));
  const lines = node('path', { class: 'warp-grid' });
  svg.append(lines);
  const discs = points.map((_, index) => {
    const disc = node('circle', {
      class: 'warp-point',
      r: width / (n > 5 ? 70 : 40),
      tabindex: 0,
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
      for (let j = 0; j < n; j += 1) {
        path += `${j ? 'L' : 'M'}${at[i * n + j].join(' ')}`;
      }
      for (let j = 0; j < n; j += 1) path += `${j ? 'L' : 'M'}${at[j * n + i].join(' ')}`;
    }
    lines.setAttribute('d', path);
    discs.forEach((disc, index) => {
      disc.setAttribute('cx', at[index][0]);
      disc.setAttribute('cy', at[index][1]);
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
    });
    disc.addEventListener('pointermove', (event) => {
      if (!from) return;
      const scale = (width + 2 * margin) / svg.getBoundingClientRect().width;
      points = start.map((point) => point.slice());
      drag(index, (event.clientX - from[0]) * scale, (event.clientY - from[1]) * scale, start);
      updates.forEach((update) => update());
    });
    const end = () => {
      if (!from) return;
      from = null;
      if (points.some((point, i) => point[0] !== start[i][0] || point[1] !== start[i][1])) {
        undo.push(start);
        redo = [];
        send();
      }
    };
    disc.addEventListener('pointerup', end);
    disc.addEventListener('pointercancel', end);
    disc.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      undo.push(copy());
      redo = [];
      drag(index, (step[0] * width) / 100, (step[1] * width) / 100, copy());
      updates.forEach((update) => update());
      send();
    });
  });
  updates.push(update);
  const caption = document.createElement('figcaption');
  caption.textContent = title;
  figure.append(svg, caption);
  update();
  return figure;
}

// On the cloth the point itself moves.
function dragCloth(index, dx, dy, start) {
  points[index] = [start[index][0] + (2 * dx) / props.value.width, start[index][1] + (2 * dy) / props.value.height];
}

// On the person the cloth under the point moves with the pointer: the point then has to look at what lay on the other side,
// which its neighbours tell to first order.
function dragPerson(index, dx, dy, start) {
  const n = side(),
    { width, height } = props.value,
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
  trigger('move', { points });
  buttons();
}

function buttons() {
  const moved = points.some((point, i) =>
    point.some((value, axis) => Math.abs(value - props.value.start[i][axis]) > 1e-6),
  );
  const set = (name, off) => {
    const found = element.querySelector(name);
    if (found) found.disabled = off;
  };
  set('.undo', !undo.length);
  set('.redo', !redo.length);
  set('.reset', !moved);
  set('.apply', !moved);
}

function draw() {
  const host = element.querySelector('.warp-editor'),
    value = props.value;
  if (!host) return;
  if (!value?.points) {
    host.replaceChildren();
    return;
  }
  if (value.fresh) {
    undo = [];
    redo = [];
  }
  points = value.points.map((point) => point.slice());
  updates = [];
  // Whoever moves a point with the arrow keys stays on it when the preview is drawn anew.
  const held = document.activeElement,
    panelOf = held?.closest?.('.warp-panel');
  const focused =
    panelOf && host.contains(held)
      ? [[...host.querySelectorAll('.warp-panel')].indexOf(panelOf), held.dataset.index]
      : null;
  host.replaceChildren();
  const tools = document.createElement('div');
  tools.className = 'canvas-tools';
  const button = (name, text, act) => {
    const made = document.createElement('button');
    made.type = 'button';
    made.className = `canvas-button ${name}`;
    made.textContent = text;
    made.addEventListener('click', act);
    return made;
  };
  const step = (from, to) => () => {
    if (from().length) {
      to().push(copy());
      points = from().pop();
      send();
    }
  };
  tools.append(
    button(
      'undo',
      'Undo',
      step(
        () => undo,
        () => redo,
      ),
    ),
    button(
      'redo',
      'Redo',
      step(
        () => redo,
        () => undo,
      ),
    ),
    button('reset', 'Reset', () => {
      undo.push(copy());
      redo = [];
      points = props.value.start.map((point) => point.slice());
      send();
    }),
  );
  const note = document.createElement('span');
  note.className = 'warp-note';
  note.textContent = value.note;
  tools.append(note);
  const panels = document.createElement('div');
  panels.className = 'warp-panels';
  panels.append(
    panel(
      'On the person: drag a point and the cloth follows.',
      value.person,
      (_, index) => inPerson(index),
      dragPerson,
    ),
    panel('In the garment: the place that each point looks at.', value.cloth, inCloth, dragCloth),
  );
  host.append(
    tools,
    panels,
    button('apply', 'Run on from here', () => trigger('apply', { points })),
  );
  buttons();
  if (focused) {
    const again = host.querySelectorAll('.warp-panel')[focused[0]].querySelector(`[data-index="${focused[1]}"]`);
    if (again) again.focus({ preventScroll: true });
  }
}

watch('value', draw);
draw();
