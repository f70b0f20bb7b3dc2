// One picture of a game between generator and discriminator: Figure 1 on the line, or D's map and the warped grid in the
// plane, and below the curves. Everything is worked out by the server; here it is only drawn.
const GAN_CURVES = {
  line: [
    ['value', 'd', 'V(D, G)', []],
    ['criterion', 'best', 'C(G) of samples', []],
    ['theorem', 'made', '−log 4 + 2 JSD', [6, 4]],
  ],
  plane: [
    ['value', 'd', 'V(D, G)', []],
    ['theorem', 'made', '−log 4 + 2 JSD', [6, 4]],
  ],
};
let parts = null,
  ownPoints = [],
  cursor = [0, 0],
  known = null,
  live = null,
  lastKey = '';
// What is shown: the picture that a running game brought last, or the page's own value.
const present = () => live || props.value;

const say = (number, digits = 3) =>
  Number.isFinite(number)
    ? number
        .toFixed(digits)
        .replace(/^-(?=0\.?0*$)/, '')
        .replace('-', '−')
    : '–';
const last = (column) => column[column.length - 1];

function build(host) {
  host.replaceChildren();
  const parts = {
    host,
    readout: make('div', 'game-readout'),
    alarm: make('div', 'game-alarm'),
    stage: make('div', 'game-stage'),
    legend: make('div', 'game-legend'),
    curves: make('canvas', 'game-curves'),
    jsd: make('canvas', 'game-curves'),
    foot: make('div', 'game-foot'),
  };
  parts.readout.setAttribute('aria-live', 'off');
  parts.alarm.setAttribute('role', 'status');
  parts.main = make('canvas', 'game-main');
  parts.side = make('canvas', 'game-side');
  parts.stage.append(parts.main, parts.side);
  parts.label = make('label', 'game-moment', 'Moment ');
  parts.slider = make('input');
  Object.assign(parts.slider, { type: 'range', min: 0, max: 0, value: 0 });
  parts.slider.setAttribute('aria-label', 'Moment of the game');
  parts.slider.addEventListener('input', () => trigger('back', { moment: Number(parts.slider.value) }));
  parts.save = make('button', 'canvas-button', 'Save picture (PNG)');
  parts.save.type = 'button';
  parts.save.addEventListener('click', () => download(parts));
  parts.label.append(parts.slider);
  parts.foot.append(parts.label, parts.save);
  const below = make('div', 'game-below');
  below.append(parts.curves, parts.jsd);
  host.append(parts.readout, parts.alarm, parts.stage, parts.legend, below, parts.foot);
  listen(parts);
  return parts;
}

function figureOne(value, tone) {
  const width = parts.main.clientWidth || 600,
    height = 440,
    context = sharpCanvas(parts.main, width, height);
  const data = floats(value.data),
    fakes = floats(value.generated),
    scores = floats(value.measured),
    best = floats(value.best);
  const limit = value.limit,
    left = 34,
    right = width - 34,
    top = 16,
    ground = 290,
    xLine = 318,
    zLine = 410;
  const place = (x) => left + ((x + limit) / (2 * limit)) * (right - left);
  const highest = 1.6 * Math.max(...data),
    n = data.length;
  const curve = (values, most) =>
    [...values].map((v, i) => [
      place((((i + 0.5) / n) * 2 - 1) * limit),
      ground - Math.min(v / most, 1.02) * (ground - top),
    ]);
  for (const [level, text] of [
    [0, '0'],
    [0.5, '½'],
    [1, '1'],
  ]) {
    const y = ground - level * (ground - top);
    path(
      context,
      [
        [left, y],
        [right, y],
      ],
      tone.faint,
      1,
    );
    write(context, text, right + 8, y + 4, tone.grey);
  }
  write(context, 'D(x)', right - 2, top - 4, tone.d, 'right');
  write(context, 'density', left + 2, top - 4, tone.grey, 'center');
  path(context, curve(data, highest), tone.data, 2.4, [2, 5]);
  path(context, curve(fakes, highest), tone.made, 2.6);
  path(context, curve(best, 1), tone.best, 1.6);
  path(context, curve(scores, 1), tone.d, 2.4, [8, 5]);
  path(
    context,
    [
      [left, xLine],
      [right, xLine],
    ],
    tone.ink,
    1.2,
  );
  path(
    context,
    [
      [left, zLine],
      [right, zLine],
    ],
    tone.ink,
    1.2,
  );
  for (const tick of [-4, -2, 0, 2, 4])
    write(context, `${tick}`.replace('-', '−'), place(tick), xLine - 6, tone.grey, 'center');
  write(context, 'x', right + 10, xLine + 4, tone.ink);
  write(context, 'z', right + 10, zLine + 4, tone.ink);
  const z = floats(value.z),
    x = floats(value.x);
  for (let i = 0; i < z.length; i += 1) {
    const from = [place(z[i] * limit * 0.55), zLine],
      to = [place(Math.max(-limit, Math.min(limit, x[i]))), xLine + 3];
    path(context, [from, to], tone.made, 1);
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    path(
      context,
      [-0.4, 0.4].map((a) => [to[0] - 7 * Math.cos(angle + a), to[1] - 7 * Math.sin(angle + a)]).toSpliced(1, 0, to),
      tone.made,
      1,
    );
  }
  legend(
    [
      ['data', 'p_data', 'dotted'],
      ['made', 'p_g, the generator’s', 'solid'],
      ['d', 'D(x), measured', 'dashed'],
      ['best', 'D*(x) = p_data / (p_data + p_g)', 'solid'],
    ],
    tone,
  );
}

