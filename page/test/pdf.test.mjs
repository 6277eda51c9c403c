// PDFs that go with a message: the page reads their text, in a worker that is loaded for the first of them.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, eventsOf, openBrowser } from './browser.mjs';
import { brotli, endless, hostile, locked, pdfOf } from './pdf.mjs';

const browser = await openBrowser(test);
const pages = [['Grüße aus Köln, 3 €', 'Straße: ÄÖÜ'], ['Das Ende.']];
const text = '[Page 1]\nGrüße aus Köln, 3 €\nStraße: ÄÖÜ\n\n[Page 2]\nDas Ende.\n';

async function folderOf(t, files) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'chasqui-page-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, bytes] of Object.entries(files)) await writeFile(path.join(folder, name), bytes);
  return (name) => path.join(folder, name);
}

const chips = async (tab) => (await tab.page.$$eval('.tray .chip', (list) => list.map((one) => one.innerText)))
  .map((one) => one.replace(/\s+/g, ' ').trim());

async function choose(tab, ...files) {
  const input = await tab.page.$('#attach-files');
  await tab.page.evaluate(() => document.querySelectorAll('#say, #toast').forEach((box) => box.replaceChildren()));
  await input.uploadFile(...files);
}

async function attach(tab, ...files) {
  await choose(tab, ...files);
  await tab.until(() => document.querySelector('#say').innerText.replace(/^Reading .*/, '') +
    document.querySelector('#toast').innerText);
  return tab.text('#toast');
}

// The chip of a file that is read, once it says so.
const isRead = (tab, form) => tab.page.waitForFunction((pattern) =>
  new RegExp(pattern).test(document.querySelector('.tray .size[aria-busy]')?.innerText), {}, form);

// The page has ended its workers; the browser tells of it a little later.
async function workersEnd(tab) {
  while (tab.page.workers().length > 0) await new Promise((done) => { tab.page.once('workerdestroyed', done); });
}

test('the text of a PDF goes to the server, and its reader is loaded for it alone', async (t) => {
  const file = await folderOf(t, { 'paper.pdf': pdfOf(pages), 'no ending': pdfOf([['one page']]) });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const loaded = [];
  tab.page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  const asked = await tab.answerWith('/v1/chat/completions', ['a', 'b'].map((content) => eventsOf([{ content }])));
  await tab.ask('Nothing is attached.');
  assert.ok(!loaded.includes('/pdf.js'), 'not before it is needed');
  assert.equal(await attach(tab, file('paper.pdf'), file('no ending')), '');
  assert.ok(loaded.includes('/pdf.js'));
  assert.deepEqual(await chips(tab), [`paper.pdf ${Buffer.byteLength(text)} B`, 'no ending 9 B']);
  await tab.ask('What is it?');
  assert.equal(asked[1].messages.at(-1).content,
    `File: paper.pdf\n\`\`\`\n${text}\`\`\`\n\nFile: no ending\n\`\`\`\none page\n\`\`\`\n\nWhat is it?`);
});

test('exports keep the text of a PDF', async (t) => {
  const file = await folderOf(t, { 'paper.pdf': pdfOf(pages) });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.keepFiles();
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'An answer.' }])]);
  await attach(tab, file('paper.pdf'));
  await tab.ask('What is it?');
  await tab.page.click('#save');
  await tab.page.click('#export');
  const [markdown, json] = await tab.keptFiles();
  const exported = await folderOf(t, { 'one.md': markdown, 'two.json': json });
  for (const name of ['one.md', 'two.json']) {
    await tab.page.$eval('#toast', (toast) => toast.replaceChildren());
    await (await tab.page.$('#import')).uploadFile(exported(name));
    await tab.until(() => document.querySelector('#toast').innerText === 'One conversation is imported.');
    await tab.page.click('.attachment summary');
    await tab.until((wanted) => document.querySelector('.attachment pre').textContent === wanted, text);
    assert.deepEqual((await tab.texts('.attachment .name')), ['paper.pdf'], name);
  }
});

test('a PDF is read where it opens without a password, and where pages have no text', async (t) => {
  const file = await folderOf(t, { 'open.pdf': locked(pages, ''), 'mixed.pdf': pdfOf([['one'], [], ['three']]) });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const asked = await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'a' }])]);
  assert.equal(await attach(tab, file('open.pdf'), file('mixed.pdf')), '');
  await tab.ask('?');
  assert.equal(asked[0].messages[0].content, `File: open.pdf\n\`\`\`\n${text}\`\`\`\n\nFile: mixed.pdf\n\`\`\`\n` +
    '[Page 1]\none\n\n[Page 2: no text]\n\n[Page 3]\nthree\n```\n\n?');
});

