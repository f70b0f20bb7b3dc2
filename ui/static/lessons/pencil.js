// The sheet: tables to be filled in by hand. A cell is right within half a unit of its second decimal, or of the first.
const NEAR = 0.0101;
const twoDigits = (value) => String(Number(value.toFixed(2)));

// Text with its indices: W^Q and d_k have a sign above or below the line, as on paper.
function formula(name, className, text) {
  const label = make(name, className);
  text.split(/([\^_][A-Za-z\d.]+)/).forEach((part) => {
    if (/^[\^_]./.test(part)) label.append(make(part[0] === '^' ? 'sup' : 'sub', '', part.slice(1)));
    else label.append(part);
  });
  return label;
}

// A matrix of the input, or the words' own vectors.
function inputMatrix(name, rows, labels) {
  const table = make('table', 'pencil-given'),
    caption = formula('caption', '', name);
  table.append(caption);
  rows.forEach((row, i) => {
    const line = make('tr');
    if (labels) {
      const head = make('th', '', labels[i]);
      head.scope = 'row';
      line.append(head);
    }
    for (const value of row) line.append(make('td', '', twoDigits(value)));
    table.append(line);
  });
  return table;
}

function judge(field) {
  const text = field.value.trim().replace('−', '-').replace(',', '.');
  const right = text !== '' && Math.abs(Number(text) - Number(field.dataset.value)) < NEAR;
  field.classList.toggle('right', right);
  field.classList.toggle('wrong', text !== '' && !right);
  field.setAttribute('aria-invalid', text !== '' && !right);
  count();
}

function count() {
  const fields = [...element.querySelectorAll('.pencil-cell')],
    right = fields.filter((one) => one.classList.contains('right')).length;
  const note = element.querySelector('.pencil-count');
  if (note) note.textContent = `${right} of ${fields.length} numbers are right.`;
}

function answers(table) {
  table.querySelectorAll('.pencil-cell').forEach((field) => {
    field.value = twoDigits(Number(field.dataset.value));
    judge(field);
  });
}

function drawStep(step, number, words) {
  const section = make('section', 'pencil-step'),
    heading = make('h4', '', `${number + 1}. ${step.name}`);
  heading.append(
    verbatim(formula('span', 'pencil-symbol', step.symbol)),
    make('span', 'pencil-source', step.source.startsWith('eq') ? step.source : `section ${step.source}`),
  );
  section.append(heading, formula('p', 'pencil-rule', step.rule));
  const row = make('div', 'pencil-row');
  for (const one of step.given) row.append(inputMatrix(one.name, one.rows));
  const table = make('table', 'pencil-table');
  if (step.columns.length) {
    const head = make('tr');
    head.append(make('td'), ...step.columns.map((name) => make('th', '', name)));
    table.append(head);
  }
  step.values.forEach((values, i) => {
    const line = make('tr'),
      head = make('th', '', words[i]);
    head.scope = 'row';
    line.append(head);
    values.forEach((value, j) => {
      const cell = make('td'),
        field = make('input', 'pencil-cell');
      Object.assign(field, { type: 'text', inputMode: 'decimal', autocomplete: 'off' });
      field.dataset.value = value;
      field.setAttribute('aria-label', `${step.name}, ${words[i]}, ${step.columns[j] || `component ${j + 1}`}`);
      field.addEventListener('change', () => judge(field));
      cell.append(field);
      line.append(cell);
    });
    table.append(line);
  });
  const show = make('button', 'pencil-show', 'Show these');
  show.type = 'button';
  show.setAttribute('aria-label', `Show the numbers of ${step.name}`);
  show.addEventListener('click', () => answers(table));
  row.append(table, show);
  section.append(row);
  return section;
}

function draw() {
  const value = props.value,
    host = cleared(element, '.pencil', value?.steps);
  if (!host) return;
  const top = make('div', 'pencil-top'),
    note = make('span', 'pencil-count');
  note.setAttribute('role', 'status');
  const buttons = [
    ['Show all', () => element.querySelectorAll('.pencil-show').forEach((one) => one.click())],
    ['Clear', draw],
    [
      'Print the sheet',
      () => {
        document.body.classList.add('print-lesson');
        window.addEventListener('afterprint', () => document.body.classList.remove('print-lesson'), { once: true });
        window.print();
      },
    ],
  ].map(([name, act]) => {
    const button = make('button', 'pencil-button', name);
    button.type = 'button';
    button.addEventListener('click', act);
    return button;
  });
  top.append(inputMatrix('X, a row for each word', value.x, value.words), ...buttons, note);
  host.append(top, ...value.steps.map((step, number) => drawStep(step, number, value.words)));
  count();
}

watch('value', draw);
draw();
