// How many characters the text has, out of how many the page takes.
const show = () => {
  const field = document.querySelector('#source-text textarea'),
    count = element.querySelector('.count');
  if (!field || !count) return;
  const size = [...field.value].length;
  count.textContent = `${size.toLocaleString('en')} / ${props.most.toLocaleString('en')} characters`;
  count.classList.toggle('over', size > props.most);
};
document.addEventListener('input', show);
// Examples and swapped languages set the text without an event.
setInterval(show, 500);
show();
