// Figure 3 of the paper with the maps of the record in it: every map is a button that leads to its card below.
const W = 108,
  H = 144,
  STEP_X = 134,
  STEP_Y = 200;
const middle = (item) => [item.x * STEP_X, item.y * STEP_Y];
const half = (item) => (item.url === undefined ? [64, 44] : [W / 2, H / 2]);

// Where the line between two middles leaves the box of one; below a map stand its title and its symbol.
function border(item, toward) {
  const [x, y] = middle(item),
    [u, v] = middle(toward),
    [w, h] = half(item).map((value) => value + 4);
  const words = item.url === undefined || v <= y ? 0 : item.symbol ? 36 : 18;
  const scale = Math.min(w / Math.max(Math.abs(u - x), 1e-6), (h + words) / Math.max(Math.abs(v - y), 1e-6));
  return [x + (u - x) * scale, y + (v - y) * scale];
}

function lead(name) {
  const card = document.querySelector(`#card-${name}`);
  if (!card) return;
  card.scrollIntoView({ behavior: 'smooth', block: 'center' });
  card.classList.remove('found');
  requestAnimationFrame(() => card.classList.add('found'));
}

function text(x, y, className, words) {
  const label = node('text', { x, y, class: className, 'text-anchor': 'middle' });
  label.textContent = words;
  return label;
}

// "I<sub>a</sub>" as SVG.
function symbol(x, y, html) {
  const label = node('text', { x, y, class: 'figure3-symbol', 'text-anchor': 'middle' });
  html.split(/(<sub>.*?<\/sub>)/).forEach((part) => {
    const low = part.startsWith('<sub>'),
      span = node('tspan', low ? { 'font-size': '75%', dy: 3 } : {});
    span.textContent = part
      .replace(/<\/?sub>/g, '')
      .replace(/&#x27;/g, "'")
      .replace(/&lt;/g, '<')
      .replace(/&amp;/g, '&');
    label.append(span);
    if (low) {
      const back = node('tspan', { dy: -3 });
      back.textContent = '​';
      label.append(back);
    }
  });
  return label;
}

function pressable(group, name, words, act) {
  for (const [key, value] of Object.entries({ tabindex: 0, role: 'button', 'aria-label': words, 'data-name': name }))
    group.setAttribute(key, value);
  group.addEventListener('click', act);
  group.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      act();
    }
  });
}

function draw() {
  const host = element.querySelector('.figure3'),
    value = props.value;
  if (!host || !value) return;
  const all = [...value.nodes, ...value.networks],
    items = Object.fromEntries(all.map((item) => [item.name, item]));
  const xs = all.map((item) => middle(item)[0]),
    ys = all.map((item) => middle(item)[1]);
  const left = Math.min(...xs) - W / 2 - 22,
    top = Math.min(...ys) - H / 2 - 8;
  const width = Math.max(...xs) + W / 2 + 8 - left,
    height = Math.max(...ys) + H / 2 + 44 - top;
  const svg = node('svg', {
    viewBox: `${left} ${top} ${width} ${height}`,
    role: 'group',
    'aria-label': 'The whole machine, Figure 3 of the paper',
  });
  const head = node('marker', {
    id: 'figure3-head',
    viewBox: '0 0 8 8',
    refX: 7,
    refY: 4,
    markerWidth: 7,
    markerHeight: 7,
    orient: 'auto',
  });
  head.append(node('path', { d: 'M0 0L8 4L0 8z', class: 'figure3-head' }));
  const definitions = node('defs', {});
  definitions.append(head);
  svg.append(definitions);
  value.arrows.forEach(([from, to]) => {
    const a = border(items[from], items[to]),
      b = border(items[to], items[from]);
    svg.append(
      node('path', {
        d: `M${a.join(' ')}L${b.join(' ')}`,
        class: 'figure3-arrow',
        'data-from': from,
        'data-to': to,
        'marker-end': 'url(#figure3-head)',
      }),
    );
  });
  const lit = (name) =>
    svg
      .querySelectorAll('.figure3-arrow')
      .forEach((arrow) => arrow.classList.toggle('lit', arrow.dataset.from === name || arrow.dataset.to === name));
  value.nodes.forEach((item) => {
    const [x, y] = middle(item),
      group = node('g', { class: item.url ? 'figure3-map' : 'figure3-map missing' });
    group.append(node('rect', { x: x - W / 2, y: y - H / 2, width: W, height: H, rx: 6 }));
    if (item.url)
      group.append(
        node('image', {
          href: item.url,
          x: x - W / 2,
          y: y - H / 2,
          width: W,
          height: H,
          preserveAspectRatio: 'xMidYMid meet',
        }),
      );
    group.append(text(x, y + H / 2 + 15, 'figure3-title', item.title));
    if (item.symbol) group.append(symbol(x, y + H / 2 + 32, item.symbol));
    const title = node('title', {});
    title.textContent = item.about ? `${item.title}. ${item.about}` : item.title;
    group.append(title);
    pressable(group, item.name, item.title, () => lead(item.name));
    group.addEventListener('pointerenter', () => lit(item.name));
    group.addEventListener('pointerleave', () => lit(null));
    svg.append(group);
  });
  value.networks.forEach((item) => {
    const [x, y] = middle(item),
      [w, h] = half(item),
      group = node('g', { class: 'figure3-network' });
    group.append(node('rect', { x: x - w, y: y - h, width: 2 * w, height: 2 * h, rx: 10 }));
    const words = item.title.split(' '),
      cut = Math.ceil(words.length / 2);
    [words.slice(0, cut).join(' '), words.slice(cut).join(' ')].forEach(
      (line, i) => svg && group.append(text(x, y - 12 + 16 * i, 'figure3-title', line)),
    );
    group.append(symbol(x, y + 28, item.symbol));
    pressable(group, item.name, `${item.title}: look inside`, () => trigger('network', { name: item.name }));
    svg.append(group);
  });
  const scroll = document.createElement('div');
  scroll.className = 'figure3-scroll';
  scroll.append(svg);
  host.replaceChildren(scroll);
}

watch('value', draw);
draw();
