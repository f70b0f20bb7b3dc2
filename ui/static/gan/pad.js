// A sheet to draw one digit on, with a finger, a mouse or the arrow keys; what is drawn travels as one byte a pixel.
const SIDE = 280,
  SENT = 56,
  PEN = 22;
let canvas = null,
  context = null,
  pressing = false,
  pen = false,
  at = [140, 60],
  before = null;

function build(host) {
  canvas = make('canvas', 'pad-sheet');
  canvas.width = canvas.height = SIDE;
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'application');
  canvas.setAttribute(
    'aria-label',
    'Sheet to draw a digit on: arrow keys move the pen, space lowers or lifts it, Enter asks D',
  );
  context = canvas.getContext('2d', { willReadFrequently: true });
  const clear = make('button', 'canvas-button', 'Clear');
  clear.type = 'button';
  clear.addEventListener('click', wipe);
  host.replaceChildren(canvas, clear);
  wipe();
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
  };
  canvas.addEventListener('pointerdown', (event) => {
    pressing = true;
    canvas.setPointerCapture(event.pointerId);
    before = place(event);
    stroke(before, before);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (pressing) {
      const now = place(event);
      stroke(before, now);
      before = now;
    }
  });
  for (const name of ['pointerup', 'pointercancel'])
    canvas.addEventListener(name, () => {
      if (pressing) {
        pressing = false;
        send();
      }
    });
  canvas.addEventListener('keydown', (event) => {
    const move = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[event.key];
    if (!move && event.key !== ' ' && event.key !== 'Enter') return;
    event.preventDefault();
    if (event.key === 'Enter') {
      send();
      return;
    }
    if (event.key === ' ') {
      pen = !pen;
      stroke(at, at);
      return;
    }
    const now = at.map((v, i) => Math.max(10, Math.min(SIDE - 10, v + move[i])));
    if (pen) stroke(at, now);
    at = now;
  });
}
function wipe() {
  context.fillStyle = '#000000';
  context.fillRect(0, 0, SIDE, SIDE);
}
function stroke(from, to) {
  context.strokeStyle = '#ffffff';
  context.lineWidth = PEN;
  context.lineCap = 'round';
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(to[0] + 0.01, to[1]);
  context.stroke();
}
function send() {
  const pixels = context.getImageData(0, 0, SIDE, SIDE).data,
    step = SIDE / SENT;
  let text = '';
  for (let y = 0; y < SENT; y += 1)
    for (let x = 0; x < SENT; x += 1) {
      let sum = 0;
      for (let i = 0; i < step; i += 1)
        for (let j = 0; j < step; j += 1) sum += pixels[4 * ((y * step + i) * SIDE + x * step + j)];
      text += String.fromCharCode(Math.round(sum / (step * step)));
    }
  trigger('drawn', { pixels: btoa(text), side: SENT });
}
const host = element.querySelector('.pad');
if (host && !host.firstChild) build(host);
