// A switch for every head of the three kinds of attention, with the effect of switching it off once that is known.
const NAMES = {
  cross: 'Cross: translation at text',
  encoder: 'Encoder: text at itself',
  decoder: 'Decoder: translation at itself',
};
const key = (kind, layer, head) => `${kind}/${layer}/${head}`;
let off = new Set();

function toggle(keys) {
  // a group goes off together, and on again when all of it is off
  const all = keys.every((one) => off.has(one));
  keys.forEach((one) => (all ? off.delete(one) : off.add(one)));
  mark();
  trigger('switches', { off: [...off].sort() });
}

function mark() {
  element.querySelectorAll('.switch').forEach((button) => {
    const gone = off.has(button.dataset.key);
    button.classList.toggle('off', gone);
    button.setAttribute('aria-pressed', !gone);
  });
}

function draw() {
  const value = props.value,
    host = cleared(element, '.switches', value?.layers);
  if (!host) return;
  const changes = props.changes;
  const most = changes ? Math.max(1e-6, ...Object.values(changes).flat(2).map(Math.abs)) : 1;
  for (const kind of ['cross', 'encoder', 'decoder']) {
    const group = make('div', 'switch-group'),
      grid = make('div', 'switch-grid');
    grid.style.setProperty('--heads', value.heads);
    grid.append(make('span'));
    for (let head = 0; head < value.heads; head += 1) grid.append(make('span', 'thumb-axis', String(head + 1)));
    for (let layer = 0; layer < value.layers[kind]; layer += 1) {
      const heads = Array.from({ length: value.heads }, (_, head) => key(kind, layer, head));
      const whole = make('button', 'switch-layer', `layer ${layer + 1}`);
      whole.type = 'button';
      whole.setAttribute('aria-label', `${kind}: all heads of layer ${layer + 1}`);
      whole.addEventListener('click', () => toggle(heads));
      grid.append(whole);
      heads.forEach((name, head) => {
        const button = make('button', 'switch');
        button.type = 'button';
        button.dataset.key = name;
        button.dataset.words = 'off'; // where it is
        let about = `${kind}, layer ${layer + 1}, head ${head + 1}`;
        // The properties of an update come one after the other, so the changes may still be those of another model.
        const change = changes?.[kind]?.[layer]?.[head];
        if (change !== undefined) {
          const part = change / most;
          button.textContent = (change > 0 ? '+' : change < 0 ? '−' : '') + Math.abs(change).toFixed(2);
          button.style.background = `rgb(${signed(part)})`;
          button.style.color = ink(signed(part));
          about += `: without it the log-probability changes by ${change}`;
        }
        button.title = about;
        button.setAttribute('aria-label', about);
        button.addEventListener('click', () => toggle([name]));
        grid.append(button);
      });
    }
    group.append(make('p', 'decode-strip-title', NAMES[kind]), grid);
    host.append(group);
  }
  mark();
}

function take() {
  // what the server holds; in between, the switches are the visitor's
  off = new Set(props.off?.names || []);
  draw();
}

watch(['value', 'off', 'changes'], take);
onTheme(draw);
take();