function square(canvas, limit, most) {
  const side = Math.min(canvas.parentElement.clientWidth, most, canvas.clientWidth || most),
    context = sharpCanvas(canvas, side, side);
  return {
    context,
    side,
    at: (x, y) => [((x + limit) / (2 * limit)) * side, side - ((y + limit) / (2 * limit)) * side],
  };
}
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
function plane(value, tone) {
  const { context, side, at } = square(parts.main, value.limit, 560),
    scores = floats(value.measured),
    n = Math.sqrt(scores.length);
  const [paper, high, low] = [rgb(tone.paper), rgb(tone.d), rgb(tone.made)];
  const sheet = cellPicture(n, n, (i) => {
    const d = scores[(n - 1 - Math.floor(i / n)) * n + (i % n)],
      end = d > 0.5 ? high : low,
      share = 0.75 * Math.min(1, Math.abs(d - 0.5) * 2);
    return paper.map((c, part) => c + (end[part] - c) * share);
  });
  context.imageSmoothingEnabled = true;
  context.drawImage(sheet, 0, 0, side, side);
  const dot = (x, y, radius, colour) => {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(...at(x, y), radius, 0, 7);
    context.fill();
  };
  const real = floats(value.real),
    samples = floats(value.samples),
    push = floats(value.push);
  for (let i = 0; i < real.length; i += 2) dot(real[i], real[i + 1], 2, tone.data);
  const longest = Math.max(
    1e-9,
    ...Array.from({ length: push.length / 2 }, (_, i) => Math.hypot(push[2 * i], push[2 * i + 1])),
  );
  for (let i = 0; i < samples.length; i += 2) {
    dot(samples[i], samples[i + 1], 2.6, tone.made);
    const scale = 0.8 / longest;
    path(
      context,
      [at(samples[i], samples[i + 1]), at(samples[i] + push[i] * scale, samples[i + 1] + push[i + 1] * scale)],
      tone.best,
      1.3,
    );
  }
  if (value.drawing) {
    for (const [x, y] of ownPoints) dot(x, y, 4, tone.lost);
    const [x, y] = at(...cursor);
    if (document.activeElement === parts.main) {
      path(
        context,
        [
          [x - 8, y],
          [x + 8, y],
        ],
        tone.lost,
      );
      path(
        context,
        [
          [x, y - 8],
          [x, y + 8],
        ],
        tone.lost,
      );
    }
  }
  warpedGrid(value, tone);
  const words = [
    ['data', 'data', 'dot'],
    ['made', 'samples', 'dot'],
    ['best', 'where D pushes them', 'solid'],
    ['d', 'D near 1', 'field'],
    ['made', 'D near 0', 'field'],
  ];
  legend(words, tone);
}
function warpedGrid(value, tone) {
  const { context, side, at } = square(parts.side, value.limit, 560),
    grid = floats(value.warped),
    along = 25;
  for (let line = 0; line < grid.length / (2 * along); line += 1) {
    const points = Array.from({ length: along }, (_, i) =>
      at(grid[2 * (line * along + i)], grid[2 * (line * along + i) + 1]),
    );
    path(context, points, line < grid.length / (4 * along) ? tone.made : tone.d, 1);
  }
  if (value.centres) {
    const centres = floats(value.centres);
    value.found.forEach((hit, i) => {
      const [x, y] = at(centres[2 * i], centres[2 * i + 1]);
      context.strokeStyle = hit ? tone.made : tone.lost;
      context.lineWidth = 2.4;
      context.beginPath();
      context.arc(x, y, 11, 0, 7);
      context.stroke();
      write(context, `${i + 1}`, x + 12, y - 9, tone.ink);
      if (!hit) {
        path(
          context,
          [
            [x - 6, y - 6],
            [x + 6, y + 6],
          ],
          tone.lost,
        );
        path(
          context,
          [
            [x - 6, y + 6],
            [x + 6, y - 6],
          ],
          tone.lost,
        );
      }
    });
  }
  const phrases = [
      'the grid of z, as G bends it',
      ...(value.centres ? ['circles: modes by number, crossed out where lost'] : []),
    ],
    whole = phrases.map(spoken).join('; ');
  const lines = context.measureText(whole).width < side - 16 ? [whole] : phrases;
  lines.forEach((words, i) => write(context, words, 8, 18 + 17 * i, tone.ink));
}

