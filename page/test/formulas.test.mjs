// Formulas: which texts are some, without a browser; and what a real one makes of them.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Marked } from 'marked';

import { sim, start } from '../../tests/e2e/server.mjs';
import { formulas } from '../src/formulas.js';
import { styledLetters } from '../src/letters.js';
import { Tab, eventsOf, openBrowser, small } from './browser.mjs';

const browser = await openBrowser(test);
const marked = new Marked({ gfm: true, breaks: true }, formulas);

// The formulas that a text holds, those on lines of their own in brackets.
function formulasOf(text) {
  const found = [];
  marked.walkTokens(marked.lexer(text), (token) => {
    if (token.type === 'formula') found.push(token.display ? `[${token.source}]` : token.source);
    if (token.type === 'formulaBlock') found.push(`[${token.source}]`);
  });
  return found;
}

test('formulas are told from prices, variables and code', () => {
  const cases = [
    ['It costs $5 and $6.', []],
    ['Between $20,000 and $30,000', []],
    ['echo $HOME and $PATH', []],
    ['a price of \\$5 and a$', []],
    ['$ x$ and $x $ and $$', []],
    ['Let $x$ be $y_1$, the $n$th', ['x', 'y_1', 'n']],
    ['a cost of $5 or $p$', ['p']],
    ['\\(a+b\\) and \\[c\\]', ['a+b', '[c]']],
    ['so $$x^2$$ holds', ['[x^2]']],
    ['$a$$b$', ['a', 'b']],
    ['$\\text{costs \\$5}$', ['\\text{costs \\$5}']],
    ['`$x$` and ``\\(y\\)``', []],
    ['it costs $5 `code$` more', []],
    ['```\n$x$\n$$\ny\n$$\n```', []],
    ['    $x$ of indented code', []],
    ['$$\n```\n$$\n```', []],
    ['$$\na\n=\nb\n- c\n# d\n$$', ['[a\n=\nb\n- c\n# d]']],
    ['Text:\n$$\nx\n$$\nmore', ['[x]']],
    ['Text:\n\\[\nx \\\\[2pt] y\n\\]\nmore', ['[x \\\\[2pt] y]']],
    ['1. One:\n   \\[\n   x\n   \\]\n2. $y$', ['[x]', 'y']],
    ['> $$x$$', ['[x]']],
    ['| a |\n|---|\n| $x$ |', ['x']],
    ['**bold $x$**', ['x']],
    ['2*3 and $a*b$ and *c*', ['a*b']],
    ['$a_1$ _b_ $c_2$', ['a_1', 'c_2']],
    // What has no end yet, and what an empty line ends.
    ['so $x^2 + ', []], ['so \\(x^2 + ', []], ['$$\nx^2\n', []], ['\\[\nx^2', []],
    ['$x\n\ny$', []], ['$$\nx\n\ny\n$$', []],
  ];
  for (const [text, wanted] of cases) assert.deepEqual(formulasOf(text), wanted, text);
  assert.match(marked.parse('2*3 and $a*b$ and *c*'), /^<p>2\*3 and <math.*<em>c<\/em><\/p>\n$/s);
});

