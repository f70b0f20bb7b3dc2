// The page in other languages, as gettext does it: the English text is the key, and words/LANGUAGE.json has what stands for
// it. English itself fetches and watches nothing. The page begins with the visitor's choice, else with the browser's language.
//
// A key is the whole text of a text node or an attribute, blanks collapsed, or the markup of a paragraph that mixes text with
// simple tags, without their attributes. {} in a key is a part that changes; the translation may move parts as {1}, {2}. A
// part that is a key itself is translated as well, unless it stands in quotation marks or is {!}: the visitor's words.
// What a visitor, a model or a file says is left as it is: translate="no", dir="auto", the class notranslate, and in a
// component of the class own-words all but its names. Only what the page itself writes for a token, as "(end)", is its own.
const LANGUAGES = ['en', 'de', 'fr', 'ko'],
  CHOICE = 'atelier-language',
  ATTRIBUTES = ['placeholder', 'aria-label', 'aria-valuetext', 'title', 'alt', 'data-words'],
  UNTOUCHED =
    '[translate=no], [dir=auto], .notranslate, .own-words :is([role=option], [role=gridcell], td, canvas, svg)',
  SILENT = new Set(['TEXTAREA', 'CODE', 'PRE', 'SCRIPT', 'STYLE', 'CANVAS', 'NOSCRIPT', 'IFRAME']),
  INLINE = new Set(['A', 'B', 'BR', 'CODE', 'EM', 'I', 'KBD', 'SPAN', 'STRONG', 'SUB', 'SUP']),
  NUMBER = '.heat-weight', // of the spans only those with a number or the visitor's words are a part of a sentence
  LONGEST = 1000, // signs of a text that may be one with changing parts
  ENOUGH = 12, // signs of a pattern that may hold parts of several words the table does not know
  DEPTH = 3, // of parts in parts
  // Between the thousands; elsewhere a comma, as in English. German's point would be one with that of 0.61.
  THOUSANDS = { de: '\u202f', fr: '\u202f' },
  VISITORS = '\u2060', // stands around what is the visitor's own in the markup of a paragraph
  MARK = /^(✎ )?\((start|end|padding|to \p{L}+)\)$/u;

const SOURCE = document.currentScript.textContent,
  CARRIED = window.atelierWords; // of a page that was saved: its language and words
let language = 'en',
  words = null, // of the language, by their English
  table = null, // what finds them; null for English
  due = 0;
const originals = new WeakMap(), // text node -> { original, shown }; element -> { attribute: { original, shown } }
  paragraphs = new WeakMap(), // element -> { original, shown, words }, lists of child nodes and a translation
  choices = new WeakMap(), // input of a list of choices -> { original, shown }
  pending = new Set(),
  relabelled = new Set(),
  observer = new MutationObserver(collect);
const squeeze = (text) => text.trim().replace(/\s+/g, ' ');
const inWords = (text) => /\p{L}{2}/u.test(text);
const isLarge = (text) => /\d,\d{3}(?!\d)/.test(text);
const numbers = (text) =>
  text.replace(/(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])/g, (one) => one.replaceAll(',', THOUSANDS[language] || ','));

// -- the table ----------------------------------------------------------------------------------------------------------

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

function pattern(key, value) {
  const fixed = key.split(/\{!?\}/),
    own = [...key.matchAll(/\{(!?)\}/g)].map((one) => Boolean(one[1])),
    longest = fixed.reduce((a, b) => (b.length > a.length ? b : a)),
    part = key.includes('<') ? '([^<]+?)' : '(.+?)';
  let compiled = null; // most are never needed
  const match = (text) => {
    if (!text.startsWith(fixed[0]) || !text.endsWith(fixed.at(-1)) || !text.includes(longest)) return null;
    compiled ||= new RegExp(`^${fixed.map(literal).join(part)}$`, 'su');
    return compiled.exec(text)?.slice(1);
  };
  return { fixed, own, match, value, size: fixed.join('').length };
}

