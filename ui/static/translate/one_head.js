// One query of one head, in the six steps of The Illustrated Transformer: every vector is a strip of coloured cells, and
// pointing at a cell reads its number. Tokens enter the page as text.
const write = (number) => (Number.isFinite(number) ? number.toFixed(3).replace('-', '−') : '−∞');

function draw() {
  const value = props.value,
    host = cleared(element, '.steps', value?.columns);
  if (!host) return;
  const parts = {};
  for (const name of ['query', 'key', 'value', 'dots', 'scores', 'weights', 'products', 'output'])
    parts[name] = floats(value[name]);
  const S = value.columns.length,
    dk = parts.query.length,
    dv = parts.output.length;
  const most = (...arrays) =>
    Math.max(...arrays.map((array) => array.reduce((a, b) => Math.max(a, Math.abs(b)), 0)), 1e-9);
  const scales = { qk: most(parts.query, parts.key), v: most(parts.value, parts.output) };

  host.append(make('div', 'heat-title', value.title));
  const line = readoutLine();
  const strip = (numbers, most, name) =>
    heatMap({
      rows: 1,
      columns: numbers.length,
      numbers,
      paint: signed,
      most,
      className: 'strip',
      name: `${name}: ${[...numbers].map(write).join(', ')}`,
      read: (_, i) =>
        line.replaceChildren(make('b', '', name), `, dimension ${i + 1} of ${numbers.length}: `, exact(numbers[i])),
    });
  function number(digits, exact, className = 'step-number') {
    const cell = make('td', className, digits);
    cell.title = exact;
    return cell;
  }

  const own = make('div', 'step-query');
  own.append(
    make('span', 'step-head', '1 · query'),
    make('b', 'step-token', value.row),
    strip(parts.query, scales.qk, `q of ${value.row}`),
  );
  host.append(own);

  const scroll = make('div', 'step-scroll'),
    table = make('table', 'step-table');
  const head = make('tr');
  for (const text of [
    'key of',
    '1 · k',
    '2 · q·k',
    value.divisor === 1 ? '3 · not scaled' : `3 · ÷ ${value.divisor.toFixed(3)}`,
    '4 · softmax',
    '1 · v',
    '5 · weight × v',
  ])
    head.append(make('th', '', text));
  table.append(head);
  for (let s = 0; s < S; s += 1) {
    const row = make('tr', `${value.allowed[s] ? '' : 'forbidden'} ${s === value.marked ? 'step-marked' : ''}`.trim()),
      name = plain(value.columns[s]),
      weight = parts.weights[s];
    const label = make('td');
    label.append(verbatim(make('span', 'step-token', name)));
    const cell = (content) => {
      const td = make('td');
      td.append(content);
      return td;
    };
    const bar = make('td', 'step-weight'),
      fill = make('span', 'step-bar');
    fill.style.width = `${Math.max(weight * 70, 0.5)}px`;
    fill.style.background = `rgb(${colour(0.25 + 0.6 * weight)})`;
    bar.append(make('span', 'step-number', weight.toFixed(4)), fill);
    bar.title = weight;
    row.append(
      label,
      cell(strip(parts.key.subarray(s * dk, (s + 1) * dk), scales.qk, `k of ${name}`)),
      number(write(parts.dots[s]), parts.dots[s]),
      number(write(parts.scores[s]), parts.scores[s]),
      bar,
      cell(strip(parts.value.subarray(s * dv, (s + 1) * dv), scales.v, `v of ${name}`)),
      cell(strip(parts.products.subarray(s * dv, (s + 1) * dv), scales.v, `weight × v of ${name}`)),
    );
    row.dataset.key = s;
    table.append(row);
  }
  const sum = make('tr', 'step-sum'),
    words = make('td', '', '6 · sum: the head’s output');
  words.colSpan = 6;
  const out = make('td');
  out.append(strip(parts.output, scales.v, `output for ${value.row}`));
  sum.append(words, out);
  table.append(sum);
  scroll.append(table);
  host.append(scroll, make('p', 'heat-says', value.says));
  const foot = make('div', 'heat-foot');
  foot.append(line, colourScale(signed, `q, k ±${scales.qk.toFixed(2)}`, `v ±${scales.v.toFixed(2)}`));
  host.append(foot);
}

watch('value', draw);
onTheme(draw);
draw();
