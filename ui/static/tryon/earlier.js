// My earlier pictures: small ones, in the browser alone. They go with the browser's tab, unless the visitor has them stay:
// the machine may be a classroom's.
const KEY = 'atelier-pictures',
  place = () => (localStorage.getItem(KEY) === null ? sessionStorage : localStorage);
let open = ''; // the mark of the one that is shown large

// A browser may forbid its store; then there are none.
function read() {
  try {
    return storedPictures(place().getItem(KEY));
  } catch {
    return [];
  }
}

function write(list, store = place()) {
  try {
    store.setItem(KEY, JSON.stringify(list));
  } catch {
    if (list.length) write(list.slice(0, -1), store); // no more room: the oldest goes
  }
}

function stay(forever) {
  const list = read();
  localStorage.removeItem(KEY);
  sessionStorage.removeItem(KEY);
  write(list, forever ? localStorage : sessionStorage);
}

const image = (url, className, alt) => Object.assign(make('img', className), { src: url, alt });

function large(one) {
  const figure = make('figure', 'earlier-large'),
    parts = make('div', 'earlier-parts');
  parts.append(image(one.person, '', 'Photo of the person'), image(one.garment, '', 'Photo of the garment'));
  parts.append(make('figcaption', '', one.settings));
  figure.append(image(one.picture, 'earlier-picture', 'Earlier result'), parts);
  return figure;
}

function draw() {
  const list = read(),
    host = cleared(element, '.earlier', list.length);
  if (!host) return;
  const strip = make('div', 'strip-host');
  list.forEach((one, place) => {
    const button = make('button', 'thumbnail-button');
    button.type = 'button';
    button.title = one.settings;
    button.setAttribute('aria-label', `Earlier picture ${place + 1}: ${one.settings}`);
    button.setAttribute('aria-pressed', one.id === open);
    button.append(image(one.picture, '', ''));
    button.addEventListener('click', () => {
      open = one.id === open ? '' : one.id;
      draw();
      if (open) trigger('recall', { zip: one.path }); // under the name “path” Gradio would take it for a file
    });
    strip.append(button);
  });
  const stays = make('label', 'earlier-stay'),
    box = make('input'),
    forget = make('button', 'earlier-forget', 'Forget them');
  box.type = 'checkbox';
  box.checked = place() === localStorage;
  box.addEventListener('change', () => stay(box.checked));
  stays.append(box, ' Keep them in this browser after its tab is closed');
  forget.type = 'button';
  forget.addEventListener('click', () => {
    write([]);
    draw();
  });
  const below = make('div', 'earlier-below');
  below.append(stays, forget);
  host.append(make('h3', '', 'My earlier pictures'), strip);
  const entry = list.find((one) => one.id === open);
  if (entry) host.append(large(entry));
  host.append(below, make('p', 'hint', 'The last twelve, small, in your browser alone.'));
}

document.addEventListener('atelier-result', ({ detail }) => {
  write(storedPictures(JSON.stringify([detail, ...read()])));
  draw();
});
window.addEventListener('storage', draw); // another tab of this browser
draw();