const chinese = '<< /Type /Font /Subtype /Type0 /BaseFont /STSong /Encoding /GBK-EUC-H /DescendantFonts ' +
  '[<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong ' +
  '/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>] >>';

test('what is no PDF with text says what it is', async (t) => {
  const file = await folderOf(t, { 'secret.pdf': locked(pages, 'geheim'), 'empty.pdf': pdfOf([[], []]),
    'garbage.pdf': Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(5000, 'x\x00<<\xff', 'latin1')]),
    'cut.pdf': pdfOf(pages).subarray(0, 500), 'many.pdf': pdfOf(Array(501).fill(['x'])),
    'long.pdf': pdfOf(Array(400).fill(Array(50).fill('The words of one line in a very long book, as one has it.'))),
    'large.pdf': pdfOf(pages), 'brotli.pdf': brotli(), 'chinese.pdf': pdfOf([['ab']], { lastFont: chinese }),
    'both.pdf': pdfOf([['Latin'], ['ab']], { lastFont: chinese }) });
  await truncate(file('large.pdf'), 32 * 1024 * 1024 + 1);
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const said = { 'secret.pdf': /^secret.pdf is encrypted and opens with a password only\./,
    'garbage.pdf': /^garbage.pdf is broken: it cannot be read as a PDF\.$/, 'cut.pdf': /^cut.pdf is broken/,
    'empty.pdf': /^empty.pdf has no text: its pages are pictures, as of a scanner\./,
    'many.pdf': /^many.pdf has too many pages: a PDF may have 500\.$/,
    'long.pdf': /^long.pdf has too much text: a file may have 1\.0 MiB\.$/,
    'large.pdf': /^large.pdf has 32\.0 MiB; a file may have 32\.0 MiB\.$/,
    'brotli.pdf': /^brotli.pdf is packed with Brotli, which this page cannot unpack\./,
    'chinese.pdf': /^chinese.pdf has text in East Asian encodings only, whose tables this page does not have\./ };
  for (const [name, pattern] of Object.entries(said)) {
    assert.match(await attach(tab, file(name)), pattern, name);
    assert.deepEqual(await chips(tab), [], name);
  }
  assert.equal(await attach(tab, file('both.pdf')), 'Some text of both.pdf is missing: it is in East Asian encodings ' +
    '(GBK-EUC-H), whose tables this page does not have.');
  assert.deepEqual(await chips(tab), ['both.pdf 34 B']);
  await workersEnd(tab);
});

const value = (tab) => tab.page.$eval('#prompt', (field) => field.value);
const focused = (tab) => tab.page.evaluate(() => document.activeElement.getAttribute('aria-label'));
const toastIs = (tab, wanted) => tab.until((text) => document.querySelector('#toast').innerText === text, wanted);

test('a PDF that takes for ever can be taken away, ends by itself, and leaves the page alone', async (t) => {
  const file = await folderOf(t, { 'slow.pdf': endless(), 'notes.txt': 'notes' });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await choose(tab, file('slow.pdf'));
  await isRead(tab, '^page \\d+ of 500$');
  assert.deepEqual(await tab.axeFaults(), []);
  assert.equal(await tab.text('#say'), 'Reading slow.pdf');
  await tab.page.type('#prompt', 'The page goes on.');
  await tab.page.click('.tray [aria-label="Remove slow.pdf"]');
  await tab.page.waitForSelector('.tray[hidden]');
  assert.equal(await tab.text('#toast'), '', 'that is no fault');
  assert.equal(await tab.page.evaluate(() => document.activeElement.id), 'prompt');
  await workersEnd(tab); // in the midst of its work

  // The limit of time, which the test lets end.
  await tab.page.evaluate(() => {
    const real = window.setTimeout;
    window.setTimeout = (run, ms, ...values) => {
      if (ms !== 120_000) return real(run, ms, ...values);
      window.timeIsOver = run;
    };
  });
  await choose(tab, file('slow.pdf'), file('notes.txt'));
  await isRead(tab, '^page'); // the limit runs
  await tab.page.focus('#search');
  await tab.page.evaluate(() => window.timeIsOver());
  await toastIs(tab, 'slow.pdf takes too long to read: a PDF may take 120 s.');
  assert.equal(await tab.page.evaluate(() => document.activeElement.id), 'search', 'the focus stays');
  assert.deepEqual(await chips(tab), ['notes.txt 5 B']);
  assert.equal(await tab.text('#say'), 'notes.txt is attached');
  await tab.ask('');
  assert.equal((await tab.messages())[0], 'The page goes on.');
});

