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
  const canvas = document.createElement('canvas');
  canvas.width = C;
  canvas.height = R;
  canvas.className = 'matrix-picture';
  canvas.style.height = `${Math.max(90, Math.min(420, R * 10))}px`;
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', value.title);
  const context = canvas.getContext('2d'),
    image = context.createImageData(C, R);
  for (let i = 0; i < R * C; i += 1) image.data.set([...signed(numbers[i] / most), 255], 4 * i);
  context.putImageData(image, 0, 0);
  const readout = make(
    'div',
    'heat-readout',
    `${value.rowAxis} ↓   ${value.columnAxis} →   Point at the picture to read a number.`,
  );
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    const c = Math.min(C - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * C)));
    const r = Math.min(R - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * R)));
    const number = make('span', 'heat-weight', numbers[r * C + c].toFixed(4));
    number.title = numbers[r * C + c];
    readout.replaceChildren(
      `${value.rowAxis} ${r}, ${value.columnAxis} ${c} (${value.columnNames[c % value.columnNames.length]}): `,
      number,
    );
  });
  host.append(title, canvas, readout);
}

watch('value', draw);
onTheme(draw);
draw();
