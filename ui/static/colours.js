// How a number becomes a colour; the colours themselves are those of ui/colours.py.
const isDark = () => document.body.classList.contains('dark');
const shade = () => (isDark() ? 'dark' : 'light');
const mix = (ramp, value) => {
  const place = Math.min(Math.max(value, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  return ramp[low].map((from, i) => Math.round(from + (ramp[low + 1][i] - from) * (place - low)));
};
const colour = (weight) => mix(RAMPS[shade()], weight); // weight from 0 to 1
const signed = (value) => mix(SIGNED[shade()], (value + 1) / 2); // value from -1 to 1
const LIGHT_INK = '#fff6ec',
  DARK_INK = '#2a1208';
const ink = ([red, green, blue]) => {
  // what can be read on that colour, by its relative luminance (WCAG 2)
  const [r, g, b] = [red, green, blue].map((c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? DARK_INK : LIGHT_INK;
};
const headColour = (head) => HEADS[shade()][head % HEADS.light.length];
const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
