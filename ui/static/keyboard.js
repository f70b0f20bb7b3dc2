// One stop of the Tab key for a group of choices, and arrow keys within it; open lists close on Tab and Escape.
const GROUPS =
  '[role=tablist], .strip-host, .thumbs, .icon-button-wrapper, .source-selection, .toolbar, .line-heads, .switches, ' +
  '.top-list, .word-choices, .languages, .wrap:has(> label > input[type=radio])';
const MEMBERS = ':is(button, input[type=radio]):not([disabled])'; // the library names each radio button apart
const AHEAD = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const members = (group) => [...group.querySelectorAll(MEMBERS)].filter((one) => one.offsetParent !== null);
const current = (all) =>
  all.find(
    (one) => one.checked || ['aria-selected', 'aria-pressed'].some((name) => one.getAttribute(name) === 'true'),
  ) || all[0];

function rove(group, keep) {
  const all = members(group);
  const stop = keep || all.find((one) => one === document.activeElement) || current(all);
  for (const one of all) {
    const index = one === stop ? 0 : -1;
    if (one.tabIndex !== index) one.tabIndex = index;
  }
}

// Above and below in a grid of choices is the nearest one of another line.
function beyond(all, from, way) {
  const here = from.getBoundingClientRect();
  const far = (one) => {
    const box = one.getBoundingClientRect();
    return way * (box.top - here.top) > here.height / 2
      ? Math.abs(box.top - here.top) * 1000 + Math.abs(box.left - here.left)
      : Number.POSITIVE_INFINITY;
  };
  const best = all.reduce((a, b) => (far(b) < far(a) ? b : a));
  return Number.isFinite(far(best)) ? best : null;
}

document.addEventListener('keydown', (event) => {
  const group = event.target.closest?.(GROUPS);
  if (!group || event.altKey || event.ctrlKey || event.metaKey || !event.target.matches(MEMBERS)) return;
  const all = members(group),
    at = all.indexOf(event.target);
  let next = null;
  if (event.key === 'Home') next = all[0];
  else if (event.key === 'End') next = all[all.length - 1];
  else if (event.key in AHEAD) {
    const upright = event.key === 'ArrowUp' || event.key === 'ArrowDown';
    next = upright ? beyond(all, event.target, AHEAD[event.key]) : null;
    next ||= all[(at + AHEAD[event.key] + all.length) % all.length];
  } else return;
  event.preventDefault();
  rove(group, next);
  next.focus();
  if (next.type === 'radio' || group.getAttribute('role') === 'tablist') next.click(); // chosen as it is reached
});

// Escape closes an open list and leaves the cursor where it came from, Tab closes it and goes on. The library's own lists
// do so by themselves, but for a key that it reads late: Tab, after which the list would open again, and Shift before it.
document.addEventListener(
  'keydown',
  (event) => {
    const list = event.target.closest?.('.word-choices');
    if (list && (event.key === 'Escape' || event.key === 'Tab')) {
      list.parentElement.querySelector('textarea')?.focus();
      list.remove();
      if (event.key === 'Escape') event.preventDefault();
    } else if (
      (event.key === 'Tab' || event.key === 'Shift') &&
      event.target.closest?.('input[role=combobox], input[role=listbox]')
    )
      event.stopPropagation();
  },
  true,
);

let due = 0;
const all = () => document.querySelectorAll(GROUPS).forEach((group) => rove(group));
new MutationObserver(() => {
  if (due) return;
  due = setTimeout(() => {
    due = 0;
    all();
  }, 150);
}).observe(document.body, {
  childList: true,
  subtree: true,
  attributes: true,
  attributeFilter: ['aria-selected', 'aria-pressed', 'disabled'],
});
all();

// The page's library hears of a text only from keys that type a sign, and before it stands there. So what is pasted, dropped,
// deleted or composed, as Korean is, is told as a key as well: old errors go, and the address keeps the text.
document.addEventListener('input', ({ target }) => {
  if (target.matches?.('[data-testid=textbox]')) target.dispatchEvent(new KeyboardEvent('keypress', { bubbles: true }));
});
