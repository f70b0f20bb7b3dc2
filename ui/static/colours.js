// The colours of an attention weight, shared by the large map and the thumbnails.
const RAMPS = {  // from weight 0 to weight 1; lightness changes one way only, so they read without colour too
  light: [[255, 252, 247], [246, 214, 178], [222, 138, 88], [166, 66, 40], [74, 22, 32]],
  dark: [[32, 28, 26], [84, 38, 34], [168, 72, 44], [228, 148, 92], [255, 238, 212]],
};
const isDark = () => document.body.classList.contains('dark');
const colour = (weight) => {
  const ramp = isDark() ? RAMPS.dark : RAMPS.light;
  const place = Math.min(Math.max(weight, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  return ramp[low].map((value, i) => Math.round(value + (ramp[low + 1][i] - value) * (place - low)));
};
