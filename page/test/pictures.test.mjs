// Pictures and sounds that go with a message: pasted, dropped, chosen, made smaller, sent as parts, kept and exported.
// The simulated engine takes them.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { sim, start } from '../../tests/e2e/server.mjs';
import { messagesFor, readFiles, wholeMarkdown } from '../src/conversation.js';
import { mediaOf } from '../src/pictures.js';
import { Tab, eventsOf, openBrowser, small } from './browser.mjs';

const browser = await openBrowser(test);
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const wav = Buffer.from('RIFF\0\0\0\0WAVEfmt ');

async function folderOf(t, files) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'chasqui-page-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, bytes] of Object.entries(files)) await writeFile(path.join(folder, name), bytes);
  return (name) => path.join(folder, name);
}

const chips = (tab) => tab.page.$$eval('.tray .chip .name', (list) => list.map((one) => one.innerText));

async function attach(tab, ...files) {
  const input = await tab.page.$('#attach-files');
  await tab.page.evaluate(() => document.querySelectorAll('#say, #toast').forEach((box) => box.replaceChildren()));
  await input.uploadFile(...files);
  await tab.until(() => document.querySelector('#say').innerText + document.querySelector('#toast').innerText);
  return tab.text('#toast');
}

// As the clipboard of a screenshot has it, or a drop.
const give = (tab, how, data) => tab.page.evaluate(([kind, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], 'image.png', { type: 'image/png' }));
  const options = { bubbles: true, cancelable: true };
  const target = document.querySelector('#prompt');
  if (kind === 'paste') return !target.dispatchEvent(new ClipboardEvent('paste', { clipboardData: files, ...options }));
  return !target.dispatchEvent(new DragEvent('drop', { dataTransfer: files, ...options }));
}, [how, data]);

test('what a file is says how it begins', () => {
  const begin = (text, type) => mediaOf(Buffer.from(text, 'latin1'), type);
  assert.deepEqual(begin('\x89PNG\r\n'), { kind: 'picture', type: 'image/png' });
  assert.deepEqual(begin('RIFF\0\0\0\0WAVE'), { kind: 'sound', type: 'audio/wav' });
  assert.deepEqual(begin('RIFF\0\0\0\0WEBP'), { kind: 'picture', type: 'image/webp' });
  assert.deepEqual(begin('unknown', 'image/x'), { kind: 'picture', type: 'image/x' });
  assert.equal(begin('<svg', 'image/svg+xml'), null);
  assert.equal(begin('text'), null);
});

test('a message has its pictures as parts, and Markdown has them before the text', () => {
  const media = [{ name: 'a[1].png', size: 3, type: 'image/png', data: 'AAAA' }, { name: 'b.wav', size: 3, type: 'audio/wav', data: 'BBBB' }];
  const file = { name: 'c.txt', size: 2, text: 'c\n' };
  const node = { id: '1', parent: '', role: 'user', content: 'What?', attachments: [...media, file] };
  const answer = { id: '2', parent: '1', content: '' };
  const [{ content }] = messagesFor({ system: '', nodes: { 1: node } }, answer);
  assert.deepEqual(content, [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } },
    { type: 'text', text: 'File: c.txt\n```txt\nc\n```\n\nWhat?' }]);
  const markdown = wholeMarkdown(node);
  const { attachments, length } = readFiles(markdown);
  assert.deepEqual(attachments.map(({ name, data, text }) => [name, data ?? text]),
    [['a 1 .png', 'AAAA'], ['b.wav', 'BBBB'], ['c.txt', 'c\n']]);
  assert.equal(markdown.slice(length), 'What?');
  assert.deepEqual(readFiles('![x](data:text/html;base64,AAAA)\n\n').attachments, [], 'only what the page sends');
});

