// The one way in which the page draws a map of numbers: attention with its tokens, a matrix, a vector as a strip of cells,
// a small preview.
//
// numbers: row by row; NaN where there is none. rows, columns: what stands beside and above them, as [text, title], or how
// many there are. paint: `colour` for numbers from 0, `signed` for numbers around it; most: the number of the strongest
// colour; threshold: smaller numbers stay blank. name: for screen readers. read(row, column) is called for the cell that is
// pointed at, pick(row, column) for the one that is clicked.
//
// Without labels the map is a canvas of one pixel a cell, which the style sheet stretches. With them it is an SVG whose
// cells are `cell` wide and `high` high, with labels of the size `font`, the names of its `axes`, and numbers of the size
// `digits` where there is room; `mark(row, column)` frames a cell.
const ROOM = 12,
  NUMBERED = 30; // least pixels of a cell for lines between cells, and for its number
const measure = document.createElement('canvas').getContext('2d');
const textWidths = new Map(); // of labels of 13 pixels
const textWidth = (text) => {
  if (!textWidths.has(text)) {
    measure.font = '13px "IBM Plex Sans", sans-serif';
    textWidths.set(text, measure.measureText(text).width);
  }
  return textWidths.get(text);
};
const labelled = (tokens, most = 18) => tokens.map((token) => [clip(plain(token), most), token]);

// The places in a map with labels: the cells' upper left corner, and the size of it all.
const heatFrame = ({ rows, columns, cell, high = cell, font, axes }) => {
  const widest = (labels) => (Math.max(...labels.map(([text]) => textWidth(text)), 10) * font) / 13,
    axis = axes ? 22 : 0;
  const left = Math.ceil(widest(rows)) + 12 + axis,
    top = Math.ceil(widest(columns) * 0.87) + 14 + axis,
    right = Math.ceil(widest(columns.slice(-2)) * 0.5);
  return { left, top, width: left + columns.length * cell + right + 4, height: top + rows.length * high + 4 };
};

const heatMap = (map) => {
  const { rows, columns, numbers, paint = colour, most = 1, threshold = -Infinity, className = '', name } = map,
    withLabels = Array.isArray(columns),
    [R, C] = withLabels ? [rows.length, columns.length] : [rows, columns];
  const tone = (i) => paint(numbers[i] < threshold ? 0 : numbers[i] / most),
    cells = cellPicture(R, C, (i) => (Number.isNaN(numbers[i]) ? null : tone(i)), className);
  const figure = withLabels ? labelledMap({ ...map, R, C, tone }, cells) : cells;
  if (name) {
    figure.setAttribute('role', 'img');
    figure.setAttribute('aria-label', name);
  }
  if (map.read) listen(figure, R, C, map);
  return figure;
};

