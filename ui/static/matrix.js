// A matrix of signed numbers as a picture; pointing at it reads a number. One row is one position.
function draw() {
  const host = element.querySelector('.matrix');
  if (!host) return;
  host.replaceChildren();
  const value = props.value;
  if (!value || !value.rows) return;
  const numbers = floats(value.numbers), R = value.rows, C = value.columns;
  const most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  const title = document.createElement('div');
  title.className = 'heat-title';
  title.textContent = value.title;
  const canvas = document.createElement('canvas');
  canvas.width = C;
  canvas.height = R;
  canvas.className = 'matrix-picture';
  canvas.style.height = `${Math.max(90, Math.min(420, R * 10))}px`;
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', value.title);
  const context = canvas.getContext('2d'), image = context.createImageData(C, R);
  for (let i = 0; i < R * C; i += 1) image.data.set([...signed(numbers[i] / most), 255], 4 * i);
  context.putImageData(image, 0, 0);
  const readout = document.createElement('div');
  readout.className = 'heat-readout';
  readout.textContent = `${value.rowAxis} ↓   ${value.columnAxis} →   Point at the picture to read a number.`;
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    const c = Math.min(C - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * C)));
    const r = Math.min(R - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * R)));
    const number = document.createElement('span');
    number.className = 'heat-weight';
    number.textContent = numbers[r * C + c].toFixed(4);
    number.title = numbers[r * C + c];
    readout.replaceChildren(`${value.rowAxis} ${r}, ${value.columnAxis} ${c} (${value.columnNames[c % value.columnNames.length]}): `, number);
  });
  host.append(title, canvas, readout);
}

watch('value', draw);
new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
draw();
