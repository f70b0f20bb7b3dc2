// The heads of one layer as lines from queries (left) to keys (right), a colour for each head, as in Figures 3 to 5 of
// "Attention Is All You Need". Pointing at a word shows its lines alone; a click keeps it so. Tokens enter as text.
const ROW = 24,
  GAP = 190,
  MOST = 6000,
  FAINT = 0.02;
let on = [],
  pinned = null;

function draw() {
  const value = props.value,
    host = cleared(element, '.lines', value?.rows);
  if (!host) return;
  const weights = floats(value.weights),
    H = value.heads,
    R = value.rows.length,
    C = value.columns.length;
  const single = props.alone;
  if (on.length !== H || draw.drawn !== value.weights || draw.alone !== single) {
    on = Array.from({ length: H }, (_, head) => !(single >= 0) || single === head);
    pinned = null;
  }
  draw.drawn = value.weights;
  draw.alone = single;

  host.append(make('div', 'heat-title', value.title));
  const chips = make('div', 'line-heads');
  chips.append(make('span', 'hint', 'Heads: click to switch, double click to see one alone.'));
  const buttons = on.map((_, head) => {
    const chip = make('button', 'line-chip', `${head + 1}`);
    chip.type = 'button';
    chip.dataset.head = head;
    chip.setAttribute('aria-label', `Head ${head + 1}`);
    chip.style.setProperty('--chip', headColour(head));
    if (head >= HEADS.light.length) chip.classList.add('dashed');
    chip.addEventListener('click', (event) => {
      if (event.detail < 2) {
        on[head] = !on[head];
        paint();
      }
    });
    chip.addEventListener('dblclick', () => {
      const alone = on.every((state, other) => state === (other === head));
      on = on.map((_, other) => alone || other === head);
      paint();
    });
    chips.append(chip);
    return chip;
  });
  host.append(chips);

  const frame = make('div', 'line-scroll'),
    stage = make('div', 'line-stage'),
    canvas = make('canvas');
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const sides = {};
  for (const [side, tokens, axis] of [
    ['row', value.rows, value.rowAxis],
    ['column', value.columns, value.columnAxis],
  ]) {
    const column = make('div', `line-side line-${side}`);
    column.append(make('div', 'line-axis', axis));
    sides[side] = tokens.map((token, index) => {
      const word = verbatim(make('button', 'line-token', plain(token)));
      word.type = 'button';
      word.dataset.side = side;
      word.dataset.index = index;
      word.title = (side === 'row' && value.rowNames?.[index]) || token;
      const here = [side, index];
      word.addEventListener('pointerenter', () => {
        if (!pinned) paint(here);
      });
      word.addEventListener('pointerleave', () => {
        if (!pinned) paint();
      });
      word.addEventListener('focus', () => {
        if (!pinned) paint(here);
      });
      word.addEventListener('blur', () => {
        if (!pinned) paint();
      });
      word.addEventListener('click', () => {
        pinned = pinned && pinned[0] === side && pinned[1] === index ? null : here;
        paint(pinned || undefined);
      });
      column.append(word);
      return word;
    });
    sides[`${side}Column`] = column;
  }
  stage.append(sides.rowColumn, canvas, sides.columnColumn);
  frame.append(stage);
  host.append(frame);
  if (value.says) host.append(make('p', 'heat-says', value.says));
  const readout = make('div', 'heat-readout');
  readout.setAttribute('aria-live', 'polite');
  host.append(readout);

  const width = Math.max(60, Math.min(GAP, (host.clientWidth || 600) * 0.4));
  // The middle of each word as it was laid out, from the upper end of the canvas.
  const top = canvas.getBoundingClientRect().top;
  const middles = (words) =>
    words.map((word, i) => {
      const box = word.getBoundingClientRect();
      return box.height ? box.top - top + box.height / 2 : (i + 0.5) * ROW;
    });
  const rowMiddles = middles(sides.row),
    columnMiddles = middles(sides.column);
  const height = Math.max(...rowMiddles, ...columnMiddles) + ROW / 2;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.scale(scale, scale);

  function paint(alone = pinned) {
    buttons.forEach((chip, head) => {
      chip.classList.toggle('off', !on[head]);
      chip.setAttribute('aria-pressed', on[head]);
    });
    context.clearRect(0, 0, width, height);
    const least = Math.max(props.threshold || 0, FAINT),
      heads = [...on.keys()].filter((head) => on[head]);
    let links = [];
    const from = alone && alone[0] === 'row' ? [alone[1]] : null,
      to = alone && alone[0] === 'column' ? [alone[1]] : null;
    for (const head of heads) {
      for (let r = from ? from[0] : 0; r < (from ? from[0] + 1 : R); r += 1) {
        for (let c = to ? to[0] : 0; c < (to ? to[0] + 1 : C); c += 1) {
          const weight = weights[(head * R + r) * C + c];
          if (weight >= least) links.push([weight, head, r, c]);
        }
      }
    }
    const total = links.length;
    if (total > MOST) links = links.sort((a, b) => b[0] - a[0]).slice(0, MOST);
    for (const [weight, head, r, c] of links) {
      // Heads lie beside each other, so that equal lines do not cover one another.
      const shift =
        heads.length > 1 ? (heads.indexOf(head) / (heads.length - 1) - 0.5) * Math.min(10, 2.5 * heads.length) : 0;
      context.beginPath();
      context.globalAlpha = Math.min(1, alone ? 0.15 + 0.85 * weight : weight);
      context.strokeStyle = headColour(head);
      context.lineWidth = 0.75 + 2.25 * weight;
      context.setLineDash(head >= HEADS.light.length ? [6, 4] : []);
      context.moveTo(0, rowMiddles[r] + shift);
      context.lineTo(width, columnMiddles[c] + shift);
      context.stroke();
    }
    element.dataset.lines = links.length;
    for (const [side, count] of [
      ['row', R],
      ['column', C],
    ]) {
      for (let i = 0; i < count; i += 1) {
        const own = alone && alone[0] === side && alone[1] === i;
        sides[side][i].classList.toggle('lit', Boolean(own));
        sides[side][i].classList.toggle('pinned', Boolean(own && pinned));
        sides[side][i].style.removeProperty('--touch');
      }
    }
    if (!alone) {
      readout.textContent =
        total > MOST
          ? `The ${MOST.toLocaleString('en')} strongest of ${total.toLocaleString('en')} lines are drawn. Point at a word to see its own.`
          : 'Point at a word to see its lines alone; click to keep it so.';
      return;
    }
    const best = [...links].sort((a, b) => b[0] - a[0]);
    for (const [weight, head, r, c] of [...best].reverse()) {
      const other = alone[0] === 'row' ? sides.column[c] : sides.row[r];
      other.style.setProperty(
        '--touch',
        `color-mix(in srgb, ${headColour(head)} ${Math.round(weight * 55)}%, transparent)`,
      );
    }
    readout.replaceChildren();
    const own = make(
      'b',
      '',
      alone[0] === 'row' ? value.rowNames?.[alone[1]] || plain(value.rows[alone[1]]) : plain(value.columns[alone[1]]),
    );
    readout.append(own, alone[0] === 'row' ? ' looks at ' : ' is looked at by ');
    best.slice(0, 5).forEach(([weight, head, r, c], i) => {
      const number = make('span', 'heat-weight', weight.toFixed(4));
      number.title = weight;
      readout.append(
        i ? ', ' : '',
        verbatim(make('b', '', plain(alone[0] === 'row' ? value.columns[c] : value.rows[r]))),
        ` (head ${head + 1}: `,
        number,
        ')',
      );
    });
    if (!best.length) readout.append('nothing above the threshold');
  }
  paint();
}

watch(['value', 'threshold', 'alone'], draw);
onWidth(element, draw);
onTheme(draw);
draw();