// find(text) is the translation of a text, null where the table has none.
function finder(words) {
  const exact = new Map(Object.entries(words)),
    byEnds = new Map(), // the first two signs, or else the last two behind a blank, -> patterns
    answers = new Map();
  for (const [key, value] of exact) {
    if (!/\{!?\}/.test(key)) continue;
    const one = pattern(key, value),
      [start, end] = [one.fixed[0], one.fixed.at(-1)],
      place = start.length > 1 ? start.slice(0, 2) : end.length > 1 ? ` ${end.slice(-2)}` : '';
    if (!byEnds.has(place)) byEnds.set(place, []);
    byEnds.get(place).push(one);
  }
  for (const some of byEnds.values()) some.sort((a, b) => b.size - a.size);

  // The translation, null where neither the pattern nor a part has words that the table knows, and whether there is a part
  // of several words that it does not know.
  function fill({ fixed, own, value }, parts, depth) {
    let next = 0,
      isPartial = false,
      isKnown = inWords(fixed.join(' '));
    const all = value.replace(/\{(\d*)\}/g, (_, number) => {
      const at = number ? number - 1 : next++,
        part = parts[at] ?? '';
      if (part.startsWith(VISITORS)) return part.replaceAll(VISITORS, '');
      const isOwn = (own[at] || /[“„«‘"']$/.test(fixed[at])) && !MARK.test(part),
        words = isOwn ? null : find(part, depth + 1);
      isKnown ||= words !== null;
      isPartial ||= !isOwn && words === null && part.includes(' ') && inWords(part);
      return words ?? (isOwn || inWords(part) ? part : numbers(part));
    });
    return { words: isKnown ? all : null, isPartial };
  }
  // The longest pattern of which all parts are known, else the longest that says enough by itself.
  function byPattern(text, depth, least = 0) {
    let partial = null;
    for (const place of [text.slice(0, 2), ` ${text.slice(-2)}`, ''])
      for (const one of byEnds.get(place) || []) {
        const parts = one.size >= least && one.match(text),
          { words, isPartial } = parts ? fill(one, parts, depth) : {};
        if (words && !isPartial) return words;
        if (words && one.size >= ENOUGH) partial ??= words;
      }
    return partial;
  }
  // A sentence that is a part of others begins with a small letter in the table.
  function asBeginning(text, depth) {
    const small = text[0].toLowerCase() + text.slice(1),
      words = small === text ? null : (exact.get(small) ?? byPattern(small, depth, ENOUGH));
    return words && words[0].toUpperCase() + words.slice(1);
  }
  // Words between signs and numbers; a name and its number; sentences that were put one behind the other, notes between dots, lists: all or none.
  function piecewise(text, depth) {
    const before = text.match(/^[^\p{L}“(]*/u)[0],
      after = text.match(/[^\p{L}\p{N})”%]*$/u)[0],
      amount = / [-−]?[\d.,]+(?:e[+-]?\d+)?$/.exec(text), // of a name that the table has: "loss 0.5"
      name = amount && exact.get(text.slice(0, amount.index));
    if (name) return name + amount[0];
    for (const [start, end] of [
      [before, ''],
      ['', after],
      [before, after],
    ]) {
      const core = text.slice(start.length, text.length - end.length),
        words = start + end ? find(core, depth + 1) : null;
      if (words !== null) return start + words + end;
    }
    for (const [border, joint] of [
      [/ · /, ' · '],
      [/(?<=[.!?…]) (?=[\p{Lu}\p{N}“])/u, ' '],
      [/, /, ', '],
    ]) {
      const pieces = text.split(border);
      if (pieces.length === 1) continue;
      const all = pieces.map((one) => find(one, depth + 1) ?? (inWords(one) ? null : numbers(one)));
      if (!all.includes(null)) return all.join(joint);
    }
    return null;
  }
  function find(text, depth = 0) {
    const direct = exact.get(text);
    if (direct !== undefined || depth > DEPTH || text.length > LONGEST) return direct ?? null;
    if (!inWords(text)) return depth || !isLarge(text) ? null : numbers(text);
    const known = `${depth}${text}`;
    if (!answers.has(known)) {
      if (answers.size > 5000) answers.clear();
      answers.set(
        known,
        byPattern(text, depth) ?? (text.includes('<') ? null : (asBeginning(text, depth) ?? piecewise(text, depth))),
      );
    }
    return answers.get(known);
  }
  return find;
}

// -- texts, attributes, choices -----------------------------------------------------------------------------------------

const translation = (original) => {
  const key = squeeze(original);
  return key && table ? table(key) : null;
};
const originalOf = (record, now) => (record && now === record.shown ? record.original : now);
const withBlanks = (original, words) => `${original.match(/^\s*/)[0]}${words}${original.match(/\s*$/)[0]}`;

function text(node, act) {
  const original = originalOf(originals.get(node), node.nodeValue);
  if (!inWords(original) && !isLarge(original)) return;
  const show = (words) => {
    const next = words === null ? original : withBlanks(original, words);
    if (words === null) originals.delete(node);
    else originals.set(node, { original, shown: next });
    if (node.nodeValue !== next) node.nodeValue = next;
  };
  act(translation(original), original, show, node.parentElement);
}

function attributes(element, act) {
  for (const name of ATTRIBUTES) {
    const now = element.getAttribute(name);
    if (!now) continue;
    const all = originals.get(element) || {},
      original = originalOf(all[name], now);
    if (!inWords(original)) continue;
    const show = (words) => {
      if (words === null && now === original) return;
      originals.set(element, { ...all, ...originals.get(element), [name]: words && { original, shown: words } });
      if (now !== (words ?? original)) element.setAttribute(name, words ?? original);
    };
    act(translation(original), original, show, element);
  }
}

// What a list of choices has chosen stands in an input. The page's library sets and reads it as before.
const field = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
function choice(input, act) {
  const raw = () => field.get.call(input),
    record = choices.get(input) || { original: raw(), shown: null };
  const write = (value) => {
    record.original = value;
    record.shown = translation(`${value ?? ''}`);
    if (raw() !== (record.shown ?? value)) field.set.call(input, record.shown ?? value);
  };
  const show = () => {
    if (!choices.has(input)) {
      choices.set(input, record);
      const read = () => (record.shown !== null && raw() === record.shown ? record.original : raw());
      Object.defineProperty(input, 'value', { configurable: true, get: read, set: write });
    }
    if (document.activeElement !== input) write(input.value);
  };
  // What an empty list will have chosen is not told by the document, only by the field.
  if (!input.closest('.own-words') && (act === apply || inWords(input.value)))
    act(translation(input.value), input.value, show, input);
}

// -- paragraphs of text and simple tags ---------------------------------------------------------------------------------

const escapeMarkup = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const plain = (text) => text.replaceAll('&lt;', '<').replaceAll('&amp;', '&');

// The markup of nodes without attributes; null where they are more than text and simple tags. Comments and empty texts are
// the places of the page's library.
function markup(nodes) {
  let all = '';
  for (const node of nodes) {
    if (node.nodeType === Node.TEXT_NODE && node.nodeValue)
      all += escapeMarkup(originalOf(originals.get(node), node.nodeValue));
    else if (node.nodeType === Node.ELEMENT_NODE && isInline(node)) {
      const tag = node.nodeName.toLowerCase(),
        inside = node.matches(UNTOUCHED)
          ? VISITORS + escapeMarkup(node.textContent) + VISITORS
          : markup(node.childNodes);
      if (inside === null) return null;
      all += tag === 'br' ? '<br>' : `<${tag}>${inside}</${tag}>`;
    } else return null;
  }
  return all;
}

// Nodes for a translation's markup. Tags take the attributes of the original's tags of that name, in their order; other
// tags are text, and so is all that stands between them. What is the visitor's own comes with its element.
function nodesOf(words, originalNodes) {
  let inside = originalNodes.flatMap((one) =>
    one.nodeType === Node.ELEMENT_NODE ? [one, ...one.querySelectorAll('*')] : [],
  );
  const open = [document.createDocumentFragment()];
  for (const [piece, end, name] of words.matchAll(/<(\/?)([a-z]+)>|[^<]+|</g)) {
    if (!name || !INLINE.has(name.toUpperCase())) open.at(-1).append(plain(piece));
    else if (end) open.splice(Math.max(1, open.length - 1));
    else {
      const from = inside.find((one) => one.localName === name),
        isOwn = from?.matches(UNTOUCHED),
        copy = from?.cloneNode(isOwn) || document.createElement(name);
      inside = inside.filter((one) => (isOwn ? !from.contains(one) : one !== from));
      open.at(-1).append(copy);
      if (name !== 'br') open.push(isOwn ? document.createElement(name) : copy);
    }
  }
  return [...open[0].childNodes];
}

const isInline = (node) =>
  INLINE.has(node.nodeName) && (node.nodeName !== 'SPAN' || node.matches(`${NUMBER}, ${UNTOUCHED}`));
const isMixed = (element) => {
  let texts = false,
    tags = false;
  for (const node of element.childNodes) {
    if (node.nodeType === Node.ELEMENT_NODE && isInline(node)) tags = true;
    else if (node.nodeType !== Node.TEXT_NODE || !node.nodeValue) return false;
    else texts ||= inWords(node.nodeValue);
  }
  return texts && tags;
};
const same = (list, nodes) => list.length === nodes.length && list.every((one, i) => one === nodes[i]);

// Whether an element was treated as a whole.
function paragraph(element, act) {
  const record = paragraphs.get(element),
    current = record && same(record.shown, element.childNodes);
  if (record && !current) paragraphs.delete(element);
  if (!current && !isMixed(element)) return false;
  const original = current ? record.original : [...element.childNodes],
    code = markup(original);
  if (code === null) return false;
  const show = (words) => {
    if (current ? words === record.words : words === null) return;
    const nodes = words === null ? original : nodesOf(words, original);
    if (words === null) paragraphs.delete(element);
    else paragraphs.set(element, { original, shown: nodes, words });
    element.replaceChildren(...nodes);
  };
  if (!act(translation(code), code, show, element, true)) return false;
  for (const one of element.querySelectorAll('*')) attributes(one, act);
  return true;
}

// -- the document -------------------------------------------------------------------------------------------------------

// What is done with every text: words are its translation or null, `show` puts them in the original's place. Answers
// whether there are any.
const apply = (words, _, show) => {
  show(words);
  return words !== null;
};

const isMark = (node) =>
  node.parentElement?.matches('[translate=no]') && MARK.test(originalOf(originals.get(node), node.nodeValue));

function walk(node, act) {
  if (node.nodeType === Node.TEXT_NODE) text(node, act);
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  if (node.hasAttributes()) {
    if (node.matches(UNTOUCHED)) {
      for (const one of node.childNodes) if (isMark(one)) text(one, act);
      return;
    }
    attributes(node, act);
  }
  if (node.nodeName === 'INPUT' && /listbox|combobox/.test(node.getAttribute('role'))) choice(node, act);
  if (SILENT.has(node.nodeName) || paragraph(node, act)) return;
  for (const child of [...node.childNodes]) walk(child, act);
}

// The outermost element that is a paragraph with the node in it, else the node.
function around(node) {
  let block = node;
  for (let at = node; at.parentElement && (at.nodeType === Node.TEXT_NODE || INLINE.has(at.nodeName)); ) {
    at = at.parentElement;
    if (paragraphs.has(at) || isMixed(at)) block = at;
  }
  return block;
}

function collect(records) {
  for (const { type, target, addedNodes } of records) {
    if (type === 'attributes') relabelled.add(target);
    else for (const node of type === 'childList' ? addedNodes : [target]) pending.add(node);
  }
  if (!due) due = requestAnimationFrame(update);
}

const isOurs = (node) => node.isConnected && (isMark(node) || !(node.parentElement || node).closest(UNTOUCHED));
const isBelow = (node, all) => {
  for (let at = node.parentNode; at; at = at.parentNode) if (all.has(at)) return true;
  return false;
};

function update() {
  due = 0;
  const all = new Set([...pending].filter(isOurs).map(around));
  for (const one of all) if (!isBelow(one, all)) walk(one, apply);
  for (const one of relabelled) if (isOurs(one) && !one.matches(UNTOUCHED)) attributes(one, apply);
  pending.clear();
  relabelled.clear();
  press();
  observer.takeRecords(); // these are our own
}

function press() {
  for (const button of document.querySelectorAll('[data-language]')) {
    const pressed = `${button.dataset.language === language}`;
    if (button.getAttribute('aria-pressed') !== pressed) button.setAttribute('aria-pressed', pressed);
  }
}

async function speak(code) {
  language = code;
  document.documentElement.lang = code;
  let dictionary = CARRIED?.words ?? null;
  if (code !== 'en' && !dictionary) {
    const answer = await fetch(`words/${code}.json`).catch(() => null);
    dictionary = answer?.ok ? await answer.json() : null;
    if (language !== code) return; // another choice has come meanwhile
  }
  words = dictionary;
  table = words && finder(words);
  observer.disconnect();
  walk(document.body, apply);
  press();
  if (table)
    observer.observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ATTRIBUTES,
    });
  document.dispatchEvent(new Event('atelier-language'));
}

