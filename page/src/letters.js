// Letters of formulas in the styles that MathML Core has no attribute for (double-struck, script, fraktur, bold, …), as
// the characters that Unicode has for them.

// First characters of: A–Z, a–z, 0–9, Α–Ω, α–ω; 0 where there are none.
const styles = {
  bold: [0x1d400, 0x1d41a, 0x1d7ce, 0x1d6a8, 0x1d6c2],
  italic: [0x1d434, 0x1d44e, 0, 0x1d6e2, 0x1d6fc],
  'bold-italic': [0x1d468, 0x1d482, 0, 0x1d71c, 0x1d736],
  script: [0x1d49c, 0x1d4b6, 0, 0, 0],
  'bold-script': [0x1d4d0, 0x1d4ea, 0, 0, 0],
  fraktur: [0x1d504, 0x1d51e, 0, 0, 0],
  'bold-fraktur': [0x1d56c, 0x1d586, 0, 0, 0],
  'double-struck': [0x1d538, 0x1d552, 0x1d7d8, 0, 0],
  'sans-serif': [0x1d5a0, 0x1d5ba, 0x1d7e2, 0, 0],
  'bold-sans-serif': [0x1d5d4, 0x1d5ee, 0x1d7ec, 0x1d756, 0x1d770],
  'sans-serif-italic': [0x1d608, 0x1d622, 0, 0, 0],
  'sans-serif-bold-italic': [0x1d63c, 0x1d656, 0, 0x1d790, 0x1d7aa],
  monospace: [0x1d670, 0x1d68a, 0x1d7f6, 0, 0],
};
const ranges = [['A', 'Z'], ['a', 'z'], ['0', '9'], ['Α', 'Ω'], ['α', 'ω']].map((pair) => pair.map((c) => c.codePointAt(0)));

// Those that Unicode had before the others, elsewhere.
const elsewhere = {
  italic: { h: 'ℎ' },
  script: { B: 'ℬ', E: 'ℰ', F: 'ℱ', H: 'ℋ', I: 'ℐ', L: 'ℒ', M: 'ℳ', R: 'ℛ', e: 'ℯ', g: 'ℊ', o: 'ℴ' },
  fraktur: { C: 'ℭ', H: 'ℌ', I: 'ℑ', R: 'ℜ', Z: 'ℨ' },
  'double-struck': { C: 'ℂ', H: 'ℍ', N: 'ℕ', P: 'ℙ', Q: 'ℚ', R: 'ℝ', Z: 'ℤ' },
};

function styledLetter(letter, style) {
  const there = elsewhere[style]?.[letter];
  if (there) return there;
  const code = letter.codePointAt(0);
  const at = ranges.findIndex(([first, last]) => code >= first && code <= last);
  const begin = styles[style]?.[at];
  return begin ? String.fromCodePoint(begin + code - ranges[at][0]) : letter;
}

export const styledLetters = (text, style) => [...text].map((letter) => styledLetter(letter, style)).join('');
