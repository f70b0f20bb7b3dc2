// The keys and values that one head has in the cache; they grow by a column a step, as the steps above go on.
let step = 1;

function draw() {
  const cache = props.value,
    host = cleared(element, '.cache-values', cache?.key);
  if (!host) return;
  const place = `of layer ${cache.layer + 1}, head ${cache.head + 1}`;
  for (const [name, width] of [
    ['key', cache.d_k],
    ['value', cache.d_v],
  ]) {
    const values = floats(cache[name]),
      tokens = values.length / width,
      now = Math.min(step, tokens),
      line = readoutLine('');
    // A column a token, a row a dimension; what is still to come stays empty.
    const numbers = Float32Array.from(values, (_, i) => {
      const c = i % tokens;
      return c < now ? values[c * width + Math.floor(i / tokens)] : Number.NaN;
    });
    const map = heatMap({
      rows: width,
      columns: tokens,
      numbers,
      paint: signed,
      most: cache.most,
      className: 'cache-strip',
      name: `Cached ${name}s ${place}, after ${now} of ${tokens} pieces`,
      read: (d, c) => {
        if (c < now) line.replaceChildren(`piece ${c + 1}, dimension ${d + 1}: `, exact(numbers[d * tokens + c]));
      },
    });
    host.append(make('p', 'decode-strip-title', `${name}s ${place}: a column a piece, a row a dimension`), map, line);
  }
  host.append(colourScale(signed, `−${cache.most.toFixed(2)}`, `+${cache.most.toFixed(2)}`));
}

document.addEventListener('atelier-step', (event) => {
  step = event.detail;
  draw();
});
watch('value', draw);
onTheme(draw);
draw();
