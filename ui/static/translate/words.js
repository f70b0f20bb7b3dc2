// Sentences in both languages; pointing at a word lights up its partners in the other one.
function draw() {
  const host = element.querySelector('.words');
  if (!host) return;
  host.replaceChildren();
  for (const one of props.value || []) {
    const pair = make('div', 'words-pair');
    host.append(pair);
    sentence(pair, one);
  }
}

function sentence(host, value) {
  const sides = {};
  for (const side of ['source', 'target']) {
    const line = make('div', 'words-line');
    line.dir = 'auto';
    sides[side] = value[side].map((text, index) => {
      const word = make('span', 'word');
      word.tabIndex = 0;
      word.dataset.side = side;
      word.dataset.index = index;
      word.textContent = text;
      line.append(word, ' ');
      return word;
    });
    host.append(line);
  }
  const clear = () => host.querySelectorAll('.lit').forEach((word) => word.classList.remove('lit'));
  const light = (side, index) => {
    clear();
    sides[side][index].classList.add('lit');
    for (const [source, target] of value.links) {
      if (side === 'source' && source === index) sides.target[target].classList.add('lit');
      if (side === 'target' && target === index) sides.source[source].classList.add('lit');
    }
  };
  for (const side of ['source', 'target']) {
    sides[side].forEach((word, index) => {
      word.addEventListener('pointerenter', () => light(side, index));
      word.addEventListener('focus', () => light(side, index));
      word.addEventListener('pointerleave', clear);
      word.addEventListener('blur', clear);
    });
  }
}

watch('value', draw);
draw();