test('what KaTeX does not know, or is not to do, is shown as it was written', () => {
  const sources = ['$\\frac{1$', '$\\unknown{x}$', '\\(x^2^3\\)', '$\\href{http://192.0.2.1}{x}$',
    '$\\includegraphics{http://192.0.2.1/a.png}$', '$\\def\\a{\\a\\a}\\a$', `$${'{'.repeat(3000)}$`];
  for (const source of sources) assert.equal(marked.parse(source), `<p>${source}</p>\n`);
  assert.equal(marked.parse('$$\n\\frac{1 & <b>\n$$'), '<p>$$\n\\frac{1 &amp; &lt;b&gt;\n$$</p>');
  assert.doesNotMatch(marked.parse('$\\rule{5000em}{5000em}$'), /5000em"/, 'sizes have a bound');
});

test('nothing stands inside of operators, where a parser of HTML would lose it', () => {
  for (const source of ['\\stackrel{!}{=}', '\\overset{a}{=}', '\\mathop{\\lim}_x', '\\mathrel{\\text{a $b$}}']) {
    assert.doesNotMatch(marked.parse(`$${source}$`), /<(mi|mn|mo|mtext)\b[^>]*><(?!\/)/, source);
  }
});

test('letters in styles are those of Unicode', () => {
  assert.equal(styledLetters('RCx1', 'double-struck'), 'ℝℂ𝕩𝟙');
  assert.equal(styledLetters('LA', 'script'), 'ℒ𝒜');
  assert.equal(styledLetters('αx-', 'bold'), '𝛂𝐱-');
  assert.equal(styledLetters('sin', 'normal'), 'sin');
});

const answer = `The energy is $E = mc^2$, it costs $5 and $6, and \\(\\mathbb{R}^n\\) is a space.

$$
\\int_{-\\infty}^{\\infty} e^{-x^2}\\,dx = \\sqrt{\\pi}
$$

\\[ \\begin{aligned} a &= b + c \\\\ &= \\boxed{d} \\end{aligned} \\]

Code keeps \`$x$\`, and a wrong one its source: $\\frac{1$.
`;

test('formulas are shown while they stream, whole ones only, and nothing is blocked by the content policy', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const pieces = answer.match(/[^]{1,4}/g).map((content) => ({ content }));
  await tab.answerWith('/v1/chat/completions', [eventsOf(pieces)]);
  await tab.ask('What is the energy?');
  const seen = await tab.page.$eval('.message.assistant .text', (text) => ({
    sources: [...text.querySelectorAll('math')].map((math) => math.getAttribute('alttext')),
    styled: text.querySelectorAll('[style]').length,
    display: [...text.querySelectorAll('math[display=block]')].map((math) => math.getBoundingClientRect().height > 20),
    letters: text.querySelector('msup mi').textContent + text.querySelectorAll('math')[1].textContent,
    words: text.innerText,
    code: text.querySelector('code').textContent,
  }));
  assert.equal(seen.sources.length, 4);
  assert.equal(seen.sources[0], 'E = mc^2');
  assert.deepEqual(seen.display, [true, true]);
  assert.equal(seen.letters, 'cℝn');
  assert.equal(seen.styled, 0);
  assert.match(seen.words, /costs \$5 and \$6/);
  assert.match(seen.words, /its source: \$\\frac\{1\$\./);
  assert.equal(seen.code, '$x$');
});

test('an unfinished formula is text until it ends', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'So $x^2 + y' }], 'length'), eventsOf([{ content: '^2$ it is.' }])]);
  await tab.ask('What is it?');
  assert.equal((await tab.messages())[1], 'So $x^2 + y');
  assert.equal(await tab.page.$('math'), null);
  await tab.page.click('.message.assistant [aria-label="Continue"]');
  await tab.page.waitForSelector('.message.assistant:not(.streaming) math');
  assert.equal(await tab.page.$eval('math', (math) => math.getAttribute('alttext')), 'x^2 + y^2');
});

test('a formula that is wider than a phone scrolls by itself', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server, { viewport: small });
  const long = Array.from({ length: 60 }, (_, i) => `x_{${i}}`).join('+');
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: `- In a line: $${long}$\n- Above\n\n$$${long}$$` }])]);
  await tab.ask('Show me a long one.');
  const seen = await tab.page.evaluate(() => ({
    scroll: [...document.querySelectorAll('.formula')].map((box) => box.scrollWidth > box.clientWidth),
    page: document.querySelector('#log').scrollWidth - document.querySelector('#log').clientWidth,
  }));
  assert.deepEqual(seen.scroll, [true, true]);
  assert.ok(seen.page <= 0, `the conversation is ${seen.page} pixels too wide`);
});
