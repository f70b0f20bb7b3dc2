// One chart of curves, over steps if it names no other axis: from the first point on, with the newest value of each line beside its name.
const HEIGHT = 168;
const say = (value, digits = 3) =>
  value === 0
    ? '0'
    : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3
      ? value.toExponential(1)
      : Number(value.toPrecision(digits)).toString();
const count = (step) => step.toLocaleString('en');
const newest = (line) => line.values[line.values.length - 1];

// The scale of the values: logarithmic where they are positive and span more than two powers of ten.
function scale(lines, top, bottom, linear) {
  const all = lines.flatMap((line) => line.values),
    low = Math.min(...all),
    high = Math.max(...all);
  const log = !linear && low > 0 && high / low > 100;
  const into = log ? Math.log10 : (value) => value,
    back = log ? (value) => 10 ** value : (value) => value;
  let [from, to] = [into(low), into(high)];
  if (to - from < 1e-9) {
    const room = Math.abs(from) * 0.1 || 1;
    from -= room;
    to += room;
  }
  const place = (value) => bottom - ((into(value) - from) / (to - from)) * (bottom - top);
  // As many digits as tell one mark from the next.
  const digits = log
    ? 3
    : Math.min(8, Math.max(3, 2 + Math.ceil(Math.log10(Math.max(Math.abs(from), Math.abs(to)) / (to - from)))));
  return { place, marks: [from, (from + to) / 2, to].map(back), log, digits };
}

function legend(lines, host) {
  const box = make('div', 'chart-legend');
  lines.forEach((line, i) => {
    const entry = make('span', 'chart-entry'),
      mark = make('span', line.dashed ? 'chart-mark dashed' : 'chart-mark');
    mark.style.setProperty('--tone', headColour(i));
    entry.append(mark, make('span', '', line.name), make('b', '', line.dashed ? '' : say(newest(line))));
    box.append(entry);
  });
  host.append(box);
}

// What stands at the step nearest to the pointer.
function hover(svg, lines, x, bounds, tip) {
  const rule = node('line', { class: 'chart-rule', y1: bounds.top, y2: bounds.bottom, visibility: 'hidden' });
  svg.append(rule);
  const steps = [...new Set(lines.flatMap((line) => line.steps))].sort((a, b) => a - b);
  const show = (event) => {
    const box = svg.getBoundingClientRect(),
      at = (event.clientX - box.left) * (bounds.width / box.width);
    const step = steps.reduce((best, one) => (Math.abs(x(one) - at) < Math.abs(x(best) - at) ? one : best));
    rule.setAttribute('x1', x(step));
    rule.setAttribute('x2', x(step));
    rule.setAttribute('visibility', 'visible');
    const entries = lines
      .filter((line) => line.steps.includes(step))
      .map((line) => `${line.name} ${say(line.values[line.steps.indexOf(step)])}`);
    tip.textContent = `${props.value.axis || 'Step'} ${count(step)}: ${entries.join(', ')}`;
  };
  const hide = () => {
    rule.setAttribute('visibility', 'hidden');
    tip.textContent = tip.dataset.rest;
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerleave', hide);
}

function curve(svg, line, tone, x, y) {
  const points = line.steps.map((step, i) => `${x(step).toFixed(1)} ${y(line.values[i]).toFixed(1)}`);
  if (points.length > 1)
    svg.append(
      node('path', {
        d: `M${points.join('L')}`,
        class: line.dashed ? 'chart-line dashed' : 'chart-line',
        stroke: tone,
      }),
    );
  if (line.dashed) return;
  const dots = points.length <= 30 ? points : points.slice(-1);
  for (const point of dots) {
    const [cx, cy] = point.split(' ');
    svg.append(node('circle', { cx, cy, r: 3, fill: tone }));
  }
}

function draw() {
  const value = props.value,
    host = cleared(element, '.chart', value);
  if (!host) return;
  host.append(make('div', 'chart-title', value.title));
  if (!value.lines.length) {
    host.append(make('div', 'chart-empty', 'Its first point comes soon.'));
    return;
  }
  legend(value.lines, host);
  const width = Math.max(240, host.clientWidth || 480),
    left = 52,
    right = width - 10,
    top = 10,
    bottom = HEIGHT - 22;
  const svg = node('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img' });
  const axis = value.axis || 'step',
    steps = value.lines.flatMap((line) => line.steps),
    first = Math.min(...steps),
    last = Math.max(...steps);
  const x = (step) => (last === first ? (left + right) / 2 : left + ((step - first) / (last - first)) * (right - left));
  const { place, marks, log, digits } = scale(value.lines, top, bottom, value.linear);
  for (const mark of marks) {
    svg.append(node('line', { x1: left, x2: right, y1: place(mark), y2: place(mark), class: 'chart-grid' }));
    svg.append(node('text', { x: left - 6, y: place(mark) + 4, 'text-anchor': 'end' }, say(mark, digits)));
  }
  value.lines.forEach((line, i) => curve(svg, line, headColour(i), x, place));
  if (last === first)
    svg.append(
      node('text', { x: (left + right) / 2, y: HEIGHT - 5, 'text-anchor': 'middle' }, `${axis} ${count(first)}`),
    );
  else {
    svg.append(node('text', { x: left, y: HEIGHT - 5 }, `${axis} ${count(first)}`));
    svg.append(node('text', { x: right, y: HEIGHT - 5, 'text-anchor': 'end' }, count(last)));
  }
  svg.setAttribute(
    'aria-label',
    `${value.title}, to ${axis} ${count(last)}: ${value.lines.map((line) => `${line.name} ${say(newest(line))}`).join(', ')}`,
  );
  const tip = make('div', 'chart-tip', [log ? 'logarithmic scale' : '', value.note].filter(Boolean).join(' · '));
  tip.dataset.rest = tip.textContent;
  host.append(svg, tip);
  hover(svg, value.lines, x, { top, bottom, width }, tip);
}

draw();
watch('value', draw);
onTheme(draw);
onWidth(element, draw);
