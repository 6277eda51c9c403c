// Formulas in what a model writes: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, as an extension of marked, made to MathML by
// KaTeX. MathML needs no style in attributes and no fonts of ours, so that the content policy stays as strict as it is.
import katex from 'katex';

import { escapeHtml, h } from './dom.js';
import { styledLetters } from './letters.js';

// Bounds for what comes from a model: macros that expand, sizes, and what is kept.
const options = { output: 'mathml', throwOnError: true, strict: 'ignore', trust: false, maxExpand: 500, maxSize: 20 };
const keptMax = 500;

// With `trust: false` KaTeX drops what these hold; the reader is to see all that was written.
const untrusted = /\\(?:href|url|includegraphics|html(?:Class|Id|Style|Data))\b/;

// Neither code nor an empty line is inside a formula: where the end is missing, the text that follows stays text.
const line = String.raw`[^\\$\x60\n]|\n(?![ \t]*(?:\n|$))`;
const lineWithDollars = line.replace('$', '');
const inDollars = String.raw`((?:\\[^]|${line}){1,4000})`;
const inBrackets = (end) => String.raw`((?:\\(?!${end})[^]|${lineWithDollars}){1,4000})`;
// As pandoc has it: no space behind the first dollar nor before the last, and no digit behind that. So prices are none.
const inlineForms = [
  { form: new RegExp(String.raw`^\$\$${inDollars}\$\$`), display: true },
  { form: new RegExp(String.raw`^\$(?![\s$])${inDollars}(?<!\s)\$(?!\d)`), display: false },
  { form: new RegExp(String.raw`^\\\(${inBrackets('[)]')}\\\)`), display: false },
  { form: new RegExp(String.raw`^\\\[${inBrackets('\\]')}\\\]`), display: true },
];
const blockForm = new RegExp(
  String.raw`^ {0,3}(?:\$\$${inDollars}\$\$|\\\[${inBrackets('\\]')}\\\])[ \t]*(?:\n+|$)`);

const kept = new Map(); // a paragraph that grows is made anew for each token, its formulas are not

function mathOf(source, display) {
  const key = (display ? 'd' : 'i') + source;
  if (!kept.has(key)) {
    if (kept.size >= keptMax) kept.clear();
    kept.set(key, make(source, display));
  }
  return kept.get(key);
}

// '' where it is no formula that KaTeX knows.
function make(source, display) {
  if (untrusted.test(source)) return '';
  try {
    const math = /<math[^]*<\/math>/.exec(katex.renderToString(source, { ...options, displayMode: display }))[0];
    // Without the source as an annotation, which would be kept as text of the formula; it is what screen readers get.
    return rowsForTokens(math.replace(/<\/?semantics>|<annotation[^]*<\/annotation>/g, ''))
      .replace('<math', `<math alttext="${escapeHtml(source)}"`);
  } catch {
    return '';
  }
}

// KaTeX puts elements into <mo> and its like, where a parser of HTML takes them for elements of HTML: those become rows.
function rowsForTokens(math) {
  const open = [];
  return math.replace(/<(\/?)(mi|mn|mo|mtext)\b([^>]*)>(?=(<(?!\/))?)/g, (tag, end, name, attributes, holdsElements) => {
    if (end) return `</${open.pop()}>`;
    open.push(holdsElements ? 'mrow' : name);
    return holdsElements ? '<mrow>' : tag;
  });
}

function inlineFormula(text) {
  for (const { form, display } of inlineForms) {
    const found = form.exec(text);
    if (found?.[1].trim()) return { type: 'formula', raw: found[0], source: found[1].trim(), display };
  }
  return undefined;
}

