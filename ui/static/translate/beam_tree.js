// The search as a tree: columns are steps, shapes tell what became of a branch. Tokens enter the page as text only.
const penalty = (length, alpha) => ((5 + length) / 6) ** alpha; // Wu et al. 2016, equation 14
const AROUND = 14; // steps drawn on each side of the current one, so that long outputs stay quick
let step = 1,
  alpha = 0.6,
  first = 0,
  last = 0,
  parts = null,
  data = null;

function ranking() {
  const value = data;
  parts.alphaName.textContent = `α = ${alpha.toFixed(2)}`;
  const ranked = value.ended
    .map(([text, logprob, length, finished], place) => ({
      text,
      logprob,
      length,
      finished,
      place,
      score: logprob / penalty(length, alpha),
    }))
    .sort((a, b) => b.score - a.score);
  parts.ranking.replaceChildren();
  ranked.forEach((one, rank) => {
    const row = make('tr');
    const words = make(
      'td',
      'rank-text',
      (one.text || '(nothing)') + (one.finished ? '' : ' … (cut at the length limit)'),
    );
    words.dir = 'auto';
    const rise = one.place - rank;
    row.append(
      make('td', '', String(rank + 1)),
      words,
      make('td', '', one.logprob.toFixed(3)),
      make('td', '', String(one.length)),
      make('td', '', one.score.toFixed(3)),
      make('td', 'rank-moved', rise > 0 ? `▲ ${rise}` : rise < 0 ? `▼ ${-rise}` : '–'),
    );
    parts.ranking.append(row);
  });
}

function tree() {
  const value = data,
    count = value.parent.length,
    start = value.step[0];
  const end = value.step[count - 1];
  first = end - start > 2 * AROUND ? Math.max(start, Math.min(step - AROUND, end - 2 * AROUND)) : start;
  last = Math.min(end, first + 2 * AROUND);
  const wide = 118,
    high = 38,
    top = 30;
  const place = new Map(),
    perStep = new Map();
  for (let i = 0; i < count; i += 1) {
    if (value.step[i] < first || value.step[i] > last) continue;
    const row = perStep.get(value.step[i]) || 0;
    perStep.set(value.step[i], row + 1);
    place.set(i, [12 + (value.step[i] - first) * wide, top + row * high]);
  }
  const rows = Math.max(...perStep.values(), 1),
    width = 12 + (last - first + 1) * wide,
    height = top + rows * high + 4;
  const svg = node('svg', {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': 'Beam search as a tree',
  });
  const column = node('rect', { y: 0, width: wide - 6, height, rx: 6, class: 'tree-now', visibility: 'hidden' });
  svg.append(column);
  for (let s = first; s <= last; s += 1)
    svg.append(
      node('text', { x: 12 + (s - first) * wide, y: 14, class: 'tree-step' }, s === 0 ? 'start' : `step ${s}`),
    );
  const lines = node('g', {}),
    dots = node('g', {});
  svg.append(lines, dots);
  const elements = new Map();
  for (const [i, [x, y]] of place) {
    const state = value.state[i],
      parent = place.get(value.parent[i]);
    let line = null;
    if (parent) {
      const [px, py] = parent;
      line = node('path', {
        d: `M${px + wide - 30} ${py + 9}C${px + wide - 14} ${py + 9} ${x - 20} ${y + 9} ${x - 4} ${y + 9}`,
        class: `tree-line ${state}`,
      });
      lines.append(line);
    }
    const group = node('g', { class: `tree-node ${state}`, transform: `translate(${x} ${y})`, 'data-node': i });
    const shape =
      state === 'finished'
        ? node('rect', { x: 0, y: 4, width: 10, height: 10 })
        : state === 'pruned'
          ? node('path', { d: 'M1 5l8 8M9 5l-8 8' })
          : node('circle', { cx: 5, cy: 9, r: 5 });
    shape.setAttribute('class', 'tree-mark');
    const score = value.logprob[i] / penalty(Math.max(value.step[i], 1), value.alpha);
    const title =
      `${plain(value.token[i])}: ${{ beam: 'went on', finished: 'finished', pruned: 'pruned' }[state]}, log p ${value.logprob[i].toFixed(3)}, ` +
      `score ${score.toFixed(3)}`;
    group.append(
      shape,
      verbatim(node('text', { x: 15, y: 13, class: 'tree-token' }, clip(plain(value.token[i]), 11))),
      node('text', { x: 15, y: 25, class: 'tree-score' }, score.toFixed(2)),
      node('title', {}, title),
    );
    if (i > 0 && state !== 'finished') {
      group.setAttribute('tabindex', 0);
      group.setAttribute('role', 'button');
      group.setAttribute('aria-label', `${title}; go on from here`);
      const pick = () => trigger('force', { node: i });
      group.addEventListener('click', pick);
      group.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          pick();
        }
      });
    }
    dots.append(group);
    elements.set(i, [group, line]);
  }
  Object.assign(parts, { column, elements, wide });
  parts.scroll.replaceChildren(svg);
  mark();
}

