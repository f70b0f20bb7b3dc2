// What a link carries and a reload brings back. It stands behind the # of the address, which no server sees.
const open = (where) => document.querySelector(`${where} > .tab-wrapper [role=tab][aria-selected=true]`)?.dataset.tabId;
const FIELDS = ['text', 'pair', 'model', 'kind', 'layer', 'head'],
  KEY = 'atelier-translate',
  LONGEST = 2000;

function recallVisit() {
  document.body.dataset.arrived = 'yes';
  window.dispatchEvent(new Event('arrive')); // address.js opens the tab
  const told = Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
    kept = JSON.parse(sessionStorage.getItem(KEY) || '{}'),
    mine = (told.tab || 'translate') === 'translate' && (told.text || told.view || told.pair);
  if (told.kept && kept.text) told.text = kept.text; // too long for an address
  return JSON.stringify(mine ? told : kept);
}

function keepVisit(values, own) {
  setTimeout(() => keepNow(values, own), 100);
}

// own: [view, field] of the values that follow those of FIELDS; a view's own count while it is open.
function keepNow(values, own) {
  const told = {};
  FIELDS.forEach((name, i) => {
    if (values[i] !== null && values[i] !== undefined && values[i] !== '') told[name] = values[i];
  });
  told.view = open('#views') || 'attention';
  own.forEach(([view, name], i) => {
    const value = values[FIELDS.length + i];
    if (view === told.view && value !== null && value !== undefined) told[name] = value;
  });
  if (told.view === 'decoding') told.step = Number(document.querySelector('.decode-slider')?.value || 1) - 1;
  for (const name of ['layer', 'head', 'step']) if (typeof told[name] === 'number') told[name] += 1; // as the page counts
  sessionStorage.setItem(KEY, JSON.stringify(told));
  if ((told.text || '').length > LONGEST) {
    delete told.text;
    told.kept = 1; // the browser's own memory has it
  }
  const link = new URLSearchParams(told);
  const here = new URLSearchParams(location.hash.slice(1)).get('tab') || 'translate';
  if (here === 'translate') history.replaceState(history.state, '', `#${link}`);
}

function copyLink() {
  const button = document.querySelector('#copy-link'),
    before = button.textContent;
  const say = (text) => {
    button.textContent = text;
    setTimeout(() => {
      button.textContent = before;
    }, 1500);
  };
  if (navigator.clipboard)
    navigator.clipboard.writeText(location.href).then(
      () => say('Copied'),
      () => say('See the address'),
    );
  else say('See the address');
}
