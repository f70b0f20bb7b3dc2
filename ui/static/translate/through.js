// Figure 1 as a picture to click, and beside it what enters and leaves the box that was clicked. Tokens enter as text.
const BOXES = [
  // key, text, x, y, width, height, colour group
  ['source', 'Input embedding + position', 18, 500, 162, 34, 'embed'],
  ['encoder_attention', 'Self-attention', 30, 414, 138, 36, 'attend'],
  ['encoder_norm', 'Add & norm', 30, 380, 138, 22, 'norm'],
  ['encoder_feed_forward', 'Feed-forward', 30, 316, 138, 36, 'feed'],
  ['encoder_norm_2', 'Add & norm', 30, 282, 138, 22, 'norm'],
  ['target', 'Output embedding + position', 220, 500, 162, 34, 'embed'],
  ['decoder_attention', 'Masked self-attention', 232, 430, 138, 36, 'attend'],
  ['decoder_norm', 'Add & norm', 232, 396, 138, 22, 'norm'],
  ['cross_attention', 'Attention to the text', 232, 332, 138, 36, 'attend'],
  ['cross_norm', 'Add & norm', 232, 298, 138, 22, 'norm'],
  ['decoder_feed_forward', 'Feed-forward', 232, 234, 138, 36, 'feed'],
  ['decoder_norm_2', 'Add & norm', 232, 200, 138, 22, 'norm'],
  ['linear', 'Linear', 232, 132, 138, 26, 'linear'],
  ['softmax', 'Softmax', 232, 88, 138, 26, 'softmax'],
];
const WIRES = [
  // the way of the vectors, from below to above; residual connections go round the sub-layers
  'M99 500V450',
  'M99 414V402',
  'M99 380V352',
  'M99 316V304',
  'M99 476H22V391H30',
  'M99 366H22V293H30',
  'M301 500V466',
  'M301 430V418',
  'M301 396V368',
  'M301 332V320',
  'M301 298V270',
  'M301 234V222',
  'M301 200V158',
  'M301 132V114',
  'M301 88V66',
  'M301 484H378V407H370',
  'M301 382H378V309H370',
  'M301 284H378V211H370',
  'M99 282V262H200V350H232',
];
let open = 'cross_attention',
  value = null;

function draw() {
  value = props.value ? JSON.parse(props.value) : null;
  const host = cleared(element, '.through', value);
  if (!host) return;
  const side = make('div', 'through-panel'),
    left = make('div', 'through-left');
  left.append(figure(), make('div', 'through-next'));
  host.append(left, side);
  panel(side);
  next();
}

function figure() {
  const svg = node('svg', {
    viewBox: '0 0 400 580',
    class: 'through-figure',
    role: 'group',
    'aria-label': 'Figure 1: the Transformer',
  });
  const defs = node('defs', {}),
    tip = node('marker', {
      id: 'through-tip',
      viewBox: '0 0 6 6',
      refX: 5,
      refY: 3,
      markerWidth: 6,
      markerHeight: 6,
      orient: 'auto',
    });
  tip.append(node('path', { d: 'M0 0L6 3L0 6z' }));
  defs.append(tip);
  svg.append(defs);
  for (const [x, y, height, layers, at] of [
    [12, 270, 204, value.layers[0], value.at[0]],
    [214, 188, 300, value.layers[1], value.at[1]],
  ]) {
    svg.append(node('rect', { x, y, width: 174, height, rx: 8, class: 'through-stack' }));
    svg.append(node('text', { x: x + 4, y: y - 6, class: 'through-times' }, `layer ${at} of ${layers}`));
  }
  for (const d of WIRES) svg.append(node('path', { d, class: 'through-wire', 'marker-end': 'url(#through-tip)' }));
  for (const [key, text, x, y, width, height, group] of BOXES) {
    const box = node('g', {
      class: `through-box through-${group}`,
      tabindex: 0,
      role: 'button',
      'data-part': key,
      'aria-label': value.parts[key].title,
    });
    box.append(node('rect', { x, y, width, height, rx: 5 }));
    const words = node('foreignObject', { x, y, width, height }); // unlike SVG's own text it breaks lines
    words.append(make('div', '', text));
    box.append(words);
    box.addEventListener('click', () => choose(key));
    box.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        choose(key);
      }
    });
    svg.append(box);
  }
  const { source, read, place, step } = value.tokens;
  const token = (x, y, words, className = '') =>
    verbatim(node('text', { x, y, 'text-anchor': 'middle', class: `through-token ${className}` }, words));
  svg.append(
    token(99, 556, clip(source[place], 20)),
    token(301, 556, clip(read[step], 20)),
    token(301, 58, '', 'through-out'),
  );
  svg.append(node('text', { x: 99, y: 573, 'text-anchor': 'middle', class: 'through-times' }, 'a piece of the text'));
  svg.append(
    node('text', { x: 301, y: 573, 'text-anchor': 'middle', class: 'through-times' }, 'the last piece written'),
  );
  return svg;
}

function choose(key) {
  open = key;
  panel(element.querySelector('.through-panel'));
}

