// A matrix of signed numbers as a picture; pointing at it reads a number. One row is one position.
function draw() {
  const value = props.value,
    host = cleared(element, '.matrix', value?.rows);
  if (!host) return;
  const numbers = floats(value.numbers),
    R = value.rows,
    C = value.columns;
  const most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  const title = make('div', 'heat-title', value.title);
  const canvas = cellPicture(R, C, (i) => signed(numbers[i] / most), 'matrix-picture');
  canvas.style.height = `${Math.max(90, Math.min(420, R * 10))}px`;
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', value.title);
  const readout = make(
    'div',
    'heat-readout',
    `${value.rowAxis} ↓   ${value.columnAxis} →   Point at the picture to read a number.`,
  );
  canvas.addEventListener('pointermove', (event) => {
    const [r, c] = cellBelow(event, canvas);
    const number = make('span', 'heat-weight', numbers[r * C + c].toFixed(4));
    number.title = numbers[r * C + c];
    readout.replaceChildren(
      `${value.rowAxis} ${r}, ${value.columnAxis} ${c} (${value.columnNames[c % value.columnNames.length]}): `,
      number,
    );
  });
  host.append(title, canvas);
  if (value.says) host.append(make('p', 'heat-says', value.says));
  host.append(readout);
}

watch('value', draw);
onTheme(draw);
draw();
