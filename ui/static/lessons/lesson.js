// A path of the lessons: the stop that the address names comes into view, and printing shows the questions or all.
const stopInAddress = () => {
  const query = new URLSearchParams(location.hash.slice(1));
  return query.get('tab') === 'lessons' && query.get('view') === props.name ? query.get('stop') : null;
};

function arrive() {
  element.querySelectorAll('.lesson-stop.here').forEach((one) => one.classList.remove('here'));
  const number = stopInAddress(),
    stop = number && element.querySelector(`#stop-${CSS.escape(props.name)}-${CSS.escape(number)}`);
  if (!stop) return;
  stop.classList.add('here');
  stop.scrollIntoView({ block: 'start' });
}

function print(answers) {
  const details = [...element.querySelectorAll('details')],
    before = details.map((one) => one.open);
  details.forEach((one) => {
    one.open = answers;
  });
  document.body.classList.add('print-lesson');
  window.addEventListener(
    'afterprint',
    () => {
      document.body.classList.remove('print-lesson');
      details.forEach((one, i) => {
        one.open = before[i];
      });
    },
    { once: true },
  );
  window.print();
}

element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-print]');
  if (button) print(button.dataset.print === 'answers');
});
window.addEventListener('hashchange', () => setTimeout(arrive, 100));
watch('value', () => requestAnimationFrame(arrive));
requestAnimationFrame(arrive);
