// The page's address. Behind its # stands which tab and which view is open; the Translate tab adds what is looked at in it
// (translate/visit.js), Lessons its stop. A link that begins with # goes there without loading the page anew.
const VIEWS = { translate: '#views', 'try-on': '#tryon-views', gan: '#gan-views', lessons: '#lesson-views' };
const VISIT = 'atelier-translate',
  TAB = 'atelier-tab';
const open = (where) => document.querySelector(`${where} > .tab-wrapper [role=tab][aria-selected=true]`)?.dataset.tabId;
const tabOf = (query) =>
  query.get('tab') || (['view', 'text', 'pair'].some((name) => query.has(name)) ? 'translate' : '');

let under_way = 0; // tabs that are still to be selected; until then the address says where to, and stays

// Selects a tab once it is there: what is in a tab that nobody has opened yet does not exist in the browser. Tabs that
// have just come open their first one once more, so a choice counts when it has lasted.
const LASTS = 8; // tenths of a second
let touched = false, // the visitor has chosen something since
  wheeled = false; // or looked elsewhere
window.addEventListener('wheel', () => {
  wheeled = true;
});
const page = document.documentElement.dataset; // its step: of the decoding that is to come (translate/decoding.js)
function choose(where, id, tries = 600, lasted = 0) {
  const button = document.querySelector(`${where} > .tab-wrapper [role=tab][data-tab-id="${CSS.escape(id)}"]`),
    selected = button?.getAttribute('aria-selected') === 'true';
  if (tries && !touched && !(selected && lasted >= LASTS)) {
    if (button && !selected) button.click();
    setTimeout(() => choose(where, id, tries - 1, selected ? lasted + 1 : 0), 100);
    return;
  }
  under_way -= 1;
  keep();
}
for (const kind of ['pointerdown', 'keydown'])
  window.addEventListener(
    kind,
    () => {
      touched = true;
      page.step = '';
    },
    true,
  );

function keep() {
  const tab = open('#pages'),
    query = new URLSearchParams(location.hash.slice(1));
  if (!tab || under_way > 0) return;
  sessionStorage.setItem(TAB, tab);
  let now = tabOf(query) === tab ? query : new URLSearchParams({ tab });
  if (tab === 'translate') {
    if (tabOf(query) === tab || !tabOf(query)) {
      // visit.js keeps the rest, but it may be asked before the view that was chosen is open.
      const view = open(VIEWS.translate);
      if (!touched || !view || (query.get('view') || view) === view) return;
      for (const name of ['step', 'part']) query.delete(name);
      query.set('view', view);
      history.replaceState(history.state, '', `#${query}`);
      return;
    }
    now = new URLSearchParams(JSON.parse(sessionStorage.getItem(VISIT) || '{}'));
  } else {
    const view = VIEWS[tab] && open(VIEWS[tab]);
    if (view && now.get('view') !== view) now = new URLSearchParams({ tab, view });
  }
  if (`#${now}` !== location.hash) history.replaceState(history.state, '', `#${now}`);
}

function go(arriving) {
  const query = new URLSearchParams(location.hash.slice(1)),
    tab = tabOf(query) || (arriving && sessionStorage.getItem(TAB)) || '';
  page.step = (query.get('view') === 'decoding' && query.get('step')) || '';
  if (!tab) return;
  touched = wheeled = false;
  const view = tab !== 'translate' && VIEWS[tab] && query.get('view'); // the server opens a view of Translate
  under_way += view ? 2 : 1;
  choose('#pages', tab);
  if (view) choose(VIEWS[tab], view);
  stage(query);
  // What the Translate tab arrives with it asks for itself.
  if (!arriving || tab !== 'translate') trigger('go', { tab, fields: JSON.stringify(Object.fromEntries(query)) });
}

// A step of the decoding, which the browser alone knows of.
document.addEventListener('atelier-step', ({ detail }) => {
  const now = new URLSearchParams(location.hash.slice(1));
  if (under_way > 0 || now.get('view') !== 'decoding' || open('#views') !== 'decoding') return;
  now.set('step', detail);
  history.replaceState(history.state, '', `#${now}`);
  const visit = JSON.parse(sessionStorage.getItem(VISIT) || '{}');
  sessionStorage.setItem(VISIT, JSON.stringify({ ...visit, step: detail }));
});

// A stage of the try-on: its card comes into view, again while pictures above it arrive; and a click on a card puts it into
// the address.
function stage(query, tries = 100, lasted = 0) {
  if (query.get('tab') !== 'try-on' || !query.get('stage') || !tries || touched || wheeled) return;
  if (lasted > 3 * LASTS) return;
  const card = document.querySelector(`#card-${CSS.escape(query.get('stage'))}`),
    before = window.scrollY;
  card?.scrollIntoView({ block: 'start' });
  const isThere = card?.checkVisibility() && window.scrollY === before;
  setTimeout(() => stage(query, tries - 1, isThere ? lasted + 1 : 0), 100);
}
document.addEventListener('click', (event) => {
  const card = event.target.closest?.('[id^="card-"]'),
    now = new URLSearchParams(location.hash.slice(1));
  if (!card || now.get('tab') !== 'try-on') return;
  now.set('stage', card.id.slice('card-'.length));
  history.replaceState(history.state, '', `#${now}`);
});

let due = 0;
new MutationObserver((changes) => {
  if (!changes.some(({ target }) => target.getAttribute('role') === 'tab')) return;
  clearTimeout(due);
  due = setTimeout(keep, 60);
}).observe(document.body, { attributes: true, attributeFilter: ['aria-selected'], subtree: true });
window.addEventListener('hashchange', () => go(false));
// Where the page arrives is known when visit.js asks for it; a tab that is clicked before that is not kept.
window.addEventListener('arrive', () => go(true));
if (document.body.dataset.arrived) go(true);
