// A map over a photo. Label maps: classes light up when pointed at; with `paint` they can be painted.
// The labels themselves travel, one byte a pixel, never colours: what comes back is exactly what was painted.
const PAUSE = 350; // milliseconds after a stroke until the result with it is asked for
let labels = null,
  first = null,
  timer = 0,
  current = 1,
  lit = -1,
  images = {},
  opacity = 0.7,
  radius = 8,
  fill = false,
  besideName = null;

const steps = history(
  () => labels.slice(),
  (state) => {
    labels = state;
  },
  () => edited(),
);
const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
function encode(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}
function load(address, after) {
  if (!address) return null;
  const image = new Image();
  image.onload = after;
  image.src = address;
  return image;
}

function render() {
  const value = props.value,
    canvas = element.querySelector('canvas');
  if (!value || !canvas) return;
  const { width, height, palette } = value,
    context = canvas.getContext('2d');
  context.clearRect(0, 0, width, height);
  if (images.base?.complete) context.drawImage(images.base, 0, 0, width, height);
  if (labels) {
    const layer = context.createImageData(width, height),
      data = layer.data;
    const alpha = Math.round(255 * opacity),
      faint = Math.round(60 * opacity),
      ground = Math.round(90 * opacity);
    for (let i = 0; i < labels.length; i += 1) {
      const [red, green, blue] = palette[labels[i]];
      data[4 * i] = red;
      data[4 * i + 1] = green;
      data[4 * i + 2] = blue;
      // The ground lets the photo through, so that one sees what has been missed.
      data[4 * i + 3] = lit >= 0 ? (labels[i] === lit ? alpha : faint) : labels[i] ? alpha : ground;
    }
    const sheet = new OffscreenCanvas(width, height);
    sheet.getContext('2d').putImageData(layer, 0, 0);
    context.drawImage(sheet, 0, 0);
  } else if (images.over?.complete) {
    context.globalAlpha = opacity;
    context.drawImage(images.over, 0, 0, width, height);
    context.globalAlpha = 1;
  }
}

function light(label) {
  if (label === lit) return;
  lit = label;
  element
    .querySelectorAll('.class-chip')
    .forEach((chip) => chip.classList.toggle('lit', Number(chip.dataset.label) === label));
  render();
}

function shares() {
  if (!labels) return;
  const counts = new Array(props.value.names.length).fill(0);
  for (const label of labels) counts[label] += 1;
  element.querySelectorAll('.class-chip').forEach((chip) => {
    const count = counts[Number(chip.dataset.label)];
    chip.querySelector('small').textContent = count ? `${((100 * count) / labels.length).toFixed(1)} %` : '';
    chip.classList.toggle('absent', !count && !props.value.paint);
    chip.classList.toggle('chosen', props.value.paint && Number(chip.dataset.label) === current);
    if (props.value.paint) chip.setAttribute('aria-pressed', Number(chip.dataset.label) === current);
  });
}

const remember = () => steps.keep(labels.slice());
const payload = () => ({
  name: props.value.name,
  labels: encode(labels),
  width: props.value.width,
  height: props.value.height,
});

function disc(x, y) {
  const { width, height } = props.value,
    reach = Math.max(0, radius - 0.5);
  for (let v = Math.max(0, Math.ceil(y - reach)); v <= Math.min(height - 1, y + reach); v += 1) {
    for (let u = Math.max(0, Math.ceil(x - reach)); u <= Math.min(width - 1, x + reach); u += 1) {
      if ((u - x) ** 2 + (v - y) ** 2 <= reach * reach + 0.25) labels[v * width + u] = current;
    }
  }
}

function stroke(from, to) {
  const steps = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])));
  for (let i = 0; i <= steps; i += 1)
    disc(from[0] + ((to[0] - from[0]) * i) / steps, from[1] + ((to[1] - from[1]) * i) / steps);
}

function flood(x, y) {
  const { width, height } = props.value,
    old = labels[y * width + x];
  if (old === current) return;
  const open = [y * width + x];
  while (open.length) {
    const at = open.pop();
    if (labels[at] !== old) continue;
    labels[at] = current;
    const u = at % width;
    if (u > 0) open.push(at - 1);
    if (u < width - 1) open.push(at + 1);
    if (at >= width) open.push(at - width);
    if (at < width * (height - 1)) open.push(at + width);
  }
}

function onChange() {
  render();
  shares();
  const apply = element.querySelector('.apply'),
    different = labels.some((label, i) => label !== first[i]);
  if (apply) apply.disabled = !different;
  steps.show(different);
}

// A stroke is at its end: the result beside the map follows.
function edited() {
  onChange();
  clearTimeout(timer);
  outdateBeside('The result with this map is being painted …');
  timer = setTimeout(() => props.value?.paint && trigger('preview', payload()), PAUSE);
}

function range(text, least, most, value, set) {
  const label = make('label', 'canvas-range', text),
    input = make('input');
  Object.assign(input, { type: 'range', min: least, max: most, step: 1, value });
  input.addEventListener('input', () => set(Number(input.value)));
  label.append(input);
  return label;
}

