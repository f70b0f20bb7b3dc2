// A strip of thumbnails: each is a button that puts its photographs into the boxes. Where one is chosen from the start, a
// line credits the one that stands in the box.
function draw() {
  const host = element.querySelector('.strip-host'),
    value = props.value;
  if (!host || !value) return;
  host.replaceChildren(
    ...value.items.map((item) => {
      const button = document.createElement('button'),
        image = document.createElement('img');
      button.type = 'button';
      button.className = 'thumbnail-button';
      button.title = item.credit ? `${item.title} (${item.credit})` : item.title;
      button.dataset.name = item.name;
      button.setAttribute('aria-label', item.title);
      Object.assign(image, { src: item.url, alt: '', width: value.width, height: value.height });
      button.append(image);
      if (item.below) button.append(make('span', 'thumbnail-share', item.below));
      button.addEventListener('click', () => trigger('pick', { name: item.name }));
      return button;
    }),
  );
  if (value.chosen === undefined) return;
  host.append(make('span', 'thumbnail-credit'));
  // Called with the name of the photograph in the box, whoever has put it there.
  host.mark = (name) => {
    const credit = host.querySelector('.thumbnail-credit');
    credit.textContent = '';
    host.querySelectorAll('button').forEach((button) => {
      button.setAttribute('aria-pressed', button.dataset.name === name);
    });
    const entry = value.items.find((item) => item.name === name);
    if (entry) credit.textContent = `Photograph: ${entry.credit}`;
  };
  host.mark(value.chosen);
}

watch('value', draw);
draw();
