// How a number becomes a colour; the colours themselves are those of ui/colours.py.
const isDark = () => document.body.classList.contains('dark');
const shade = () => (isDark() ? 'dark' : 'light');
const mix = (ramp, value) => {
  const place = Math.min(Math.max(value, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  return ramp[low].map((from, i) => Math.round(from + (ramp[low + 1][i] - from) * (place - low)));
};
const colour = (weight) => mix(RAMPS[shade()], weight);  // weight from 0 to 1
const signed = (value) => mix(SIGNED[shade()], (value + 1) / 2);  // value from -1 to 1
const headColour = (head) => HEADS[shade()][head % HEADS.light.length];
const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
