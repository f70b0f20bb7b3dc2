// Plays a game: asks the server for one picture after the other and draws it, until Pause is pressed, the game ends, or it
// is out of sight. Beside the page's events, so that a picture costs what drawing it costs. Follows game.js in its scope.
const APART = 33; // milliseconds between two pictures at least, so that one visitor leaves the server to others
const control = (name) => document.getElementById(element.closest('[id$=-game]').id.replace(/game$/, name));
const soon = () => new Promise(requestAnimationFrame); // which also waits while the browser shows another tab
const inSight = () => element.isConnected && element.getClientRects().length > 0;
let turn = 0;

function halt() {
  turn += 1;
  const host = element.querySelector('.game');
  if (host) host.dataset.playing = 'no';
}
function tell(sentence) {
  halt();
  if (parts) {
    parts.alarm.textContent = sentence;
    parts.alarm.classList.add('failed');
  }
}
// The next picture, or the sentence that says why there is none.
async function ask(key) {
  try {
    return await server.frame({ key, speed: Number(control('speed').querySelector('input').value) });
  } catch (_error) {
    return { sentence: 'The page could not be reached; press Play to go on.' };
  }
}
async function play(key) {
  halt();
  const mine = turn;
  element.querySelector('.game').dataset.playing = 'yes';
  let coming = ask(key);
  while (inSight()) {
    const start = performance.now(),
      picture = await coming;
    if (mine !== turn) return;
    if (picture.over) break;
    if (picture.sentence) {
      tell(picture.sentence);
      return;
    }
    if (!picture.failed) coming = ask(key); // made while this one is drawn
    live = picture;
    draw();
    if (picture.losses) document.dispatchEvent(new CustomEvent('gan-losses', { detail: picture.losses }));
    if (picture.failed) break;
    do await soon();
    while (performance.now() - start < APART);
    if (mine !== turn) return;
  }
  halt();
}

watch('value', () => {
  const { playing, key } = props.value || {};
  if (playing) play(key);
  else if (playing === false) halt();
});
// These pause it at once, before the server hears of them.
document.addEventListener(
  'click',
  (event) => {
    if (['pause', 'one', 'd', 'g'].some((name) => control(name)?.contains(event.target))) halt();
  },
  true,
);
element.addEventListener('input', halt, true);