// Where a formula on lines of its own may begin in this paragraph.
function startOfBlock(text) {
  const end = text.indexOf('\n\n');
  const at = (end < 0 ? text : text.slice(0, end)).search(/\n {0,3}(?:\$\$|\\\[)/);
  return at < 0 ? undefined : at + 1;
}

export const formulas = {
  extensions: [{
    name: 'formulaBlock', level: 'block', start: startOfBlock,
    tokenizer(text) {
      const found = blockForm.exec(text);
      const source = (found?.[1] ?? found?.[2] ?? '').trim();
      return source ? { type: 'formulaBlock', raw: found[0], source } : undefined;
    },
    renderer: ({ raw, source }) => `<p>${mathOf(source, true) || escapeHtml(raw.trim())}</p>`,
  }, {
    name: 'formula', level: 'inline', start: (text) => text.indexOf('$'), tokenizer: inlineFormula,
    renderer: ({ raw, source, display }) => mathOf(source, display) || escapeHtml(raw),
  }],
  hooks: {
    // Stars and underscores of formulas begin no emphasis. What masks them has the same length.
    emStrongMask(text) {
      if (!/[$\\]/.test(text)) return text;
      let out = '';
      for (let at = 0; at < text.length;) {
        const found = text[at] === '$' || text[at] === '\\' ? inlineFormula(text.slice(at)) : undefined;
        const length = found?.raw.length ?? (text[at] === '\\' ? 2 : 1);
        out += found ? 'a'.repeat(length) : text.slice(at, at + length);
        at += length;
      }
      return out;
    },
  },
};

export const mathTags = ['math', 'menclose', 'mfrac', 'mi', 'mn', 'mo', 'mover', 'mpadded', 'mphantom', 'mroot', 'mrow',
  'mspace', 'msqrt', 'mstyle', 'msub', 'msubsup', 'msup', 'mtable', 'mtd', 'mtext', 'mtr', 'munder', 'munderover'];
export const mathAttributes = ['accent', 'accentunder', 'alttext', 'columnalign', 'columnlines', 'columnspacing', 'depth',
  'display', 'displaystyle', 'fence', 'height', 'largeop', 'linethickness', 'lspace', 'mathbackground', 'mathcolor',
  'mathsize', 'mathvariant', 'maxsize', 'minsize', 'notation', 'rowlines', 'rowspacing', 'rspace', 'scriptlevel',
  'separator', 'stretchy', 'voffset', 'width'];

// Browsers leave out what MathML Core does not have: classes of page.css and letters of Unicode stand in for it.
function dressTable(table) {
  const listed = (name) => (table.getAttribute(name) ?? '').split(' ');
  const [aligns, columnLines, rowLines] = ['columnalign', 'columnlines', 'rowlines'].map(listed);
  [...table.children].forEach((row, y) => [...row.children].forEach((cell, x) => {
    if (aligns[x]) cell.classList.add(aligns[x]);
    const lined = (lines, at) => (at > 0 && lines[Math.min(at, lines.length) - 1] !== 'none' ? lines[at - 1] : '');
    if (lined(columnLines, x)) cell.classList.add('line-left', columnLines[x - 1]);
    if (lined(rowLines, y)) cell.classList.add('line-above', rowLines[y - 1]);
  }));
}

// How many letters a screen of a phone, and the column of messages, surely have room for.
const [narrow, column] = [24, 64];

export function dressFormulas(fragment) {
  for (const math of fragment.querySelectorAll('math')) {
    math.querySelectorAll('mtable').forEach(dressTable);
    for (const letters of math.querySelectorAll(':is(mi, mn, mo)[mathvariant]')) {
      letters.textContent = styledLetters(letters.textContent, letters.getAttribute('mathvariant'));
    }
    // A line over letters, which fonts do not stretch.
    for (const line of math.querySelectorAll(':is(mover, munder) > mo:last-child')) {
      if (line.textContent !== '‾') continue;
      line.parentElement.classList.add(line.parentElement.tagName === 'mover' ? 'lined-above' : 'lined-below');
      line.textContent = '';
    }
    const display = math.getAttribute('display') === 'block';
    const length = math.textContent.length;
    if (!display && length <= narrow) continue;
    // It may be too wide for the screen, and keys scroll what has the focus.
    const box = h('span', { class: display ? 'formula' : `formula inline ${length > column ? 'widest' : 'wide'}`,
      tabindex: display || length > column ? '0' : null });
    math.replaceWith(box);
    box.append(math);
  }
}