function panel(side) {
  if (!value.parts[open]) open = 'cross_attention';
  const part = value.parts[open];
  element.querySelectorAll('.through-box').forEach((box) => {
    box.classList.toggle('chosen', box.dataset.part === open);
    box.setAttribute('aria-pressed', box.dataset.part === open);
  });
  side.replaceChildren(make('div', 'heat-title', part.title), make('p', 'hint', part.says));
  const readout = readoutLine(part.rows.length ? undefined : '');
  part.rows.forEach((row, number) => {
    const line = make('div', 'through-row'),
      head = make('div', 'through-name');
    head.append(make('b', '', row.name), symbol(row.symbol));
    if (row.note) head.append(make('span', 'through-note', row.note));
    line.append(head, row.labels ? bars(row) : cells(row, readout));
    if (number) line.prepend(make('div', 'through-arrow', '↓'));
    side.append(line);
  });
  side.append(readout);
  if (part.view) {
    const link = make(
      'button',
      'through-link',
      {
        one_head: 'Work it out in One head →',
        attention: 'See the whole map →',
        decoding: 'Every step, word by word →',
      }[part.view],
    );
    link.type = 'button';
    link.addEventListener('click', () => trigger('open', { view: part.view, kind: part.kind }));
    side.append(link);
  }
}

function symbol(text) {
  // x_i with a lowered i
  const label = verbatim(make('span', 'through-symbol'));
  text.split(/_(\w+|\{[^}]*\})/).forEach((part, i) => label.append(i % 2 ? make('sub', '', part) : part));
  return label;
}

function bars(row) {
  // weights with their labels, largest first
  const numbers = floats(row.numbers),
    list = make('div', 'through-bars');
  const order = [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a]).slice(0, 10);
  for (const i of order) list.append(bar(row.labels[i], numbers[i]));
  const most = `${numbers[order[0]].toFixed(2)} to “${row.labels[order[0]]}”`;
  list.append(make('p', 'heat-says', `The softmax gives ${most}, its largest weight.`));
  return list;
}

function bar(label, share, isChoice = false) {
  const line = make('div', isChoice ? 'through-bar chosen' : 'through-bar'),
    fill = make('span', 'through-fill');
  fill.style.width = `${Math.max(share * 100, share > 0 ? 0.5 : 0)}%`;
  fill.style.background = `rgb(${colour(0.25 + 0.6 * share)})`;
  const track = make('span', 'through-track');
  track.append(fill);
  line.append(verbatim(make('span', 'through-label', label)), track, exact(share));
  return line;
}

function cells(row, readout) {
  const numbers = floats(row.numbers),
    C = row.count,
    R = row.rows.length;
  const most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  const frame = make('div', 'through-cells');
  for (let r = 0; r < R; r += 1) {
    const own = numbers.subarray(r * C, (r + 1) * C),
      line = make('div', row.mark === r ? 'through-strip chosen' : 'through-strip');
    if (R > 1) {
      const label = make('span', 'through-label', row.rows[r]);
      line.append(row.mark === null ? verbatim(label) : label); // words of the text, or heads
    }
    const map = {
      rows: 1,
      columns: C,
      numbers: own,
      paint: signed,
      most,
      className: 'strip',
      name: `${row.rows[r] ? `${row.rows[r]}: ` : ''}${row.name}, ${C} numbers from ${Math.min(...own).toFixed(3)} to ${Math.max(...own).toFixed(3)}`,
      read: (_, i) =>
        readout.replaceChildren(
          make('b', '', `${row.name}${row.rows[r] ? `, ${row.rows[r]}` : ''}`),
          `, number ${(i + 1).toLocaleString('en')} of ${C.toLocaleString('en')}: `,
          exact(own[i]),
        ),
    };
    line.append(heatMap(map));
    frame.append(line);
  }
  return frame;
}

function next() {
  // the next token's distribution, under the visitor's temperature and top-k
  const host = element.querySelector('.through-next'),
    choices = props.bars;
  if (!host || !choices) return;
  // The knobs stay while they are moved: a new element would lose the pointer.
  if (!host.querySelector('.through-knobs')) {
    const knobs = make('div', 'through-knobs');
    knobs.append(
      knob('Temperature', 'temperature', 0.1, 3, 0.1, choices.temperature),
      knob('Top-k (0 = all)', 'top_k', 0, 50, 1, choices.top_k),
    );
    host.append(make('div', 'heat-title', 'What could come next'), knobs, make('div', 'through-drawn'));
  }
  const area = host.querySelector('.through-drawn');
  area.replaceChildren();
  const list = make('div', 'through-bars');
  choices.tokens.forEach((token, i) => list.append(bar(token, choices.probabilities[i], i === choices.chosen)));
  area.append(
    list,
    make('div', 'hint', `Entropy ${choices.entropy.toFixed(3)} nats. The outlined piece is the one that was taken.`),
  );
  const out = element.querySelector('.through-out');
  if (out) out.textContent = `${clip(choices.tokens[0], 14)}  ${(choices.probabilities[0] * 100).toFixed(0)} %`;
}

function knob(name, key, min, max, step, value) {
  const label = make('label', 'through-knob', name),
    input = make('input'),
    output = make('output', 'heat-weight', String(value));
  Object.assign(input, { type: 'range', min, max, step, value, name: key });
  input.addEventListener('input', () => {
    output.textContent = input.value;
    const numbers = Object.fromEntries(
      [...element.querySelectorAll('.through-knob input')].map((one) => [one.name, Number(one.value)]),
    );
    trigger('draw', numbers);
  });
  label.append(input, output);
  return label;
}

watch('value', draw);
watch('bars', next);
onTheme(draw);
draw();
