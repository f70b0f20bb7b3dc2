// The two losses of the generator over D = D(G(z)), and their slopes; the present samples stand as marks on the axis.
function panel(canvas, title, d, lines, low, high, marks, mean, tone) {
  const width = canvas.clientWidth || 340,
    height = 250,
    context = sharpCanvas(canvas, width, height);
  const left = 34,
    right = width - 8,
    top = 44,
    bottom = height - 34,
    x = (v) => left + v * (right - left),
    y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  write(context, title, left, 14, tone.ink);
  let at = left;
  for (const [, colour, text] of lines) {
    write(context, text, at, 32, tone[colour]);
    at += context.measureText(text).width + 14;
  }
  for (const v of [low, 0, high]) {
    path(
      context,
      [
        [left, y(v)],
        [right, y(v)],
      ],
      tone.faint,
      1,
    );
    write(context, `${v}`.replace('-', '−'), left - 6, y(v) + 4, tone.grey, 'right');
  }
  context.save();
  context.beginPath();
  context.rect(left, top - 1, right - left, bottom - top + 2);
  context.clip();
  for (const [values, colour] of lines)
    path(
      context,
      [...values].map((v, i) => [x(d[i]), y(v)]),
      tone[colour],
      2.2,
    );
  context.restore();
  for (const mark of marks)
    path(
      context,
      [
        [x(mark), bottom + 2],
        [x(mark), bottom + 10],
      ],
      tone.made,
      1,
    );
  path(
    context,
    [
      [x(mean), top],
      [x(mean), bottom + 12],
    ],
    tone.made,
    1.6,
  );
  for (const tick of [0, 0.5, 1])
    write(context, `${tick}`, x(tick), height - 6, tone.grey, tick === 0 ? 'left' : tick === 1 ? 'right' : 'center');
  write(context, 'D(G(z))', x(0.26), height - 6, tone.grey, 'center');
  const nearest = d.reduce((best, v, i) => (Math.abs(v - mean) < Math.abs(d[best] - mean) ? i : best), 0);
  canvas.setAttribute('role', 'img');
  canvas.setAttribute(
    'aria-label',
    `${title}. At the mean D(G(z)) = ${mean.toFixed(3)}: ${lines.map(([values, , text]) => `${text} = ${values[nearest].toFixed(3)}`).join(', ')}`,
  );
}

let live = null;
function draw() {
  const value = live || props.value,
    host = element.querySelector('.losses');
  if (!host || !value) return;
  if (host.children.length !== 4) host.replaceChildren(...[0, 1, 2].map(() => make('canvas')), make('p', 'hint'));
  const tone = tones(),
    d = floats(value.d),
    marks = floats(value.marks),
    mean = value.mean,
    one = {};
  for (const name of [
    'minimax',
    'non_saturating',
    'minimax_by_d',
    'non_saturating_by_d',
    'minimax_by_logit',
    'non_saturating_by_logit',
  ])
    one[name] = floats(value[name]);
  const lines = (suffix, ...names) => [
    [one[`minimax${suffix}`], 'd', names[0]],
    [one[`non_saturating${suffix}`], 'best', names[1]],
  ];
  panel(host.children[0], 'The loss of G', d, lines('', 'log(1 − D)', '−log D'), -5, 5, marks, mean, tone);
  panel(host.children[1], 'its slope by D', d, lines('_by_d', '−1/(1 − D)', '−1/D'), -8, 0, marks, mean, tone);
  panel(
    host.children[2],
    'its slope by the logit: what reaches G',
    d,
    lines('_by_logit', '−D', 'D − 1'),
    -1,
    0,
    marks,
    mean,
    tone,
  );
  host.children[3].textContent = value.words;
}
watch('value', () => {
  live = null;
  draw();
});
document.addEventListener('gan-losses', (event) => {
  live = event.detail;
  draw();
});
onTheme(draw);
onLanguage(draw);
onWidth(element, draw);
draw();
