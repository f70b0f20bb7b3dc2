// What the page's scripts share: making elements, and when to draw again. Tokens enter as text, never as markup.
const make = (name, className, text) => {
  const out = document.createElement(name);
  if (className) out.className = className;
  if (text !== undefined) out.textContent = text;
  return out;
};
// An element whose words are the visitor's or the model's, so that no other language of the page reaches them.
const verbatim = (node) => {
  node.setAttribute('translate', 'no');
  return node;
};
const SVG = 'http://www.w3.org/2000/svg';
const node = (name, attributes, text) => {
  const out = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) out.setAttribute(key, value);
  if (text !== undefined) out.textContent = text;
  return out;
};
// A word piece without the vocabulary's marks, as `plain` of ui/translate/words.py writes it.
const MARKS = { '<s>': '(start)', '</s>': '(end)', '<pad>': '(padding)' };
const plain = (token) => {
  const language = /^<2(\w+)>$/.exec(token);
  if (language) return `(to ${new Intl.DisplayNames(['en'], { type: 'language' }).of(language[1])})`;
  if (MARKS[token]) return MARKS[token];
  if (token.startsWith('▁')) return token.slice(1) || '␣';
  return /^[\p{L}\p{N}]/u.test(token) ? `‑${token}` : token;
};
const clip = (token, most) => (token.length > most ? `${token.slice(0, most - 1)}…` : token);
// The part of a component that a script draws into, emptied; null where there is nothing to draw.
const cleared = (element, selector, wanted) => {
  const host = element.querySelector(selector);
  if (host) host.replaceChildren();
  return wanted ? host : null;
};
// A card that folds; on a phone only what comes first is open, or a view would be five screens long.
const fold = (title, note, className = '', first = false) => {
  const box = make('details', `fold-card ${className}`),
    name = make('summary');
  box.open = first || window.innerWidth > 560;
  name.append(make('h3', '', title));
  box.append(name);
  if (note) box.append(make('p', 'hint', note));
  return box;
};
// Draw again when the page turns dark or light.
const onTheme = (draw) =>
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
// What is painted is no text of the document: it is put into the page's language here, and painted again when that changes.
const spoken = (text) => window.atelierLanguage?.words(text) ?? text;
const onLanguage = (draw) => document.addEventListener('atelier-language', draw);
// Draw again when the element gets another width.
const onWidth = (element, draw) => {
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(element.clientWidth - width) > 2) {
      width = element.clientWidth;
      draw();
    }
  }).observe(element);
};
// Numbers as a picture, one pixel a cell: tint(i) is the colour of cell i, row by row, or null for an empty one.
const cellPicture = (rows, columns, tint, className) => {
  const canvas = make('canvas', className);
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d'),
    image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i += 1) {
    const tone = tint(i);
    if (tone) image.data.set([...tone, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return canvas;
};