function mark() {
  // who is alive at the current step, and all their ancestors
  const value = data,
    alive = new Set(),
    at = Math.min(step, value.step[value.step.length - 1]);
  for (let i = 0; i < value.parent.length; i += 1) {
    if (value.step[i] !== at || value.state[i] === 'pruned') continue;
    for (let j = i; j >= 0 && !alive.has(j); j = value.parent[j]) alive.add(j);
  }
  for (const [i, [group, line]] of parts.elements) {
    group.classList.toggle('alive', alive.has(i));
    group.classList.toggle('later', value.step[i] > at);
    if (line) {
      line.classList.toggle('alive', alive.has(i));
      line.classList.toggle('later', value.step[i] > at);
    }
  }
  const x = 6 + (at - first) * parts.wide;
  parts.column.setAttribute('x', x);
  parts.column.setAttribute('visibility', 'visible');
  const view = parts.scroll;
  if (x < view.scrollLeft || x + parts.wide > view.scrollLeft + view.clientWidth)
    view.scrollLeft = x - view.clientWidth / 3;
}

function draw() {
  parts = null;
  data = props.value ? JSON.parse(props.value) : null;
  const value = data,
    host = cleared(element, '.beam', value?.parent);
  if (!host) return;
  alpha = value.alpha;
  parts = { scroll: make('div', 'tree-scroll') };
  const legend = make('p', 'tree-legend');
  for (const [state, text] of [
    ['beam', '● in the beam'],
    ['finished', '■ finished'],
    ['pruned', '✕ pruned.'],
  ])
    legend.append(make('span', `legend-${state}`, text), ' ');
  legend.append(
    `Beam ${value.beam}; each step weighs the ${2 * value.beam} best continuations. Below each piece its score at α = ${value.alpha}. Select one to force it.`,
  );
  const bar = make('label', 'alpha-bar'),
    slider = make('input', 'alpha-slider');
  Object.assign(slider, { type: 'range', min: 0, max: 2, step: 0.05, value: alpha });
  parts.alphaName = make('output', 'alpha-name');
  bar.append(make('span', '', 'Length penalty'), slider, parts.alphaName);
  slider.addEventListener('input', () => {
    alpha = Number(slider.value);
    ranking();
  });
  const table = make('table', 'rank-table'),
    head = make('tr');
  for (const name of ['#', 'translation', 'log p', 'pieces with the end', 'score', 'moved'])
    head.append(make('th', '', name));
  const top = make('thead');
  top.append(head);
  parts.ranking = make('tbody');
  table.append(top, parts.ranking);
  const box = make('div', 'rank-scroll');
  box.append(table);
  const search = fold(
    'The search',
    'Beam search keeps the best few beginnings at every step. Alive branches lead to the beginnings kept at the current step.',
  );
  search.append(legend, parts.scroll);
  search.addEventListener('toggle', mark); // what is folded has no width to scroll in
  const ranks = fold(
    'The length penalty ranks what has finished',
    'Score = log-probability / ((5 + pieces) / 6)^α. All hypotheses that ended are ranked again; nothing is decoded again, ' +
      'so another α might still find others.',
  );
  ranks.append(bar, box);
  host.append(search, ranks);
  tree();
  ranking();
}

document.addEventListener('atelier-step', (event) => {
  step = event.detail;
  if (!parts?.elements) return;
  const end = data.step[data.step.length - 1];
  if ((step < first + 2 && first > data.step[0]) || (step > last - 2 && last < end)) tree();
  else mark();
});
watch('value', draw);
draw();
