// What a link carries and a reload brings back. It stands behind the # of the address, which no server sees.
const open = (where) => document.querySelector(`${where} > .tab-wrapper [role=tab][aria-selected=true]`)?.dataset.tabId;
const FIELDS = ['text', 'pair', 'model', 'kind', 'layer', 'head'],
  KEY = 'atelier-translate',
  LONGEST = 2000;

function recallVisit() {
  document.body.dataset.arrived = 'yes';
  window.dispatchEvent(new Event('arrive')); // address.js opens the tab
  const query = Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
    memory = JSON.parse(sessionStorage.getItem(KEY) || '{}'),
    mine = (query.tab || 'translate') === 'translate' && (query.text || query.view || query.pair);
  if (query.kept && memory.text) query.text = memory.text; // too long for an address
  return JSON.stringify(mine ? query : memory);
}

function keepVisit(values, own) {
  setTimeout(() => keepNow(values, own), 100);
}

// own: [view, field] of the values that follow those of FIELDS; a view's own count while it is open.
function keepNow(values, own) {
  const settings = {};
  FIELDS.forEach((name, i) => {
    if (values[i] !== null && values[i] !== undefined && values[i] !== '') settings[name] = values[i];
  });
  settings.view = open('#views') || 'attention';
  own.forEach(([view, name], i) => {
    const value = values[FIELDS.length + i];
    if (view === settings.view && value !== null && value !== undefined) settings[name] = value;
  });
  if (settings.view === 'decoding') settings.step = Number(document.querySelector('.decode-slider')?.value || 1) - 1;
  for (const name of ['layer', 'head', 'step']) if (typeof settings[name] === 'number') settings[name] += 1; // as the page counts
  sessionStorage.setItem(KEY, JSON.stringify(settings));
  if ((settings.text || '').length > LONGEST) {
    delete settings.text;
    settings.kept = 1; // the browser's own memory has it
  }
  const link = new URLSearchParams(settings);
  const here = new URLSearchParams(location.hash.slice(1)).get('tab') || 'translate';
  if (here === 'translate') history.replaceState(history.state, '', `#${link}`);
}

function copyLink() {
  const button = document.querySelector('#copy-link'),
    before = [...button.childNodes];
  const say = (text) => {
    button.textContent = text;
    setTimeout(() => {
      button.replaceChildren(...before);
    }, 1500);
  };
  if (navigator.clipboard)
    navigator.clipboard.writeText(location.href).then(
      () => say('Copied'),
      () => say('See the address'),
    );
  else say('See the address');
}
