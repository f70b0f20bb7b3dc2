// Arrow keys walk through the tour, Escape ends it; keys that belong to a field, a map or a list stay there.
const busy = (target) =>
  target.closest('input, textarea, select, svg, [role=tab], [role=listbox], [role=slider], .line-token, table');
const act = (event) => {
  const card = element.querySelector('.tour-card');
  if (!element.isConnected || !card || card.offsetParent === null) return;
  if (event.altKey || event.ctrlKey || event.metaKey || busy(event.target)) return;
  if (event.key === 'ArrowRight') trigger('step', { by: 1 });
  else if (event.key === 'ArrowLeft') trigger('step', { by: -1 });
  else if (event.key === 'Escape') trigger('leave');
  else return;
  event.preventDefault();
};
document.addEventListener('keydown', act);
