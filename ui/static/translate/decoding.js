// Decoding, one step at a time. All steps are here, so the slider asks nobody. Tokens enter the page as text only.
const percent = (p) =>
  p >= 0.9995 ? '100 %' : p >= 0.1 ? `${(100 * p).toFixed(1)} %` : `${(100 * p).toPrecision(2)} %`;
const size = (bytes) =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1048576
      ? `${(bytes / 1024).toFixed(1)} KiB`
      : `${(bytes / 1048576).toFixed(1)} MiB`;
let step = 0,
  data = null,
  own = null,
  cross = null,
  parts = null;

// A small map, a row a head: its place, and what is read off it.
function strips() {
  return { wrap: make('div', 'decode-strip-scroll'), foot: readoutLine('') };
}

function paint(strip, tokens, heads, numbers, name) {
  const columns = labelled(tokens, 14),
    rows = heads.map((head) => [head]),
    cell = Math.max(9, Math.min(40, Math.floor(((strip.wrap.clientWidth || 420) - 90) / columns.length)));
  const read = (r, c) => {
    const weight = numbers[r * tokens.length + c],
      what = `${heads[r]}, ${plain(tokens[c])}: `;
    if (Number.isNaN(weight)) strip.foot.replaceChildren(`${what}masked, it is still to come`);
    else strip.foot.replaceChildren(what, exact(weight));
  };
  const sizes = { cell, high: 16, font: cell < 12 ? 9 : 12 };
  strip.wrap.replaceChildren(heatMap({ rows, columns, numbers, ...sizes, name, className: 'decode-strip', read }));
}

function build() {
  const host = element.querySelector('.decode-view');
  if (!host) return;
  host.replaceChildren();
  data = props.value ? JSON.parse(props.value) : null;
  parts = null;
  if (!data?.chosen) {
    data = null;
    return;
  }
  const T = data.chosen.length;
  step = Math.min(step, T - 1);
  parts = {};

  const bar = make('div', 'decode-bar');
  const back = make('button', 'decode-button', '◀'),
    next = make('button', 'decode-button', '▶');
  back.type = next.type = 'button';
  back.setAttribute('aria-label', 'Previous step');
  next.setAttribute('aria-label', 'Next step');
  const slider = make('input', 'decode-slider');
  Object.assign(slider, { type: 'range', min: 1, max: T, step: 1, value: step + 1 });
  slider.setAttribute('aria-label', 'Step of decoding');
  const name = make('output', 'decode-name');
  bar.append(back, slider, next, name);
  slider.addEventListener('input', () => go(Number(slider.value) - 1));
  back.addEventListener('click', () => go(step - 1));
  next.addEventListener('click', () => go(step + 1));
  Object.assign(parts, { slider, name, back, next });

  const story = make('section', 'fold-card decode-story');
  story.append(make('h3', '', 'Input so far'));
  parts.read = make('div', 'decode-tokens');
  parts.source = make('div', 'decode-tokens');
  parts.sourceName = make('p', 'hint', '');
  story.append(parts.read, parts.sourceName, parts.source);

  const top = fold('Next piece', '', '', true);
  parts.top = make('ol', 'top-list');
  parts.entropy = make('p', 'decode-entropy');
  top.append(parts.top, parts.entropy, make('p', 'hint', 'Select another piece to go on with it from the same cache.'));

  const cache = fold(
    'Key/value cache',
    'Keys and values of the pieces read so far stay in memory, so each step reads one piece only.',
    'decode-cache',
  );
  parts.cache = make('div', 'cache-bars');
  parts.total = make('p', 'decode-entropy');
  cache.append(parts.cache, parts.total);

  const looks = fold('Attention of every head', '', 'decode-looks');
  parts.layerName = make('p', 'hint');
  looks.addEventListener('toggle', () => show());
  parts.ownTitle = make('p', 'decode-strip-title', 'At the translation so far; crossed-out cells are masked');
  parts.own = strips();
  parts.crossTitle = make('p', 'decode-strip-title', 'At the text');
  parts.cross = strips();
  parts.says = make('p', 'heat-says');
  looks.append(
    parts.layerName,
    parts.ownTitle,
    parts.own.wrap,
    parts.own.foot,
    parts.crossTitle,
    parts.cross.wrap,
    parts.cross.foot,
    parts.says,
  );

  const grid = make('div', 'decode-grid');
  const side = make('div', 'decode-side');
  side.append(looks, cache);
  grid.append(top, side);
  host.append(bar, story, grid);
  unpack();
}

function unpack() {
  own = cross = null;
  const attention = props.attention;
  if (!data || !attention?.decoder) return;
  const T = data.chosen.length,
    S = data.source.length,
    rows = floats(attention.decoder),
    over = floats(attention.cross);
  if (rows.length !== (attention.heads * T * (T + 1)) / 2 || over.length !== attention.heads * T * S) return;
  own = (h, t, c) => rows[(h * T * (T + 1)) / 2 + (t * (t + 1)) / 2 + c];
  cross = (h, t, c) => over[(h * T + t) * S + c];
  show();
}

function go(to) {
  if (!data) return;
  step = Math.min(Math.max(to, 0), data.chosen.length - 1);
  show();
}

