// All layers x heads of one kind of attention as small pictures; a click picks one.
function mark() {
  const [layer, head] = props.selected || [-1, -1];
  element.querySelectorAll('.thumb').forEach((thumb) => {
    const here = Number(thumb.dataset.layer) === layer && (head < 0 || Number(thumb.dataset.head) === head);
    thumb.classList.toggle('chosen', here);
    thumb.setAttribute('aria-pressed', here);
  });
}

function draw() {
  const value = props.value,
    host = cleared(element, '.thumbs', value?.layers);
  if (!host) return;
  const bytes = Uint8Array.from(atob(value.bytes), (letter) => letter.charCodeAt(0)),
    size = value.rows * value.columns,
    first = value.first || 0;
  host.style.setProperty('--heads', value.heads);
  const corner = document.createElement('span');
  host.append(corner);
  for (let head = 0; head < value.heads; head += 1) {
    const name = make('span', 'thumb-axis', `head ${head + 1}`);
    host.append(name);
  }
  for (let layer = first; layer < first + value.layers; layer += 1) {
    const name = make('span', 'thumb-axis thumb-layer', `layer ${layer + 1}`);
    host.append(name);
    for (let head = 0; head < value.heads; head += 1) {
      const start = ((layer - first) * value.heads + head) * size;
      const numbers = bytes.subarray(start, start + size),
        most = props.stretch ? Math.max(1, ...numbers) : 255;
      const thumb = document.createElement('button');
      thumb.type = 'button';
      thumb.className = 'thumb';
      thumb.dataset.layer = layer;
      thumb.dataset.head = head;
      thumb.setAttribute('aria-label', `Layer ${layer + 1}, head ${head + 1}`);
      thumb.title = `Layer ${layer + 1}, head ${head + 1}`;
      thumb.append(heatMap({ rows: value.rows, columns: value.columns, numbers, most }));
      // The properties of an update come one after the other, so the changes may still be those of other maps.
      const change = props.change?.[layer]?.[head];
      if (change !== undefined) {
        const mark = document.createElement('span');
        mark.className = change < -0.05 ? 'thumb-change matters' : 'thumb-change';
        mark.textContent = (change > 0 ? '+' : '') + change.toFixed(2);
        thumb.append(mark);
        thumb.title += `: without it the log-probability changes by ${change.toFixed(3)}`;
      }
      thumb.addEventListener('click', () => trigger('pick', { layer, head }));
      host.append(thumb);
    }
  }
  mark();
}

watch(['value', 'stretch', 'change'], draw);
watch('selected', mark);
onTheme(draw);
draw();
