// The card of a tour stays in sight. What a stop needs is pressed, and what it speaks of comes into view above the card and
// is marked. Arrow keys walk through the tour, Escape ends it; keys that belong to a field, a map or a list stay there.
const STICKY = '#now-row, #views > .tab-wrapper, #tryon-bar'; // what covers the top of the window
const MARK = 'tour-mark',
  PATIENCE = 150; // tenths of a second that a view may take
let currentStop = '',
  settled = 0; // until when what moves is led to again

const inSight = (one) => one && one.getClientRects().length > 0;
const card = () => element.querySelector('.tour-card');

function lead() {
  const now = card(),
    stop = now?.dataset.stop || '';
  if (stop === currentStop) return;
  currentStop = stop;
  document.querySelectorAll(`.${MARK}`).forEach((one) => one.classList.remove(MARK));
  if (now) press((now.dataset.run || '').split(';').filter(Boolean), now.dataset, stop, PATIENCE);
}

function press(buttons, stopData, stop, tries) {
  if (currentStop !== stop || !tries) return;
  if (!buttons.length) {
    show(stopData, stop, PATIENCE);
    return;
  }
  const button = document.querySelector(buttons[0]);
  if (inSight(button) && !button.disabled) {
    button.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    setTimeout(() => press(buttons.slice(1), stopData, stop, PATIENCE), 400);
  } else setTimeout(() => press(buttons, stopData, stop, tries - 1), 100);
}

function show(stopData, stop, tries) {
  if (currentStop !== stop || !tries || !stopData.lead) return;
  const place = document.querySelector(stopData.lead),
    map = stopData.cell && place?.querySelector('svg[role=img]');
  if (!inSight(place) || place.getBoundingClientRect().height < 12 || (stopData.cell && !map)) {
    setTimeout(() => show(stopData, stop, tries - 1), 100);
    return;
  }
  place.classList.add(MARK);
  settled = performance.now() + 2500;
  follow(place, stopData, stop);
}

// Between what sticks to the top and the card; once more while the view is still growing, or its map is drawn anew.
function follow(place, stopData, stop) {
  if (currentStop !== stop || !place.isConnected) return;
  if (stopData.cell) place.querySelector('svg[role=img]')?.mark?.(...stopData.cell.split(',').map(Number));
  const box = place.getBoundingClientRect(),
    tops = [...document.querySelectorAll(STICKY)].filter(inSight).map((one) => {
      const style = getComputedStyle(one);
      return style.position === 'sticky' ? (Number.parseFloat(style.top) || 0) + one.offsetHeight : 0;
    }),
    above = Math.max(0, ...tops) + 8,
    below = element.closest('.tour').getBoundingClientRect().top - 8;
  const fits = box.top >= above - 2 && box.bottom <= below + 2;
  if (!fits && Math.abs(box.top - above) > 4) scrollBy({ top: box.top - above });
  if (performance.now() < settled) setTimeout(() => follow(place, stopData, stop), 250);
}
for (const kind of ['wheel', 'touchmove', 'keydown'])
  window.addEventListener(
    kind,
    () => {
      settled = 0;
    },
    { passive: true },
  );

const busy = (target) =>
  target.closest('input, textarea, select, svg, [role=tab], [role=listbox], [role=slider], .line-token, table');
const act = (event) => {
  if (!element.isConnected || !inSight(card())) return;
  if (event.altKey || event.ctrlKey || event.metaKey || busy(event.target)) return;
  if (event.key === 'ArrowRight') trigger('step', { by: 1 });
  else if (event.key === 'ArrowLeft') trigger('step', { by: -1 });
  else if (event.key === 'Escape') trigger('leave');
  else return;
  event.preventDefault();
};
document.addEventListener('keydown', act);
watch('value', lead);
lead();