test('pictures are pasted, dropped and chosen, taken away, sent, answered and kept', async (t) => {
  const file = await folderOf(t, { 'photo.png': Buffer.from(pixel, 'base64'), 'voice.wav': wav, 'broken.png': '\x89PNG\r\n\x1a\nno picture' });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.until(() => /pictures/.test(document.querySelector('#attach').getAttribute('aria-label')));
  assert.equal(await give(tab, 'paste', pixel), true);
  await tab.page.waitForSelector('.tray .chip img.thumbnail');
  await give(tab, 'drop', pixel);
  await tab.page.waitForSelector('.tray .chip:nth-child(2)');
  assert.equal(await attach(tab, file('photo.png'), file('voice.wav')), '');
  assert.deepEqual(await chips(tab), ['image.png', 'image.png', 'photo.png', 'voice.wav']);
  assert.match(await attach(tab, file('broken.png')), /^broken.png is no picture/);
  await tab.page.focus('.tray li:nth-child(2) button');
  await tab.page.keyboard.press('Enter');
  assert.equal(await tab.page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Remove photo.png');
  assert.deepEqual(await tab.axeFaults(), []);

  const sent = tab.page.waitForRequest((request) => request.url().endsWith('/v1/chat/completions'));
  await tab.ask('say: a picture');
  const { messages } = JSON.parse((await sent).postData());
  assert.deepEqual(messages[0].content.map(({ type }) => type), ['image_url', 'image_url', 'input_audio', 'text']);
  assert.ok((await tab.messages())[1].length > 0, 'the server has answered');
  assert.equal(await tab.page.$('.message .fault'), null);
  const shown = () => tab.page.$$eval('.message.user .attachment', (list) => list.map((one) => one.innerText.split('\n')[0].trim()));
  assert.equal((await shown()).length, 3);
  await tab.page.focus('.attachment.picture summary');
  await tab.page.keyboard.press('Enter');
  await tab.until(() => document.querySelector('.attachment.picture[open] > img').naturalWidth === 1);
  assert.equal(await tab.page.$eval('.attachment.picture > img', (image) => image.alt), 'image.png');
  await tab.reload();
  assert.equal((await shown()).length, 3, 'the browser has kept them');
  await tab.ask('And now?');
  assert.equal(await tab.page.$('.message .fault'), null, 'they are sent again');
});

test('a photo is made as small as models read it', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const bytes = await tab.page.evaluate(async () => {
    const canvas = new OffscreenCanvas(4096, 1024);
    canvas.getContext('2d').fillRect(0, 0, 4096, 1024);
    const blob = await canvas.convertToBlob({ type: 'image/webp' });
    const reader = new FileReader();
    await new Promise((done) => { reader.onload = done; reader.readAsDataURL(blob); });
    return reader.result.split(',')[1];
  });
  const file = await folderOf(t, { 'wide.webp': Buffer.from(bytes, 'base64') });
  assert.equal(await attach(tab, file('wide.webp')), '');
  await tab.until(() => document.querySelector('.tray img')?.naturalWidth === 2048);
  const { width, height, png } = await tab.page.$eval('.tray img', (image) =>
    ({ width: image.naturalWidth, height: image.naturalHeight, png: image.src.startsWith('data:image/png;') }));
  assert.deepEqual({ width, height, png }, { width: 2048, height: 512, png: true });
});

test('exports keep pictures, as JSON and as Markdown; a phone shows them', async (t) => {
  const file = await folderOf(t, { 'photo.png': Buffer.from(pixel, 'base64') });
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server, { viewport: small });
  await tab.keepFiles();
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'An answer.' }])]);
  await attach(tab, file('photo.png'));
  await tab.ask('What is it?');
  const overflow = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${overflow} pixels too wide`);
  await tab.page.click('#save');
  await tab.page.click('#menu');
  await tab.page.click('#export');
  const [markdown, json] = await tab.keptFiles();
  assert.ok(markdown.includes(`![photo.png](data:image/png;base64,${pixel})`));
  const exported = await folderOf(t, { 'one.md': markdown, 'two.json': json });
  for (const name of ['one.md', 'two.json']) {
    await tab.page.$eval('#toast', (toast) => toast.replaceChildren());
    await (await tab.page.$('#import')).uploadFile(exported(name));
    await tab.until(() => document.querySelector('#toast').innerText !== '');
    assert.deepEqual(await tab.messages(), ['What is it?', 'An answer.'], name);
    assert.equal(await tab.page.$eval('.attachment.picture .thumbnail', (image) => image.src), `data:image/png;base64,${pixel}`);
  }
});