function show() {
  if (!data || !parts) return;
  const t = step,
    T = data.chosen.length;
  parts.slider.value = t + 1;
  parts.slider.setAttribute('aria-valuetext', `step ${t + 1} of ${T}, ${plain(data.chosen[t])} is chosen`);
  parts.name.textContent = `Step ${t + 1} of ${T}`;
  parts.back.disabled = t === 0;
  parts.next.disabled = t === T - 1;

  const chip = (token, look = '') => verbatim(make('span', `decode-token ${look}`, plain(token)));
  parts.read.replaceChildren();
  data.read.slice(0, t + 1).forEach((token) => parts.read.append(chip(token), ' '));
  parts.read.append(make('span', 'decode-arrow', '→'), ' ', chip(data.chosen[t], 'decode-chosen'));
  data.chosen.slice(t + 1).forEach((token) => parts.read.append(' ', chip(token, 'decode-later')));

  const heads = props.attention ? props.attention.heads : 0;
  parts.sourceName.textContent = cross
    ? `The text, marked where layer ${props.attention.layer + 1} looks (mean over heads):`
    : 'The text:';
  parts.source.replaceChildren();
  let most = null; // the word that gets the largest weight
  data.source.forEach((token, c) => {
    const place = chip(token);
    if (cross) {
      let mean = 0;
      for (let h = 0; h < heads; h += 1) mean += cross(h, t, c) / heads;
      place.style.background = `rgb(${colour(mean)})`;
      place.style.color = ink(colour(mean));
      place.title = mean.toFixed(4);
      if (/^▁?[\p{L}\p{N}]/u.test(token) && !(most && most[0] >= mean)) most = [mean, token];
    }
    parts.source.append(place, ' ');
  });
  parts.says.textContent = most
    ? `“${plain(data.chosen[t])}” gives ${most[0].toFixed(2)} to “${plain(most[1])}”, the most to a word (mean over heads).`
    : '';

  parts.top.replaceChildren();
  data.top[t].forEach(([token, probability, id, allowed]) => {
    const item = make('li'),
      button = make('button', 'top-token'),
      isChoice = token === data.chosen[t];
    button.type = 'button';
    button.disabled = isChoice || !allowed;
    button.classList.toggle('chosen', isChoice);
    button.setAttribute(
      'aria-label',
      `${plain(token)}, ${percent(probability)}${isChoice ? ', chosen' : ', go on with it'}`,
    );
    const track = make('span', 'top-track'),
      fill = make('span', 'top-fill');
    fill.style.width = `${100 * probability}%`;
    track.append(fill);
    button.append(
      verbatim(make('span', 'top-name', (isChoice ? '✓ ' : '') + plain(token))),
      track,
      make('span', 'top-number', percent(probability)),
    );
    button.title = probability.toPrecision(6);
    button.addEventListener('click', () => trigger('branch', { step: t, token: id }));
    item.append(button);
    parts.top.append(item);
  });
  const nats = data.entropy[t],
    rank = data.ranks[t];
  parts.entropy.textContent =
    `Entropy ${nats.toFixed(3)} nats, as uncertain as ${Math.exp(nats).toFixed(1)} equal choices. ` +
    `Chosen: rank ${rank}, log-probability ${data.logprobs[t].toFixed(3)}.`;

  parts.cache.replaceChildren();
  for (let layer = 0; layer < data.layers; layer += 1) {
    const row = make('div', 'cache-row'),
      track = make('div', 'cache-track');
    const fill = make('div', 'cache-fill');
    fill.style.width = `${(100 * (t + 1)) / T}%`;
    fill.style.setProperty('--tokens', t + 1);
    track.append(fill);
    row.append(
      make('span', 'cache-name', `layer ${layer + 1}`),
      track,
      make('span', 'cache-size', size((t + 1) * data.bytes)),
    );
    row.title = `keys ${data.key[0]} × ${t + 1} × ${data.key[1]}, values ${data.value[0]} × ${t + 1} × ${data.value[1]} (heads × pieces × width)`;
    parts.cache.append(row);
  }
  parts.total.textContent =
    `${t + 1} of ${T} pieces: keys ${data.key[0]} × ${t + 1} × ${data.key[1]} and values ` +
    `${data.value[0]} × ${t + 1} × ${data.value[1]} a layer (heads × pieces × width), ${size((t + 1) * data.bytes * data.layers)} ` +
    `in all. The text's own, made once: ${size(data.memory * data.layers)}.`;

  if (own) {
    const names = Array.from({ length: heads }, (_, h) => `head ${h + 1}`);
    parts.layerName.textContent = `Layer ${props.attention.layer + 1}, while “${plain(data.chosen[t])}” is chosen. Point at a cell to read its weight.`;
    const table = (columns, weight) =>
      names.flatMap((_, h) => Array.from({ length: columns }, (_, c) => weight(h, t, c)));
    const visible = (h, t, c) => (data.mask[t][c] === '1' ? own(h, t, c) : Number.NaN);
    paint(
      parts.own,
      data.read,
      names,
      table(data.read.length, visible),
      'Attention at the translation so far, by head',
    );
    paint(parts.cross, data.source, names, table(data.source.length, cross), 'Attention at the text, by head');
  }
  document.dispatchEvent(new CustomEvent('atelier-step', { detail: t + 1 }));
}

element.addEventListener('keydown', (event) => {
  if (event.target.type === 'range') return; // a slider moves by itself
  if (event.key === 'ArrowRight') go(step + 1);
  else if (event.key === 'ArrowLeft') go(step - 1);
  else return;
  event.preventDefault();
});
document.addEventListener('atelier-go', (event) => go(event.detail - 1));
// The address may name a step: what comes begins there until somebody does something (address.js), later at its beginning.
const stepInAddress = () => Math.max(0, (Number(document.documentElement.dataset.step) || 1) - 1);
watch('value', () => {
  step = stepInAddress();
  build();
});
window.addEventListener('hashchange', () => {
  if (document.documentElement.dataset.step) go(stepInAddress());
});
watch('attention', unpack);
onWidth(element, show);
onTheme(show);
step = stepInAddress();
build();
