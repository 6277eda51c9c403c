// Text files that go with a message: chosen, dropped, pasted; refused where they are no text; kept in exports.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { demo, sim, start } from '../../tests/e2e/server.mjs';
import { readFiles, wholeText } from '../src/conversation.js';
import { Tab, eventsOf, openBrowser } from './browser.mjs';

const browser = await openBrowser(test);

async function folderOf(t, files) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'chasqui-page-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, bytes] of Object.entries(files)) await writeFile(path.join(folder, name), bytes);
  return (name) => path.join(folder, name);
}

const chips = (tab) => tab.page.$$eval('.tray .chip', (list) => list.map((one) => one.innerText.replace(/\s+/g, ' ').trim()));

async function attach(tab, ...files) {
  const input = await tab.page.$('#attach-files');
  await tab.page.evaluate(() => document.querySelectorAll('#say, #toast').forEach((box) => box.replaceChildren()));
  await input.uploadFile(...files);
  await tab.until(() => document.querySelector('#say').innerText + document.querySelector('#toast').innerText);
  return tab.text('#toast');
}

test('a text with files is read back as it was', () => {
  const files = [['a.md', 'with ``` and ````\n'], ['b', 'x\n'], ['c.json', '{}\n']].map(([name, text]) => ({ name, text }));
  const text = wholeText({ content: 'What is it?', attachments: files });
  assert.ok(text.startsWith('File: a.md\n`````md\nwith ``` and ````\n`````\n\nFile: b\n```\nx\n```\n\n'), text);
  const { attachments, length } = readFiles(text);
  assert.deepEqual(attachments.map(({ name, text: each }) => ({ name, text: each })), files);
  assert.equal(text.slice(length), 'What is it?');
  assert.equal(wholeText({ content: 'no files' }), 'no files');
});

test('files are attached, taken away, sent before the text, and kept', async (t) => {
  const file = await folderOf(t, { 'notes.md': '# Notes\n```js\n1\n```\n', 'rows.csv': 'a,b\n1,2',
    'code.unknown': 'let ñ = 1;\n' });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const asked = await tab.answerWith('/v1/chat/completions', ['a', 'b', 'c', 'd'].map((content) => eventsOf([{ content }])));
  await attach(tab, file('notes.md'), file('rows.csv'), file('code.unknown'));
  assert.deepEqual(await chips(tab), ['notes.md 20 B', 'rows.csv 7 B', 'code.unknown 12 B']);
  assert.equal(await tab.page.evaluate(() => document.activeElement.id), 'prompt');
  // The keyboard reaches what takes a file away, and goes on with the next one.
  await tab.page.focus('.tray li:nth-child(2) button');
  await tab.page.keyboard.press('Enter');
  assert.equal(await tab.page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Remove code.unknown');
  await tab.page.keyboard.press('Enter');
  assert.equal(await tab.page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Remove notes.md');
  await tab.ask('What is in it?');
  const whole = 'File: notes.md\n````md\n# Notes\n```js\n1\n```\n````\n\nWhat is in it?';
  assert.deepEqual(asked[0].messages, [{ role: 'user', content: whole }]);
  assert.deepEqual(await chips(tab), []);
  assert.equal((await tab.messages())[0], 'What is in it?');
  const shown = () => tab.page.$$eval('.message.user .attachment', (list) =>
    list.map((one) => [one.open, one.querySelector('summary').innerText.replace(/\s+/g, ' ').trim()]));
  assert.deepEqual(await shown(), [[false, 'notes.md 20 B']]);
  await tab.page.focus('.attachment summary');
  await tab.page.keyboard.press('Enter');
  await tab.until(() => document.querySelector('.attachment pre').textContent === '# Notes\n```js\n1\n```\n');

  // An edit keeps the files, and so does a reload.
  await tab.page.focus('#prompt');
  await tab.page.keyboard.press('ArrowUp');
  await tab.page.$eval('.editing textarea', (area) => { area.value = 'And now?'; });
  await tab.page.keyboard.press('Enter');
  await tab.until(() => document.querySelector('.message.user .text')?.innerText === 'And now?');
  await tab.ended();
  assert.equal(asked[1].messages[0].content, whole.replace('What is in it?', 'And now?'));
  await tab.reload();
  assert.equal((await shown()).length, 1);

  // Files alone are a message, whose first file names the conversation.
  await tab.page.click('#new');
  await attach(tab, file('rows.csv'));
  await tab.ask('');
  assert.equal(asked[2].messages[0].content, 'File: rows.csv\n```csv\na,b\n1,2\n```\n\n');
  assert.equal(await tab.text('.bar h1'), 'rows.csv');
});

test('what is no text is refused with what is possible', async (t) => {
  const png = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(2 << 20)]); // over the limit, too
  const file = await folderOf(t, { 'photo.png': png, 'photo.txt': png, 'big.jpg': jpeg,
    'bytes.bin': Buffer.from([1, 2, 0, 3]), 'latin1.txt': Buffer.from([0x66, 0xfc, 0x72]),
    'empty.txt': '', 'large.txt': 'x'.repeat(1024 * 1024 + 1), 'drawing.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
    ...Object.fromEntries([1, 2, 3, 4, 5].map((i) => [`part${i}.txt`, 'y'.repeat(1024 * 1024 - 10)])) });
  const server = await start(t, demo); // whose model takes text alone
  const tab = await Tab.open(t, browser, server);
  const refused = { 'photo.png': /^photo.png is a picture, and the model takes none\. Text files and PDFs can be attached/,
    'photo.txt': /is a picture/, 'big.jpg': /is a picture/,
    'bytes.bin': /not text in UTF-8\. Text files/, 'latin1.txt': /not text in UTF-8/, 'empty.txt': /is empty/,
    'large.txt': /^large.txt has 1.0 MiB; a file may have 1.0 MiB/ };
  for (const [name, said] of Object.entries(refused)) {
    assert.match(await attach(tab, file(name)), said, name);
    assert.deepEqual(await chips(tab), [], name);
  }
  assert.equal(await attach(tab, file('drawing.svg')), '', 'it is text');
  const said = await attach(tab, ...[1, 2, 3, 4, 5].map((i) => file(`part${i}.txt`)));
  assert.match(said, /^With part4.txt the files would have 4.0 MiB; those of a message may have 4.0 MiB/);
  assert.equal((await chips(tab)).length, 4, 'those that fit are there');
});

