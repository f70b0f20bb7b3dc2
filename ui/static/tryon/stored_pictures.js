// What a browser has stored as earlier pictures: the whole ones among them, and nothing else. Anybody who uses the browser,
// and any version of the page, may have written it.
const MOST_PICTURES = 12,
  MOST_STORED = 1000000, // characters in all,
  MOST_ADDRESS = 60000, // of one picture,
  MOST_WORDS = 300;
const PICTURE = /^data:image\/webp;base64,[A-Za-z0-9+/]+={0,2}$/;

function storedPictures(text) {
  let list;
  try {
    list = typeof text === 'string' && text.length <= MOST_STORED ? JSON.parse(text) : [];
  } catch {
    list = [];
  }
  const whole = [];
  for (const one of Array.isArray(list) ? list : []) {
    const { id, picture, person, garment, settings, path } = one || {};
    const isPicture = (url) => typeof url === 'string' && url.length <= MOST_ADDRESS && PICTURE.test(url);
    const isText = (words, most) => typeof words === 'string' && words.length <= most;
    if (!/^[0-9a-f]{16}$/.test(id) || whole.some((other) => other.id === id)) continue;
    if (![picture, person, garment].every(isPicture) || !isText(settings, MOST_WORDS)) continue;
    whole.push({ id, picture, person, garment, settings, path: isText(path, 2 * MOST_WORDS) ? path : '' });
    if (whole.length === MOST_PICTURES) break;
  }
  return whole;
}
