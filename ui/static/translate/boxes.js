// The two text boxes: pointing at a word (or moving the cursor to it) lights up its partners in the other box; selecting a
// word of the translation asks what else could stand there; what no longer belongs to the text is dimmed and says so.
const FIELDS = { source: '#source-text textarea', target: '#target-text textarea' };
const boxes = {}; // side -> { field, glass, words }
const TEXT = 'The text has changed since; below is the translation of the text before. Shift + Enter translates again.';
const SETTINGS = 'The settings have changed since; press Translate to use them.';
let lit = null,
  stale = '';

// A copy of the field behind it, with an element for every word, so that words can be coloured and pointed at.
function glass(side) {
  const field = document.querySelector(FIELDS[side]);
  if (!field) return null;
  if (boxes[side] && boxes[side].field === field && boxes[side].glass.isConnected) return boxes[side];
  const sheet = verbatim(make('div', 'word-glass'));
  sheet.setAttribute('aria-hidden', 'true');
  field.parentElement.classList.add('word-frame');
  field.before(sheet);
  boxes[side] = { field, glass: sheet, words: [] };
  field.addEventListener('pointermove', (event) => point(side, event));
  field.addEventListener('pointerleave', () => light(null));
  field.addEventListener('scroll', () => {
    sheet.scrollTop = field.scrollTop;
  });
  field.addEventListener('keyup', () => caret(side));
  field.addEventListener('blur', () => light(null));
  field.addEventListener('input', check);
  if (side === 'target') field.addEventListener('click', (event) => ask(at(side, event)));
  if (side === 'target')
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') ask(under(side));
    });
  new ResizeObserver(place).observe(field);
  return boxes[side];
}

function place() {
  // the copies lie exactly below their fields
  for (const { field, glass: sheet } of Object.values(boxes)) {
    const style = getComputedStyle(field);
    for (const name of ['font', 'letterSpacing', 'lineHeight', 'padding', 'textAlign', 'direction', 'borderWidth'])
      sheet.style[name] = style[name];
    Object.assign(sheet.style, {
      left: `${field.offsetLeft}px`,
      top: `${field.offsetTop}px`,
      width: `${field.offsetWidth}px`,
      height: `${field.offsetHeight}px`,
    });
    sheet.scrollTop = field.scrollTop;
  }
}

function fill() {
  // the words of every sentence, where they stand in the text
  for (const side of ['source', 'target']) {
    const one = glass(side);
    if (!one) return;
    // A disabled field hears no clicks and takes no cursor; one that is read only does both.
    if (side === 'target' && one.field.disabled) Object.assign(one.field, { disabled: false, readOnly: true });
    one.words = [];
    one.glass.replaceChildren();
    if (!props.value) continue;
    const text = one.field.value,
      low = text.toLowerCase();
    let from = 0,
      last = 0;
    (props.value.sentences || []).forEach((sentence, number) => {
      sentence[side].forEach((word, index) => {
        const start = low.indexOf(word.toLowerCase(), from);
        if (start < 0 || start > from + 300) return;
        one.glass.append(text.slice(last, start));
        const span = make('span', 'word', text.slice(start, start + word.length));
        Object.assign(span.dataset, { side, sentence: number, index });
        one.glass.append(span);
        one.words.push({ span, sentence: number, index, start, end: start + word.length });
        from = last = start + word.length;
      });
    });
    one.glass.append(text.slice(last));
  }
  place();
}

const at = (side, event) =>
  (boxes[side]?.words || []).find(({ span }) =>
    [...span.getClientRects()].some(
      (box) =>
        event.clientX >= box.left - 2 &&
        event.clientX <= box.right + 2 &&
        event.clientY >= box.top &&
        event.clientY <= box.bottom,
    ),
  );
const under = (side) =>
  (boxes[side]?.words || []).find(
    ({ start, end }) => boxes[side].field.selectionStart >= start && boxes[side].field.selectionStart <= end,
  );
const point = (side, event) => light(at(side, event), side);
const caret = (side) => light(under(side), side);

