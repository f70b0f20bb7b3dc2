// What a link carries and a reload brings back. It stands behind the # of the address, which no server sees.
const open = (where) => document.querySelector(`${where} [role=tab][aria-selected=true]`)?.dataset.tabId;
const FIELDS = ['text', 'pair', 'model', 'kind', 'layer', 'head'],
  KEY = 'atelier-translate',
  TAB = 'atelier-tab',
  LONGEST = 2000;

function recallVisit() {
  const told = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const found = told.text || told.view || told.pair ? told : JSON.parse(sessionStorage.getItem(KEY) || '{}');
  const tab = told.tab || sessionStorage.getItem(TAB);
  if (tab) document.querySelector(`[role=tab][data-tab-id="${CSS.escape(tab)}"]`)?.click();
  return JSON.stringify(found);
}

function keepTab() {
  // the button says that it is selected a moment later
  setTimeout(() => sessionStorage.setItem(TAB, open('.tabs > .tab-wrapper') || ''), 100);
}

function keepVisit(values) {
  setTimeout(() => keepNow(values), 100);
}

function keepNow(values) {
  const told = {};
  FIELDS.forEach((name, i) => {
    if (values[i] !== null && values[i] !== undefined && values[i] !== '') told[name] = values[i];
  });
  for (const name of ['layer', 'head']) if (typeof told[name] === 'number') told[name] += 1; // as the page counts
  told.view = open('#views') || 'attention';
  sessionStorage.setItem(KEY, JSON.stringify(told));
  const link = new URLSearchParams(told);
  if ((told.text || '').length <= LONGEST) history.replaceState(history.state, '', `#${link}`);
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
