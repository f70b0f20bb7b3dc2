// One attention map: rows are queries, columns are keys. Every token enters the page as text, never as markup.
const FOOT = 190; // pixels that title, sentence and scale take of a full screen
const measure = document.createElement('canvas').getContext('2d');

function draw() {
  const value = props.value,
    host = cleared(element, '.heat', value?.rows);
  if (!host) return;
  const weights = floats(value.weights),
    R = value.rows.length,
    C = value.columns.length;
  // Fixed from 0 to 1, so that two maps can be compared, unless the visitor asks for more contrast.
  const clickable = element.closest('.clickable');
  const raw = value.raw ? floats(value.raw) : null;
  const threshold = props.threshold || 0;
  const most = props.stretch
    ? Math.max(
        weights.reduce((a, b) => Math.max(a, b), 0),
        1e-6,
      )
    : 1;

  const title = make('div', 'heat-title', value.title);
  const whole = make('button', 'heat-whole', 'Full screen');
  whole.type = 'button';
  whole.addEventListener('click', () =>
    document.fullscreenElement ? document.exitFullscreen() : element.requestFullscreen?.(),
  );
  title.append(whole);
  host.append(title);

  // Sizes: as large as the width allows, never so small that a cell cannot be pointed at. On the full screen all of it is
  // in sight, to the last row.
  const full = document.fullscreenElement === element;
  measure.font = '13px "IBM Plex Sans", sans-serif';
  const widest = (tokens) => Math.max(...tokens.map((token) => measure.measureText(clip(plain(token), 18)).width), 10);
  const widths = [value.rows, value.columns, value.columns.slice(-2)].map(widest);
  const sizes = (cell) => {
    const font = full ? Math.max(5, Math.min(26, cell * 0.6)) : Math.max(7, Math.min(13, cell * 0.85));
    const [rows, columns, last] = widths.map((width) => (width * font) / 13);
    return {
      cell,
      font,
      left: Math.ceil(rows) + 34,
      top: Math.ceil(columns * 0.87) + 36,
      right: Math.ceil(last * 0.5),
    };
  };
  const room = Math.max((host.clientWidth || 600) - Math.ceil(widths[0]) - 40, 120);
  const fits = ({ cell, left, top, right }) =>
    left + C * cell + right + 4 <= host.clientWidth && top + R * cell <= window.innerHeight - FOOT;
  let size = sizes(full ? 72 : Math.max(C > 80 ? 7 : 15, Math.min(44, Math.floor(room / C), Math.floor(640 / R))));
  while (full && size.cell > 2 && !fits(size)) size = sizes(size.cell - 0.5);
  const { cell, font, left, top, right } = size;
  const width = left + C * cell + right + 4,
    height = top + R * cell + 4;

  const svg = node('svg', {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    tabindex: 0,
    'aria-label': `${value.title}. ${value.rowAxis} by ${value.columnAxis}. Arrow keys read out single weights.`,
  });
  svg.append(node('text', { x: left, y: 14, class: 'heat-axis' }, `${value.columnAxis} →`));
  svg.append(
    node(
      'text',
      {
        x: 0,
        y: 0,
        class: 'heat-axis',
        'text-anchor': 'end',
        transform: `translate(14 ${top}) rotate(-90)`,
      },
      `← ${value.rowAxis}`,
    ),
  );
  value.columns.forEach((token, c) => {
    const label = node(
      'text',
      {
        class: 'heat-label',
        'data-column': c,
        'font-size': font,
        transform: `translate(${left + (c + 0.5) * cell + font * 0.25} ${top - 6}) rotate(-60)`,
      },
      clip(plain(token), 18),
    );
    label.append(node('title', {}, token));
    svg.append(label);
  });
  value.rows.forEach((token, r) => {
    const label = node(
      'text',
      {
        class: 'heat-label',
        'data-row': r,
        'font-size': font,
        'text-anchor': 'end',
        x: left - 7,
        y: top + (r + 0.5) * cell + font * 0.34,
      },
      clip(plain(token), 18),
    );
    label.append(node('title', {}, token));
    svg.append(label);
  });

  const canvas = cellPicture(R, C, (i) => colour(weights[i] < threshold ? 0 : weights[i] / most));
  const picture = node('image', {
    x: left,
    y: top,
    width: C * cell,
    height: R * cell,
    preserveAspectRatio: 'none',
    style: 'image-rendering: pixelated',
  });
  picture.setAttribute('href', canvas.toDataURL());
  svg.append(picture);
  if (cell >= 12) {
    let lines = '';
    for (let c = 1; c < C; c += 1) lines += `M${left + c * cell} ${top}v${R * cell}`;
    for (let r = 1; r < R; r += 1) lines += `M${left} ${top + r * cell}h${C * cell}`;
    svg.append(node('path', { d: lines, class: 'heat-lines' }));
  }
  if (cell >= 30) {
    for (let i = 0; i < R * C; i += 1) {
      if (weights[i] < 0.005 || weights[i] < threshold) continue;
      svg.append(
        node(
          'text',
          {
            x: left + ((i % C) + 0.5) * cell,
            y: top + (Math.floor(i / C) + 0.5) * cell + (full ? cell * 0.12 : 3.5),
            'text-anchor': 'middle',
            class: 'heat-number',
            'font-size': full ? cell * 0.34 : 10.5,
            fill: ink(colour(weights[i] / most)),
          },
          weights[i].toFixed(2).replace(/^0/, ''),
        ),
      );
    }
  }
  svg.append(node('rect', { x: left, y: top, width: C * cell, height: R * cell, class: 'heat-frame' }));
  const marked = node('rect', { width: cell, height: cell, class: 'heat-marked', visibility: 'hidden' });
  svg.append(marked);
  svg.mark = (r, c) => {
    if (r >= R || c >= C) return;
    marked.setAttribute('x', left + c * cell);
    marked.setAttribute('y', top + r * cell);
    marked.setAttribute('visibility', 'visible');
  };
  if (value.marked) svg.mark(...value.marked);
  const cursor = node('rect', { width: cell, height: cell, class: 'heat-cursor', visibility: 'hidden' });
  svg.append(cursor);

  const scroll = make('div', 'heat-scroll');
  scroll.append(svg);
  host.append(scroll);

  if (value.says) host.append(make('p', 'heat-says', value.says));
  const foot = make('div', 'heat-foot');
  const readout = make('div', 'heat-readout');
  readout.setAttribute('aria-live', 'polite');
  readout.textContent = value.hint || 'Point at a cell to read its weight.';
  const scale = make('div', 'heat-scale');
  const bar = scaleBar(colour, [0, 0.25, 0.5, 0.75, 1]);
  scale.append('0', bar, most === 1 ? '1' : most.toFixed(3));
  foot.append(readout, scale);
  host.append(foot);

  let at = null;
  function show(r, c) {
    at = [r, c];
    cursor.setAttribute('x', left + c * cell);
    cursor.setAttribute('y', top + r * cell);
    cursor.setAttribute('visibility', 'visible');
    svg.querySelectorAll('.heat-label.lit').forEach((label) => label.classList.remove('lit'));
    svg.querySelector(`[data-row="${r}"]`).classList.add('lit');
    svg.querySelector(`[data-column="${c}"]`).classList.add('lit');
    readout.replaceChildren();
    const query = document.createElement('b'),
      key = document.createElement('b'),
      weight = document.createElement('span');
    query.textContent = value.rowNames ? value.rowNames[r] : plain(value.rows[r]);
    key.textContent = plain(value.columns[c]);
    weight.className = 'heat-weight';
    weight.textContent = weights[r * C + c].toFixed(4);
    weight.title = weights[r * C + c]; // every digit
    readout.append(query, ` ${value.verb} `, key, ' with ', weight);
    if (raw) readout.append(` (${raw[r * C + c] < 0 ? '−' : '+'}${Math.abs(raw[r * C + c]).toFixed(4)} ${value.unit})`);
  }
  const cellAt = (event) => {
    const box = svg.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - left) / cell),
      r = Math.floor((event.clientY - box.top - top) / cell);
    return r >= 0 && r < R && c >= 0 && c < C ? [r, c] : null;
  };
  // The weight beside the pointer, so that nobody has to look away to read it.
  const tip = make('div', 'heat-tip');
  tip.hidden = true;
  host.append(tip);
  const follow = (event) => {
    const box = host.getBoundingClientRect();
    tip.textContent = readout.textContent;
    tip.hidden = false;
    const x = event.clientX - box.left + 14;
    tip.style.left = `${Math.max(0, Math.min(x, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${event.clientY - box.top + 16}px`;
  };
  svg.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  const pick = () => {
    if (clickable && at) trigger('cell', { row: at[0], column: at[1] });
  };
  svg.addEventListener('pointermove', (event) => {
    const cell = cellAt(event);
    if (cell) {
      show(...cell);
      follow(event);
    } else tip.hidden = true;
  });
  svg.addEventListener('click', (event) => {
    const cell = cellAt(event);
    if (cell) {
      show(...cell);
      pick();
    }
  });
  svg.addEventListener('keydown', (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === 'Enter') pick();
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const [r, c] = at || [0, 0];
    show(Math.min(Math.max(r + (at ? move[0] : 0), 0), R - 1), Math.min(Math.max(c + (at ? move[1] : 0), 0), C - 1));
  });
}

watch(['value', 'stretch', 'threshold'], draw);
onWidth(element, draw);
document.addEventListener('fullscreenchange', draw);
onTheme(draw);
draw();
