// The handle of the result's slider by keyboard: arrow keys, Page Up and Down, Home and End. Gradio's handle listens to a
// pointer alone, so a key press reaches it as a short drag.
const STEPS = {
  ArrowLeft: -0.02,
  ArrowDown: -0.02,
  ArrowRight: 0.02,
  ArrowUp: 0.02,
  PageDown: -0.2,
  PageUp: 0.2,
  Home: -1,
  End: 1,
};

function drag(handle, to) {
  const box = handle.getBoundingClientRect(),
    from = box.left + box.width / 2,
    y = box.top + box.height / 2;
  const tell = (name, target, x) =>
    target.dispatchEvent(
      new MouseEvent(name, { bubbles: true, cancelable: true, view: window, clientX: x, clientY: y, button: 0 }),
    );
  tell('mousedown', handle, from);
  tell('mousemove', window, to);
  tell('mouseup', window, to);
}

function prepare() {
  const handle = document.querySelector('#before-after .outer'),
    frame = handle?.closest('.wrap');
  if (!frame || handle.tabIndex === 0) return;
  const place = () => {
    const box = handle.getBoundingClientRect(),
      around = frame.getBoundingClientRect();
    return Math.min(Math.max((box.left + box.width / 2 - around.left) / around.width, 0), 1);
  };
  const say = () => handle.setAttribute('aria-valuenow', Math.round(100 * place()));
  Object.assign(handle, {
    tabIndex: 0,
    role: 'slider',
    ariaLabel: 'Border between before and after',
    ariaValueMin: 0,
    ariaValueMax: 100,
  });
  say();
  handle.addEventListener('focus', say);
  handle.addEventListener('keydown', (event) => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    const around = frame.getBoundingClientRect();
    drag(handle, around.left + Math.min(Math.max(place() + STEPS[event.key], 0), 1) * around.width);
    requestAnimationFrame(say);
  });
}

new MutationObserver(prepare).observe(document.querySelector('#tryon-outcome'), { childList: true, subtree: true });
prepare();
