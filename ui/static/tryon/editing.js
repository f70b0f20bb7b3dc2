// What the editors of a map and of the warp share: buttons, steps that can be taken back, and the result beside them.
function button(className, text, act) {
  const control = make('button', `canvas-button ${className}`, text);
  control.type = 'button';
  control.addEventListener('click', act);
  return control;
}

// Undo, Redo and Reset. now() copies what is edited, put(state) puts a copy back, after() runs when it is back.
function history(now, put, after, most = 30) {
  let past = [],
    future = [],
    start = null;
  const move = (from, to) => () => {
    const list = from();
    if (!list.length) return;
    to().push(now());
    put(list.pop());
    after();
  };
  const undo = button(
      'undo',
      'Undo',
      move(
        () => past,
        () => future,
      ),
    ),
    redo = button(
      'redo',
      'Redo',
      move(
        () => future,
        () => past,
      ),
    ),
    reset = button('reset', 'Reset', () => {
      keep(now());
      put(start.slice());
      after();
    });
  function keep(state) {
    past.push(state);
    if (past.length > most) past.shift();
    future = [];
  }
  return {
    buttons: [undo, redo, reset],
    keep,
    begin(state) {
      start = state;
      past = [];
      future = [];
    },
    show(different) {
      undo.disabled = !past.length;
      redo.disabled = !future.length;
      reset.disabled = !different;
    },
  };
}

// The result beside an editor, pale while it is that of an earlier state. `props.beside`: {url, line}, of the state
// that was asked for last.
const beside = make('figure', 'beside');
function showBeside() {
  const picture = props.beside;
  beside.classList.remove('old');
  beside.replaceChildren();
  if (!picture?.url) return;
  const image = make('img');
  Object.assign(image, { src: picture.url, alt: picture.line });
  beside.append(image, make('figcaption', '', picture.line));
}
function outdateBeside(line) {
  if (!beside.childElementCount) return;
  beside.classList.add('old');
  beside.querySelector('figcaption').textContent = line;
}
watch('beside', showBeside);
showBeside();