function legend(entries, tone) {
  const key = JSON.stringify([entries, tone.ink]);
  if (key === lastKey && parts.legend.firstChild) return;
  lastKey = key;
  parts.legend.replaceChildren(
    ...entries.map(([colour, text, kind]) => {
      const entry = make('span', 'game-entry'),
        mark = make('span', `game-mark ${kind}`);
      mark.style.setProperty('--tone', tone[colour]);
      entry.append(mark, text);
      return entry;
    }),
  );
}

// A title and the names of its lines in their colours, in as many rows as they need; returns where the last one stands.
function entitled(context, title, names, left, right, tone) {
  let at = left,
    row = 14;
  for (const [text, colour] of [[title, tone.ink], ...names]) {
    const width = context.measureText(spoken(text)).width;
    if (at > left && at + width > right) {
      at = left;
      row += 18;
    }
    write(context, text, at, row, colour);
    at += width + 14;
  }
  return row;
}

function plot(canvas, title, steps, lines, level, tone, floor) {
  const width = canvas.clientWidth || 500,
    height = 180,
    context = sharpCanvas(canvas, width, height);
  const left = 46,
    right = width - 10,
    bottom = height - 22;
  const entries = lines.filter(([, , text]) => text).map(([, colour, text]) => [text, tone[colour]]);
  if (level !== undefined) entries.push(['⋯ −log 4', tone.grey]);
  const top = entitled(context, title, entries, left, right, tone) + 12;
  const numbers = lines.flatMap(([values]) => [...values].filter(Number.isFinite)).concat(level ?? [], floor ?? []);
  let low = Math.min(...numbers),
    high = Math.max(...numbers);
  if (high - low < 1e-6) {
    high += 0.05;
    low -= 0.05;
  }
  const end = Math.max(1, last(steps)),
    x = (s) => left + (s / end) * (right - left),
    y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  for (const v of [low, (low + high) / 2, high]) {
    path(
      context,
      [
        [left, y(v)],
        [right, y(v)],
      ],
      tone.faint,
      1,
    );
    write(context, say(v, 2), left - 6, y(v) + 4, tone.grey, 'right');
  }
  if (level !== undefined) {
    path(
      context,
      [
        [left, y(level)],
        [right, y(level)],
      ],
      tone.grey,
      1,
      [2, 3],
    );
  }
  for (const [values, colour, , dash] of lines)
    path(
      context,
      [...values].map((v, i) => [x(steps[i]), y(v)]),
      tone[colour],
      1.8,
      dash,
    );
  write(context, 'iteration', right, height - 6, tone.grey, 'right');
  write(context, '0', left, height - 6, tone.grey);
  write(context, `${end.toLocaleString('en')}`, right - 62, height - 6, tone.grey, 'right');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute(
    'aria-label',
    `${title}: ${lines.map(([values, , text]) => `${text || title} now ${say(last(values))}`).join(', ')}`,
  );
}

