// A map of its own: title, drawing, what to look at, and what is pointed at. Tokens stand beside attention (`columns` is a
// list then); a matrix of numbers around 0 has none.
const WIDEST = 1.6; // a cell's width by its height, on a full screen

function draw() {
  const value = props.value,
    pressed = element.querySelector('.heat-whole:focus'), // is drawn anew, too
    host = cleared(element, '.heat', value?.rows);
  if (!host) return;
  const title = make('div', 'heat-title', value.title),
    scroll = make('div', 'heat-scroll');
  host.append(title, scroll);
  (Array.isArray(value.columns) ? attention : matrix)(value, host, scroll, title);
  if (pressed) element.querySelector('.heat-whole')?.focus({ preventScroll: true });
}

function matrix(value, host, scroll) {
  const numbers = floats(value.weights),
    { rows, columns } = value,
    most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9),
    hint = `${value.rowAxis} ↓   ${value.columnAxis} →   Point at the picture to read a number.`,
    line = readoutLine(hint);
  const read = (r, c) => {
    const what = `${value.rowAxis} ${r}, ${value.columnAxis} ${c} (${value.columnNames[c % value.columnNames.length]}): `;
    line.replaceChildren(what, exact(numbers[r * columns + c]));
  };
  const map = { rows, columns, numbers, paint: signed, most, name: value.title, className: 'matrix-picture', read },
    picture = heatMap(map);
  picture.style.height = `${Math.max(90, Math.min(420, rows * 10))}px`;
  scroll.append(picture);
  if (value.says) host.append(make('p', 'heat-says', value.says));
  host.append(line);
}

function attention(value, host, scroll, title) {
  const weights = floats(value.weights),
    raw = value.raw ? floats(value.raw) : null,
    R = value.rows.length,
    C = value.columns.length,
    clickable = element.closest('.clickable'),
    full = document.fullscreenElement === element;
  // Fixed from 0 to 1, so that two maps can be compared, unless the visitor asks for more contrast.
  const most = props.stretch ? weights.reduce((a, b) => Math.max(a, b), 1e-6) : 1;

  const whole = make('button', 'heat-whole', full ? 'Leave full screen' : 'Full screen');
  whole.type = 'button';
  whole.addEventListener('click', () => (full ? document.exitFullscreen() : element.requestFullscreen?.()));
  title.append(whole);

  const line = readoutLine(value.hint || 'Point at a cell to read its weight.'),
    foot = make('div', 'heat-foot');
  if (value.says) host.append(make('p', 'heat-says', value.says));
  foot.append(line, colourScale(colour, '0', most === 1 ? '1' : most.toFixed(3)));
  host.append(foot);

  // As large as the width allows, never so small that a cell cannot be pointed at; on a full screen all is in sight.
  const labels = {
    rows: labelled(value.rows),
    columns: labelled(value.columns),
    axes: [value.rowAxis, value.columnAxis],
  };
  const sizes = (cell) => ({
    cell,
    high: cell,
    font: Math.max(full ? 5 : 7, Math.min(13, cell * 0.85), full ? Math.min(34, cell * 0.6) : 0),
    digits: full ? Math.min(34, cell * 0.45) : 10.5,
  });
  const room = Math.max((host.clientWidth || 600) - heatFrame({ ...labels, cell: 0, font: 13 }).left - 6, 120);
  const spare = (size) => {
    const { width, height } = heatFrame({ ...labels, ...size });
    return [scroll.clientWidth - width, scroll.clientHeight - height];
  };
  let size = sizes(full ? 160 : Math.max(C > 80 ? 7 : 15, Math.min(44, Math.floor(room / C), Math.floor(640 / R))));
  while (full && size.cell > 2 && Math.min(...spare(size)) < 0) size = sizes(size.cell - 0.5);
  if (full) size.cell = Math.min(WIDEST * size.cell, size.cell + Math.max(0, spare(size)[0]) / C);

  const read = (r, c) => {
    const i = r * C + c,
      query = value.rowNames ? value.rowNames[r] : plain(value.rows[r]);
    line.replaceChildren(
      make('b', '', query),
      ` ${value.verb} `,
      verbatim(make('b', '', plain(value.columns[c]))),
      ' with ',
    );
    line.append(exact(weights[i]));
    if (raw) line.append(` (${raw[i] < 0 ? '−' : '+'}${Math.abs(raw[i]).toFixed(4)} ${value.unit})`);
  };
  const svg = heatMap({
    ...labels,
    ...size,
    numbers: weights,
    most,
    threshold: props.threshold || 0,
    name: `${value.title}. ${value.rowAxis} by ${value.columnAxis}. Arrow keys read out single weights.`,
    read,
    pick: clickable && ((row, column) => trigger('cell', { row, column })),
  });
  if (value.marked) svg.mark(...value.marked);
  scroll.append(svg);
  follow(svg, host, line);
}

// What is read stands beside the pointer as well, so that nobody has to look away.
function follow(svg, host, line) {
  const tip = make('div', 'heat-tip');
  tip.hidden = true;
  host.append(tip);
  svg.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  svg.addEventListener('pointermove', (event) => {
    const box = host.getBoundingClientRect(),
      x = event.clientX - box.left,
      y = event.clientY - box.top,
      all = svg.getBoundingClientRect(),
      { x: left, y: top, width, height } = svg.cellsBox;
    const inside = (at, start, size) => at >= start && at < start + size;
    tip.hidden = !inside(event.clientX - all.left, left, width) || !inside(event.clientY - all.top, top, height);
    tip.textContent = line.textContent;
    tip.style.left = `${Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 16}px`;
  });
}

watch(['value', 'stretch', 'threshold'], draw);
onWidth(element, draw);
document.addEventListener('fullscreenchange', draw);
onTheme(draw);
draw();
