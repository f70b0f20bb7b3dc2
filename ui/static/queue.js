// A place in the queue in words and seconds. Gradio writes "queue: 2/3 | 4.1/16.4s": the place and how many wait, and
// the seconds since the event began and, where it has seen one, until it ends. page.css shows the words instead.
const PLACE = /queue: (\d+)\/\d+ \|\s*([\d.]+)(?:\/([\d.]+))?s/;

function inWords(text) {
  const [, place, since, until] = text.replace(/\s+/g, ' ').match(PLACE) || [];
  if (!place) return '';
  const left = Math.round(until - since);
  return `Place ${place} in the queue${left > 0 ? `, ready in about ${left} s` : ''}`;
}

setInterval(() => {
  for (const line of document.querySelectorAll('.progress-text')) {
    const words = inWords(line.textContent);
    if (words) line.dataset.words = words;
    else delete line.dataset.words;
  }
}, 250);