function labelledMap({ rows, columns, numbers, threshold, R, C, tone, className = '', axes, ...sizes }, cells) {
  const { cell, high = cell, font, digits = 10.5 } = sizes,
    { left, top, width, height } = heatFrame({ rows, columns, cell, high, font, axes });
  const svg = node('svg', { width, height, viewBox: `0 0 ${width} ${height}`, class: `heat-svg ${className}` });
  const box = { x: left, y: top, width: C * cell, height: R * high };
  const text = (attributes, [words, title]) => {
    const label = node('text', attributes, words);
    if (title !== undefined) verbatim(label).append(node('title', {}, title));
    svg.append(label);
  };
  if (axes) {
    const place = `translate(14 ${top}) rotate(-90)`;
    text({ x: left, y: 14, class: 'heat-axis' }, [`${axes[1]} →`]);
    text({ x: 0, y: 0, class: 'heat-axis', 'text-anchor': 'end', transform: place }, [`← ${axes[0]}`]);
  }
  columns.forEach((label, c) => {
    const empty = rows.every((_, r) => Number.isNaN(numbers[r * C + c])),
      place = `translate(${left + (c + 0.5) * cell + font * 0.25} ${top - 6}) rotate(-60)`;
    const classes = empty ? 'heat-label heat-later' : 'heat-label';
    text({ class: classes, 'data-column': c, 'font-size': font, transform: place }, label);
  });
  rows.forEach((label, r) => {
    const place = { x: left - 7, y: top + (r + 0.5) * high + font * 0.34 };
    text({ class: 'heat-label', 'data-row': r, 'font-size': font, 'text-anchor': 'end', ...place }, label);
  });
  const picture = { ...box, preserveAspectRatio: 'none', style: 'image-rendering: pixelated', href: cells.toDataURL() };
  svg.append(node('image', picture));
  if (Math.min(cell, high) >= ROOM) {
    let lines = '';
    for (let c = 1; c < C; c += 1) lines += `M${left + c * cell} ${top}v${box.height}`;
    for (let r = 1; r < R; r += 1) lines += `M${left} ${top + r * high}h${box.width}`;
    svg.append(node('path', { d: lines, class: 'heat-lines' }));
  }
  let strokes = '';
  for (let i = 0; i < R * C; i += 1) {
    const x = left + (i % C) * cell,
      y = top + Math.floor(i / C) * high;
    if (Number.isNaN(numbers[i])) strokes += `M${x + 2} ${y + high - 3}L${x + cell - 2} ${y + 3}`;
    else if (Math.min(cell, high) >= NUMBERED && numbers[i] >= Math.max(0.005, threshold || 0)) {
      const place = { x: x + cell / 2, y: y + high / 2 + digits / 3, 'text-anchor': 'middle', 'font-size': digits };
      text({ ...place, class: 'heat-number', fill: ink(tone(i)) }, [numbers[i].toFixed(2).replace(/^0/, '')]);
    }
  }
  if (strokes) svg.append(node('path', { d: strokes, class: 'heat-struck' }));
  svg.append(node('rect', { ...box, class: 'heat-frame' }));
  const frame = (className) => {
    const mark = node('rect', { width: cell, height: high, class: className, visibility: 'hidden' });
    svg.append(mark);
    return (r, c) => {
      if (r >= R || c >= C) return;
      mark.setAttribute('x', left + c * cell);
      mark.setAttribute('y', top + r * high);
      mark.setAttribute('visibility', 'visible');
    };
  };
  svg.mark = frame('heat-marked');
  const cursor = frame('heat-cursor');
  svg.point = (r, c) => {
    cursor(r, c);
    svg.querySelectorAll('.heat-label.lit').forEach((label) => label.classList.remove('lit'));
    svg.querySelector(`[data-row="${r}"]`).classList.add('lit');
    svg.querySelector(`[data-column="${c}"]`).classList.add('lit');
  };
  svg.cellsBox = box;
  return svg;
}

// Pointing, clicking and arrow keys on a map; a strip of a single row has no keys, as there are dozens of them.
function listen(figure, R, C, { read, pick }) {
  let at = null;
  const go = (r, c) => {
    at = [r, c];
    figure.point?.(r, c);
    read(r, c);
  };
  const below = (event) => {
    const all = figure.getBoundingClientRect(),
      box = figure.cellsBox || { x: 0, y: 0, width: all.width, height: all.height };
    const c = Math.floor(((event.clientX - all.left - box.x) / box.width) * C),
      r = Math.floor(((event.clientY - all.top - box.y) / box.height) * R);
    return r >= 0 && r < R && c >= 0 && c < C ? [r, c] : null;
  };
  for (const kind of ['pointermove', 'pointerdown'])
    figure.addEventListener(kind, (event) => {
      const cell = below(event);
      if (cell) go(...cell);
    });
  figure.addEventListener('click', (event) => below(event) && pick?.(...at));
  if (R === 1) return;
  figure.setAttribute('tabindex', 0);
  figure.addEventListener('keydown', (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === 'Enter' && at) pick?.(...at);
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    go(...(at ? [within(at[0] + move[0], R), within(at[1] + move[1], C)] : [0, 0]));
  });
}

// A number with four decimals, and all its digits to point at.
const exact = (number) => {
  const span = make('span', 'heat-weight', number.toFixed(4));
  span.title = number;
  return span;
};
// The line below a map that says what was pointed at.
const readoutLine = (hint = 'Point at a cell to read its number.') => {
  const readout = make('div', 'heat-readout', hint);
  readout.setAttribute('aria-live', 'polite');
  return readout;
};
// What colour means what: a bar between the words for its two ends.
const colourScale = (paint, first, last) => {
  const scale = make('div', 'heat-scale'),
    bar = make('span', 'heat-bar'),
    stops = [0, 0.25, 0.5, 0.75, 1].map((share) => paint(paint === signed ? 2 * share - 1 : share));
  bar.style.background = `linear-gradient(to right, ${stops.map((tone) => `rgb(${tone})`).join(', ')})`;
  scale.append(first, bar, last);
  return scale;
};