function draw() {
  const value = present(),
    host = element.querySelector('.game');
  if (!host || !value) return;
  if (!parts || parts.host !== host || !host.firstChild) parts = build(host);
  const tone = tones(),
    row = value.row,
    line = value.dimensions === 1;
  host.classList.toggle('plane', !line);
  parts.side.hidden = line;
  if (!value.drawing) ownPoints = [];
  parts.main.tabIndex = value.drawing ? 0 : -1;
  parts.main.classList.toggle('drawing', Boolean(value.drawing));
  const modes = value.found ? ` · modes ${value.found.filter(Boolean).length} of ${value.found.length}` : '';
  const words =
    `iteration ${row.iteration.toLocaleString('en')} · ${row.d_steps.toLocaleString('en')} steps of D, ${row.g_steps.toLocaleString('en')} of G · V ${say(row.value)} · ` +
    `C(G) ${say(row.criterion)} · −log 4 + 2 JSD ${say(row.theorem)} · JSD ${say(row.jsd)} · mean |D − D*| ${say(row.error)}${modes}`;
  parts.readout.textContent = words;
  parts.alarm.textContent = value.note || '';
  parts.alarm.classList.toggle('failed', Boolean(value.failed));
  parts.main.setAttribute('role', value.drawing ? 'application' : 'img');
  parts.main.setAttribute(
    'aria-label',
    value.drawing ? 'Plane to draw on: arrow keys move the cross, Enter sets a point' : `${value.title}: ${words}`,
  );
  if (document.activeElement !== parts.slider || known !== value.moments) {
    parts.slider.max = value.moments - 1;
    parts.slider.value = value.moment;
  }
  known = value.moments;
  if (line) figureOne(value, tone);
  else plane(value, tone);
  const rows = Object.fromEntries(Object.entries(value.rows).map(([name, column]) => [name, floats(column)]));
  const kind = line ? 'line' : 'plane';
  plot(
    parts.curves,
    'Value',
    rows.iteration,
    GAN_CURVES[kind].map(([name, ...rest]) => [rows[name], rest[0], rest[1], rest[2]]),
    -Math.log(4),
    tone,
  );
  plot(parts.jsd, 'JSD(p_data ‖ p_g)', rows.iteration, [[rows.jsd, 'made', '', []]], undefined, tone, 0);
  host.dataset.iteration = row.iteration;
  host.dataset.pictures = Number(host.dataset.pictures || 0) + 1;
}

function download(parts) {
  const canvases = [parts.main, ...(parts.side.hidden ? [] : [parts.side]), parts.curves, parts.jsd],
    gap = 16;
  const whole = make('canvas'),
    context = whole.getContext('2d');
  whole.width = Math.max(...canvases.map((canvas) => canvas.width)) + 2 * gap;
  whole.height = canvases.reduce((sum, canvas) => sum + canvas.height + gap, gap);
  context.fillStyle = tones().paper;
  context.fillRect(0, 0, whole.width, whole.height);
  let top = gap;
  for (const canvas of canvases) {
    context.drawImage(canvas, gap, top);
    top += canvas.height + gap;
  }
  const link = make('a');
  link.href = whole.toDataURL('image/png');
  link.download = `gan-${parts.host.dataset.iteration}.png`;
  link.click();
}

// Drawing one's own points, with a finger, a mouse or the arrow keys.
function listen(parts) {
  const canvas = parts.main,
    most = 400;
  let dragging = false;
  const add = (x, y) => {
    if (ownPoints.length >= most || Math.abs(x) > 4 || Math.abs(y) > 4) return;
    ownPoints.push([Number(x.toFixed(3)), Number(y.toFixed(3))]);
    draw();
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect(),
      limit = present().limit;
    add(
      (((event.clientX - box.left) / box.width) * 2 - 1) * limit,
      (1 - ((event.clientY - box.top) / box.height) * 2) * limit,
    );
  };
  const drawing = () => present()?.drawing;
  canvas.addEventListener('pointerdown', (event) => {
    if (drawing()) {
      dragging = true;
      canvas.setPointerCapture(event.pointerId);
      point(event);
    }
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!dragging || !drawing()) return;
    const [x, y] = ownPoints.length ? ownPoints[ownPoints.length - 1] : [9, 9],
      box = canvas.getBoundingClientRect(),
      limit = present().limit;
    const now = [
      (((event.clientX - box.left) / box.width) * 2 - 1) * limit,
      (1 - ((event.clientY - box.top) / box.height) * 2) * limit,
    ];
    if (Math.hypot(now[0] - x, now[1] - y) > 0.12) add(...now);
  });
  const finish = () => {
    if (dragging) {
      dragging = false;
      if (ownPoints.length) trigger('drawn', { points: ownPoints });
    }
  };
  canvas.addEventListener('pointerup', finish);
  canvas.addEventListener('pointercancel', finish);
  canvas.addEventListener('keydown', (event) => {
    const move = { ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] }[event.key];
    if (!drawing() || !(move || event.key === 'Enter' || event.key === ' ')) return;
    event.preventDefault();
    if (move) {
      cursor = cursor.map((c, i) => Math.max(-3.9, Math.min(3.9, c + move[i])));
      draw();
    } else {
      add(...cursor);
      trigger('drawn', { points: ownPoints });
    }
  });
}

watch('value', () => {
  live = null;
  draw();
});
onTheme(draw);
onLanguage(draw);
onWidth(element, draw);
draw();
