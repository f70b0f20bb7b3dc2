// The keys and values that one head has in the cache; they grow by a column a step, as the steps above go on.
let step = 1;

function strip(values, width, tokens, most) {
  // a column a token, a row a dimension; what is still to come stays empty
  const tint = (i) => {
    const c = i % tokens,
      d = Math.floor(i / tokens);
    return c < step ? signed(values[c * width + d] / most) : null;
  };
  return cellPicture(width, tokens, tint, 'cache-strip');
}

function draw() {
  const held = props.value,
    host = cleared(element, '.cache-values', held?.key);
  if (!host) return;
  const place = `of layer ${held.layer + 1}, head ${held.head + 1}`;
  for (const [name, width] of [
    ['key', held.d_k],
    ['value', held.d_v],
  ]) {
    const values = floats(held[name]),
      tokens = values.length / width,
      canvas = strip(values, width, tokens, held.most);
    const read = make('div', 'decode-strip-readout');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `Cached ${name}s ${place}, after ${Math.min(step, tokens)} of ${tokens} pieces`);
    canvas.addEventListener('pointermove', (event) => {
      const [d, c] = cellBelow(event, canvas);
      if (c >= Math.min(step, tokens)) return;
      read.textContent = `piece ${c + 1}, dimension ${d + 1}: ${values[c * width + d].toFixed(4)}`;
    });
    host.append(
      make('p', 'decode-strip-title', `${name}s ${place}: a column a piece, a row a dimension`),
      canvas,
      read,
    );
  }
  const foot = make('div', 'heat-scale'),
    bar = scaleBar(signed, [-1, -0.5, 0, 0.5, 1]);
  foot.append(`−${held.most.toFixed(2)}`, bar, `+${held.most.toFixed(2)}`);
  host.append(foot);
}

document.addEventListener('atelier-step', (event) => {
  step = event.detail;
  draw();
});
watch('value', draw);
onTheme(draw);
draw();
