// What the page saves for people is put into its language as it is fetched: drawings and pages by the walk that the page itself
// takes, a PNG drawn anew from the SVG beside it. What programs read (CSV, JSON, npz) keeps its names.
const TYPES = { html: 'text/html', svg: 'image/svg+xml' },
  LARGEST_PNG = 6000; // most pixels of its side, as in ui/heat_map.py

async function spokenFile({ href, download }) {
  const type = TYPES[download.split('.').pop()],
    file = new DOMParser().parseFromString(await (await fetch(href)).text(), type);
  window.atelierLanguage.translate(file);
  const text = file.body ? file.documentElement.outerHTML : new XMLSerializer().serializeToString(file);
  return new Blob([file.body ? `<!doctype html>\n${text}` : text], { type });
}

async function picture(drawing) {
  const image = new Image(),
    canvas = document.createElement('canvas');
  image.src = URL.createObjectURL(await spokenFile(drawing));
  await image.decode();
  const times = 2 * Math.max(image.width, image.height) > LARGEST_PNG ? 1 : 2;
  canvas.width = times * image.width;
  canvas.height = times * image.height;
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

document.addEventListener(
  'click',
  async (event) => {
    const link = event.target.closest?.('a[download]'),
      name = link?.download.replace(/\.png$/, '.svg') || '',
      source = [...document.querySelectorAll('a[download]')].find((one) => one.download === name);
    if (!source || !(name.split('.').pop() in TYPES) || document.documentElement.lang === 'en') return;
    event.preventDefault();
    event.stopPropagation();
    const anchor = document.createElement('a');
    anchor.href = URL.createObjectURL(await (source === link ? spokenFile(link) : picture(source)));
    anchor.download = link.download;
    anchor.click();
  },
  true,
);