test('nothing is sent while a file is read, neither then nor later', async (t) => {
  const file = await folderOf(t, { 'slow.pdf': endless(), 'noise.bin': '\0\0' });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.page.type('#prompt', 'Sum it up.');
  await choose(tab, file('noise.bin'), file('slow.pdf'));
  await isRead(tab, '.');
  await tab.until((begin) => document.querySelector('#toast').innerText.startsWith(begin), 'noise.bin is not text in UTF-8');
  assert.ok(await tab.page.$('.tray .size[aria-busy]'), 'a fault is told before the others are read');
  for (const send of [() => tab.page.keyboard.press('Enter'), () => tab.page.click('#send')]) {
    await tab.page.evaluate(() => document.querySelector('#toast').replaceChildren());
    await tab.page.focus('#prompt');
    await send();
    await toastIs(tab, 'slow.pdf is still being read');
    assert.equal(await value(tab), 'Sum it up.');
  }
  await tab.page.click('.tray [aria-label="Remove slow.pdf"]');
  await tab.page.waitForSelector('.tray[hidden]');
  await workersEnd(tab);
  assert.equal(await value(tab), 'Sum it up.');
  assert.deepEqual(await tab.messages(), []);
  await tab.ask('');
  assert.equal((await tab.messages())[0], 'Sum it up.');
});

test('the focus stays among the files when one slow file follows another', async (t) => {
  const file = await folderOf(t, { 'one.pdf': endless(), 'two.pdf': endless() });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await choose(tab, file('one.pdf'), file('two.pdf'));
  await isRead(tab, '.');
  await tab.page.focus('.tray [aria-label="Remove one.pdf"]');
  await tab.page.keyboard.press('Enter');
  await tab.page.waitForSelector('.tray [aria-label="Remove two.pdf"]');
  assert.equal(await focused(tab), 'Remove two.pdf');
  assert.equal(await tab.text('#say'), 'Reading two.pdf');
  await tab.page.keyboard.press('Enter');
  await tab.page.waitForSelector('.tray[hidden]');
  assert.equal(await tab.page.evaluate(() => document.activeElement.id), 'prompt');
});

// What the process of the page has taken at most, in MiB: its worker shares it.
async function peakOfPages() {
  const own = async (pid) => {
    const [command, status] = await Promise.all(['cmdline', 'status'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')));
    const [, parent] = status.match(/^PPid:\s+(\d+)/m);
    return { pid, parent, renders: command.includes('--type=renderer'), peak: Number(status.match(/^VmHWM:\s+(\d+)/m)?.[1]) };
  };
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const all = (await Promise.allSettled(pids.map(own))).flatMap(({ value: one }) => (one ? [one] : []));
  const family = new Set([String(browser.process().pid)]);
  for (let before = 0; before !== family.size;) {
    before = family.size;
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid);
  }
  return Math.max(...all.filter(({ pid, renders }) => renders && family.has(pid)).map(({ peak }) => peak / 1024));
}

test('a PDF that wants gigabytes is refused before it has them', async (t) => {
  const makers = { ...hostile, contents: () => endless({ pages: 1, parts: 6 }) };
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  for (const [name, make] of Object.entries(makers)) {
    const file = await folderOf(t, { [`${name}.pdf`]: make() });
    assert.equal(await attach(tab, file(`${name}.pdf`)), `${name}.pdf unpacks to more than a browser can hold.`);
  }
  const peak = await peakOfPages();
  t.diagnostic(`at most ${Math.round(peak)} MiB`);
  assert.ok(peak > 50 && peak < 1000, `${peak} MiB`);
});

test('a server that is gone is named where the reader of PDFs cannot be loaded', async (t) => {
  const file = await folderOf(t, { 'paper.pdf': pdfOf(pages) });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/ERR_FAILED.*pdf\.js/] });
  await tab.page.setRequestInterception(true);
  tab.page.on('request', (request) => (request.url().endsWith('/pdf.js') ? request.abort() : request.continue()));
  assert.match(await attach(tab, file('paper.pdf')), /^paper.pdf cannot be read: the server did not send the reader/);
});

test('the script of the page has no reader of PDFs in it', async () => {
  const built = (name) => readFile(new URL(`../built/${name}`, import.meta.url), 'utf8');
  const [page, reader] = [await built('page.js'), await built('pdf.js')];
  for (const word of ['OpenJPEG: ', 'wasmExports', 'qcms_convert', '__wbindgen']) assert.ok(!reader.includes(word), word);
  for (const word of ['GetTextContent', 'FlateDecode', 'codespacerange']) {
    assert.ok(reader.includes(word), word);
    assert.ok(!page.includes(word), word);
  }
});
