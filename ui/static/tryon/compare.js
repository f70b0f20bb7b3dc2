// Pictures side by side that zoom and move in step; below each its difference from the first one, and the numbers.
let zoom = 1,
  at = [0, 0],
  both = true;
function place() {
  const far = ((zoom - 1) / (2 * zoom)) * 100;
  at = at.map((value) => Math.min(Math.max(value, -far), far));
  element.querySelectorAll('.compare-window img').forEach((image) => {
    image.style.transform = `scale(${zoom}) translate(${at[0]}%, ${at[1]}%)`;
  });
  const tool = element.querySelector('.compare-zoom');
  if (tool) tool.value = zoom;
}

function steer(pane) {
  const pointers = new Map();
  pane.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      zoom = Math.min(Math.max(zoom * Math.exp(-event.deltaY / 400), 1), 12);
      place();
    },
    { passive: false },
  );
  pane.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    pane.setPointerCapture(event.pointerId);
  });
  pane.addEventListener('pointermove', (event) => {
    const from = pointers.get(event.pointerId);
    if (!from) return;
    const apart = () => {
      const [a, b] = [...pointers.values()];
      return Math.hypot(a[0] - b[0], a[1] - b[1]);
    };
    const before = pointers.size > 1 ? apart() : 0;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (before) zoom = Math.min(Math.max((zoom * apart()) / before, 1), 12);
    else if (zoom > 1)
      at = [
        at[0] + ((event.clientX - from[0]) / pane.clientWidth / zoom) * 100,
        at[1] + ((event.clientY - from[1]) / pane.clientHeight / zoom) * 100,
      ];
    place();
  });
  ['pointerup', 'pointercancel'].forEach((name) =>
    pane.addEventListener(name, (event) => pointers.delete(event.pointerId)),
  );
}

function pane(address, words, className) {
  const box = make('div', `compare-window ${className}`),
    image = make('img');
  Object.assign(image, { src: address, alt: words, draggable: false });
  box.append(image);
  steer(box);
  return box;
}

function draw() {
  const host = element.querySelector('.compare');
  if (!host) return;
  if (!props.value) {
    host.replaceChildren();
    return;
  }
  const tools = make('div', 'canvas-tools'),
    range = make('label', 'canvas-range', 'Zoom'),
    input = make('input', 'compare-zoom');
  Object.assign(input, { type: 'range', min: 1, max: 12, step: 0.1, value: zoom });
  input.addEventListener('input', () => {
    zoom = Number(input.value);
    place();
  });
  range.append(input);
  const toggle = make('label', 'canvas-range', 'Difference maps'),
    box = make('input');
  Object.assign(box, { type: 'checkbox', checked: both });
  box.addEventListener('change', () => {
    both = box.checked;
    host.classList.toggle('plain', !both);
  });
  toggle.append(box);
  tools.append(
    range,
    toggle,
    make('span', 'hint', 'In the maps, darker is more different; the darkest is 64 of 255 or more.'),
  );
  const panels = make('div', 'compare-panels');
  JSON.parse(props.value).forEach((item) => {
    const figure = make('figure', 'compare-panel'),
      caption = make('figcaption', '', item.label);
    figure.append(caption, pane(item.url, item.label, 'compare-picture'));
    if (item.difference)
      figure.append(pane(item.difference, `Difference of ${item.label} from the first`, 'compare-difference'));
    if (item.line) figure.append(make('p', 'map-facts', item.line));
    const table = make('dl', 'quality');
    item.rows.forEach(([name, text]) => table.append(make('dt', '', name), make('dd', '', text)));
    figure.append(table);
    panels.append(figure);
  });
  host.classList.toggle('plain', !both);
  host.replaceChildren(tools, panels);
  place();
}

watch('value', draw);
draw();
