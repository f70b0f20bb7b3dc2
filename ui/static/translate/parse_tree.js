// A tree as drawn by the page's Python; pointing at a phrase lights its words, and shades what its writing looked at.
function draw() {
  const value = props.value,
    host = cleared(element, '.parse-tree', value?.svg);
  if (!host) return;
  // Read as an image: nothing in it runs, and every text was escaped when it was drawn.
  const svg = document.importNode(new DOMParser().parseFromString(value.svg, 'image/svg+xml').documentElement, true);
  const scroll = make('div', 'tree-scroll'),
    readout = make('p', 'hint tree-told', 'Point at a phrase or a word.');
  scroll.append(verbatim(svg));
  host.append(scroll, readout);
  const groups = [...svg.querySelectorAll('[data-row]')],
    count = value.spans.length - value.words.length;
  const clear = () => {
    for (const group of groups) {
      group.classList.remove('lit', 'chosen');
      group.style.removeProperty('--look');
    }
    readout.textContent = 'Point at a phrase or a word.';
  };
  const light = (row) => {
    clear();
    const [start, end] = value.spans[row],
      looks = value.looks[row] || [];
    groups.forEach((group, other) => {
      const [first, last] = value.spans[other];
      group.classList.toggle('lit', first >= start && last <= end && (other >= row || other >= count));
      group.classList.toggle('chosen', other === row);
      if (other >= count && looks.length) group.style.setProperty('--look', looks[other - count].toFixed(4));
    });
    const most = looks
      .map((weight, word) => [weight, word])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3);
    readout.textContent =
      `${value.labels[row]}: ${value.words.slice(start, end).join(' ')}` +
      (most.length
        ? ` · looked most at ${most.map(([weight, word]) => `${value.words[word]} (${Math.round(100 * weight)} %)`).join(', ')}`
        : '');
  };
  groups.forEach((group, row) => {
    group.setAttribute('tabindex', 0);
    group.setAttribute('aria-label', `${value.labels[row]}: ${value.words.slice(...value.spans[row]).join(' ')}`);
    group.addEventListener('pointerenter', () => light(row));
    group.addEventListener('focus', () => light(row));
    group.addEventListener('pointerleave', clear);
    group.addEventListener('blur', clear);
  });
}

watch('value', draw);
draw();
