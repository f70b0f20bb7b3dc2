// What events do in the browser alone; in Python `js="handlers.NAME"` names them.
window.handlers = {
  // On a phone the result lies below the boxes; where it is in view already, nothing moves.
  showResult() {
    const box = document.querySelector('#tryon-outcome')?.getBoundingClientRect();
    const away = box && (box.top < 0 || box.top > innerHeight / 2);
    if (away && !document.querySelector('#tryon-status [role=alert]')) {
      document.querySelector('#tryon-outcome').scrollIntoView({ behavior: 'smooth', block: 'start' });
    }
  },
  // The browser remembers where the zip of the last result lies, for a reload.
  remember: (file, old) => file?.path || old || '',
  // And the result as a small picture, once the zip has its address, which only the browser knows of.
  rememberPicture: (file, entry) =>
    file &&
    entry &&
    document.dispatchEvent(new CustomEvent('atelier-result', { detail: { ...entry, path: file.path } })),
  // And what was chosen, files by their address, and whether the result is of something else.
  keep: (old, ...values) =>
    document.body.dataset.tryonBack
      ? JSON.stringify({
          values: values.map((value) => value?.path || value),
          stale: Boolean(document.querySelector('#tryon-stale .note')),
        })
      : old,
  // What was kept has been read.
  back() {
    document.body.dataset.tryonBack = 'true';
  },
  afterAWhile: () => new Promise((done) => setTimeout(done, 2000)),
  // The thumbnail of what stands in a box is marked, and credited.
  mark: (kind) => (photo) =>
    document.querySelector(`#example-${kind} .strip-host`)?.mark?.(
      (photo?.path || '')
        .split('/')
        .pop()
        .replace(/\.\w+$/, ''),
    ),
  // What Figure 3 has opened is far above the figure's lower end.
  showViews: () => document.querySelector('#tryon-views').scrollIntoView({ behavior: 'smooth', block: 'start' }),
  // A run that was started comes into sight.
  toTheRun() {
    if (document.querySelector('#train-note [role=alert]')) return;
    document.querySelector('#run-status')?.scrollIntoView({ block: 'nearest' });
  },
};