// Arrow keys move a brush over the canvas, Space or Enter puts it down.
function keyboard(canvas) {
  const { width, height } = props.value;
  let at = null;
  const show = () => {
    render();
    if (!at) return;
    const context = canvas.getContext('2d');
    context.lineWidth = Math.max(1, width / 200);
    context.strokeStyle = 'white';
    context.beginPath();
    context.arc(at[0], at[1], Math.max(radius, 3), 0, 2 * Math.PI);
    context.stroke();
    context.strokeStyle = 'black';
    context.setLineDash([4, 4]);
    context.stroke();
    context.setLineDash([]);
  };
  canvas.addEventListener('focus', () => {
    if (canvas.matches(':focus-visible')) {
      at = at || [width / 2, height / 2];
      show();
    }
  });
  canvas.addEventListener('blur', () => {
    at = null;
    render();
  });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step && event.key !== ' ' && event.key !== 'Enter') return;
    event.preventDefault();
    at = at || [width / 2, height / 2];
    const far = event.shiftKey ? 1 : Math.max(1, radius / 2);
    if (step)
      at = [
        Math.min(Math.max(at[0] + step[0] * far, 0), width - 1),
        Math.min(Math.max(at[1] + step[1] * far, 0), height - 1),
      ];
    else {
      remember();
      if (fill) flood(Math.round(at[0]), Math.round(at[1]));
      else disc(...at);
      edited();
    }
    show();
  });
}

function draw() {
  const host = element.querySelector('.label-canvas'),
    value = props.value;
  if (!host) return;
  host.replaceChildren();
  if (!value?.width) {
    labels = null;
    return;
  }
  labels = value.labels ? decode(value.labels) : null;
  first = labels?.slice();
  steps.begin(first || []);
  clearTimeout(timer);
  lit = -1;
  if (besideName !== value.name) {
    current = value.brush || 0;
    fill = false;
    radius = Math.max(2, Math.round(value.width / 40));
    besideName = value.name;
  }
  images = { base: load(value.base, render), over: load(value.over, render) };

  const tools = make('div', 'canvas-tools');
  tools.append(
    range(value.labels ? 'Colours' : 'Map', 0, 100, Math.round(100 * opacity), (percent) => {
      opacity = percent / 100;
      render();
    }),
  );
  if (value.paint) {
    tools.append(
      range('Brush', 1, Math.round(value.width / 8), radius, (size) => {
        radius = size;
      }),
    );
    const area = button('fill', 'Fill an area', () => {
      fill = !fill;
      area.setAttribute('aria-pressed', fill);
    });
    area.setAttribute('aria-pressed', fill);
    tools.append(area);
    tools.append(...steps.buttons);
  }
  const stage = make('div', 'canvas-stage'),
    canvas = make('canvas');
  Object.assign(canvas, { width: value.width, height: value.height, tabIndex: 0 });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute(
    'aria-label',
    value.paint ? `${value.title}; arrow keys move the brush, Space paints` : value.title,
  );
  const tip = make('div', 'canvas-tip');
  stage.append(canvas);
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) * value.width) / box.width - 0.5,
      ((event.clientY - box.top) * value.height) / box.height - 0.5,
    ];
  };
  let last = null;
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = place(event),
      u = Math.round(x),
      v = Math.round(y);
    if (labels && u >= 0 && v >= 0 && u < value.width && v < value.height) {
      const label = labels[v * value.width + u];
      tip.textContent = value.names[label];
      if (!value.paint) light(label);
    }
    if (last) {
      stroke(last, [x, y]);
      last = [x, y];
      render();
    }
  });
  canvas.addEventListener('pointerleave', () => {
    tip.textContent = '';
    if (!value.paint) light(-1);
  });
  if (value.paint) {
    canvas.classList.add('paintable');
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button) return;
      event.preventDefault();
      remember();
      const [x, y] = place(event);
      if (fill) {
        flood(
          Math.min(Math.max(Math.round(x), 0), value.width - 1),
          Math.min(Math.max(Math.round(y), 0), value.height - 1),
        );
        edited();
        return;
      }
      canvas.setPointerCapture(event.pointerId);
      last = [x, y];
      stroke(last, last);
      render();
    });
    const end = () => {
      if (last) {
        last = null;
        edited();
      }
    };
    canvas.addEventListener('pointerup', end);
    keyboard(canvas);
    canvas.addEventListener('pointercancel', end);
  }
  const body = make('div', 'canvas-body'),
    aside = make('div', 'canvas-side');
  body.append(stage, aside);
  host.append(tools, body);
  if (labels) {
    const chips = make('div', 'class-chips');
    value.names.forEach((name, label) => {
      const chip = make('button', 'class-chip');
      chip.type = 'button';
      chip.dataset.label = label;
      const swatch = make('span', 'swatch');
      swatch.style.background = `rgb(${value.palette[label].join(', ')})`;
      chip.append(swatch, make('span', '', name), make('small'));
      chip.addEventListener('pointerenter', () => light(label));
      chip.addEventListener('pointerleave', () => light(-1));
      chip.addEventListener('focus', () => light(label));
      chip.addEventListener('blur', () => light(-1));
      if (value.paint)
        chip.addEventListener('click', () => {
          current = label;
          light(-1);
          shares();
        });
      chips.append(chip);
    });
    aside.append(tip, chips);
  }
  if (value.paint) {
    const apply = button('apply', 'Run on from here', () => {
      apply.disabled = true;
      clearTimeout(timer);
      trigger('apply', payload());
    });
    aside.append(apply);
    body.append(beside);
  }
  render();
  if (labels) onChange();
}

watch('value', draw);
draw();
