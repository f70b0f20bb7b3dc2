// What the drawings of a game share: their colours, a canvas, lines and words on it.
const LIGHT = {
  ink: '#1f1b18',
  grey: '#8a7f72',
  faint: '#e6dfd3',
  data: '#1f1b18',
  made: '#2e7d50',
  d: '#2b5fb0',
  best: '#c8623a',
  lost: '#b3361c',
  paper: '#ffffff',
};
const NIGHT = {
  ink: '#f4efe7',
  grey: '#a99d8c',
  faint: '#3a342e',
  data: '#f4efe7',
  made: '#6cc493',
  d: '#8fb8f5',
  best: '#e9a681',
  lost: '#e2694a',
  paper: '#1f1b18',
};
const FONT = '"IBM Plex Sans", ui-sans-serif, sans-serif';
const tones = () => (isDark() ? NIGHT : LIGHT);

// A canvas of that size in CSS pixels, sharp on every screen.
function sharpCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `13px ${FONT}`;
  context.lineJoin = 'round';
  return context;
}
function path(context, points, colour, width = 2, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  let open = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(y)) {
      open = false;
      continue;
    }
    if (open) context.lineTo(x, y);
    else context.moveTo(x, y);
    open = true;
  }
  context.stroke();
  context.setLineDash([]);
}
function write(context, text, x, y, colour, align = 'left') {
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(spoken(text), x, y);
}