test('files are dropped anywhere on the page, and pasted', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const dropped = await tab.page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }));
    const fire = (name) => document.querySelector('#side').dispatchEvent(
      new DragEvent(name, { dataTransfer, bubbles: true, cancelable: true }));
    fire('dragenter');
    fire('dragover');
    const over = document.body.classList.contains('dropping');
    const taken = !fire('drop');
    return { over, taken, after: document.body.classList.contains('dropping') };
  });
  assert.deepEqual(dropped, { over: true, taken: true, after: false });
  await tab.page.waitForSelector('.tray .chip');
  const paste = (texts, file) => tab.page.evaluate(([types, name]) => {
    const clipboardData = new DataTransfer();
    for (const type of types) clipboardData.setData(type, 'words');
    clipboardData.items.add(new File(['pasted'], name, { type: 'text/plain' }));
    const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
    return !document.querySelector('#prompt').dispatchEvent(event);
  }, [texts, file]);
  assert.equal(await paste([], 'pasted.txt'), true);
  await tab.page.waitForSelector('.tray .chip:nth-child(2)');
  assert.equal(await paste(['text/plain'], 'picture-of-words.txt'), false, 'words are pasted as words');
  assert.deepEqual(await chips(tab), ['dropped.txt 7 B', 'pasted.txt 6 B']);
});

test('exports keep the files of messages, as JSON and as Markdown', async (t) => {
  const trap = 'before\n<!-- chasqui: assistant -->\n## Answer\n\nnot an answer\n```\n<b>\n';
  const file = await folderOf(t, { 'trap.md': trap });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.keepFiles();
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'An answer.' }])]);
  await attach(tab, file('trap.md'));
  await tab.ask('What is it?');
  await tab.page.click('#save');
  await tab.page.click('#export');
  const [markdown, json] = await tab.keptFiles();
  const exported = await folderOf(t, { 'one.md': markdown, 'two.json': json });
  for (const name of ['one.md', 'two.json']) {
    await tab.page.$eval('#toast', (toast) => toast.replaceChildren());
    await (await tab.page.$('#import')).uploadFile(exported(name));
    await tab.until(() => document.querySelector('#toast').innerText !== '');
    assert.equal(await tab.text('#toast'), 'One conversation is imported.');
    assert.deepEqual(await tab.messages(), ['What is it?', 'An answer.'], name);
    await tab.page.click('.attachment summary');
    await tab.until((text) => document.querySelector('.attachment pre').textContent === text, trap);
  }
  await tab.page.type('#search', 'trap.md');
  assert.equal((await tab.texts('#side .open')).length, 3, 'names of files are found');
});