// Puts a saved page or drawing into the present language; a page with scripts takes the words along, for what they write.
function translate(file) {
  walk(file.documentElement, apply);
  if (!file.body) return;
  file.documentElement.lang = language;
  if (!file.querySelector('script:not([type])')) return;
  const carried = file.createElement('script'),
    all = JSON.stringify({ language, words }).replaceAll('<', '\\u003c');
  carried.textContent = `window.atelierWords = ${all};\n${SOURCE}`;
  file.body.append(carried);
}

// The English texts below an element that the present table has no words for. visible: only those in sight.
function missing(root, visible = false) {
  const all = new Set();
  const complete = (node) => {
    let whole = true;
    walk(node, (words) => {
      whole &&= words !== null;
      return words !== null;
    });
    return whole;
  };
  walk(root, (words, original, _, place, mixed = false) => {
    if (visible && !place.checkVisibility()) return true;
    if (words === null && !(table && mixed && [...place.childNodes].every(complete))) all.add(squeeze(original));
    return mixed;
  });
  return [...all];
}

document.addEventListener('click', ({ target }) => {
  const code = target.closest?.('[data-language]')?.dataset.language;
  if (!code || code === language) return;
  localStorage.setItem(CHOICE, code);
  speak(code);
});
const wishes = (CARRIED ? [CARRIED.language] : [localStorage.getItem(CHOICE), ...navigator.languages]).map((one) =>
    `${one}`.slice(0, 2).toLowerCase(),
  ),
  code = wishes.find((one) => LANGUAGES.includes(one)) || 'en';
if (code !== 'en') speak(code);
window.atelierLanguage = { missing, translate, words: translation };