function light(word, side) {
  const key = word ? `${side}/${word.sentence}/${word.index}` : null;
  if (key === lit) return;
  lit = key;
  document.querySelectorAll('.word-glass .lit').forEach((one) => one.classList.remove('lit'));
  if (boxes.target) boxes.target.field.style.cursor = word && side === 'target' ? 'pointer' : '';
  if (!word || stale) return;
  word.span.classList.add('lit');
  for (const [source, target] of props.value.sentences[word.sentence].links) {
    if ((side === 'source' ? source : target) !== word.index) continue;
    const other = side === 'source' ? boxes.target : boxes.source,
      index = side === 'source' ? target : source;
    other.words
      .filter((one) => one.sentence === word.sentence && one.index === index)
      .forEach((one) => one.span.classList.add('lit'));
  }
}

function ask(word) {
  if (!word || stale) return;
  trigger('word', { sentence: word.sentence, word: word.index });
}

// What else could stand at a word: a list below it.
function offer() {
  document.querySelectorAll('.word-choices').forEach((one) => one.remove());
  const choices = props.choices,
    one = boxes.target;
  if (!choices || !one) return;
  const word = one.words.find(({ index, sentence }) => index === choices.word && sentence === (choices.sentence || 0));
  if (!word) return;
  const list = make('div', 'word-choices');
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', `What else could stand at ${word.span.textContent}`);
  list.append(
    make('div', 'hint', choices.error || 'What else could stand here; choose one and the model goes on from it.'),
  );
  for (const option of choices.options) {
    const button = verbatim(make('button', option.chosen ? 'word-choice chosen' : 'word-choice', option.text));
    button.type = 'button';
    button.setAttribute('role', 'option');
    button.setAttribute('aria-selected', option.chosen);
    button.append(make('span', 'heat-weight', `${(option.probability * 100).toFixed(1)} %`));
    if (!option.chosen)
      button.addEventListener('click', () => {
        list.remove();
        trigger('take', { step: choices.step, token: option.token });
      });
    list.append(button);
  }
  const close = make('button', 'word-choice word-close', 'Leave it');
  close.type = 'button';
  close.addEventListener('click', () => list.remove());
  list.append(close);
  list.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      list.remove();
      one.field.focus();
    }
  });
  const frame = one.field.parentElement,
    box = word.span.getBoundingClientRect(),
    outer = frame.getBoundingClientRect();
  frame.append(list);
  list.style.top = `${box.bottom - outer.top + 4}px`;
  list.style.left = `${Math.max(0, Math.min(box.left - outer.left, outer.width - list.offsetWidth))}px`;
  list.querySelector('button')?.focus({ preventScroll: true });
}

// Whether what is shown still belongs to what stands in the boxes.
function check() {
  const field = document.querySelector(FIELDS.source);
  if (!field || !props.value) return;
  if (field.value.trim() !== (props.value.text || '').trim()) mark(TEXT);
  else if (stale === TEXT) mark('');
}

function mark(text) {
  stale = text;
  document.body.classList.toggle('translate-stale', Boolean(text));
  const host = element.querySelector('.boxes');
  if (host) host.replaceChildren(...(text ? [make('div', 'note stale-note', text)] : []));
}

function draw() {
  mark('');
  fill();
  check();
}

document.addEventListener('input', (event) => {
  if (event.target.closest?.('#search-settings') && props.value) mark(SETTINGS);
});
document.addEventListener('click', (event) => {
  if (!event.target.closest?.('.word-choices, #target-text'))
    document.querySelectorAll('.word-choices').forEach((one) => one.remove());
});
// Examples, swapped languages and other hypotheses set the fields without an event.
let before = '';
setInterval(() => {
  const now = Object.values(FIELDS)
    .map((one) => document.querySelector(one)?.value ?? '')
    .join('\u0000');
  if (now === before) return;
  before = now;
  fill();
  check();
}, 300);
watch('value', draw);
watch('choices', offer);
draw();
