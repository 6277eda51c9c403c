// Daily use in a real browser: wide tables and code, the key dialog, reloads, messages and conversations as files.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { answer } from '../../tests/e2e/client.mjs';
import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, eventsOf, openBrowser, small, wide } from './browser.mjs';

const browser = await openBrowser(test);

const names = ['throughput_tokens_per_second', 'interactive', 'acknowledgement', 'configuration', 'synchronisation',
  'infrastructure', 'characteristics', 'misunderstanding'];
const tables = `| ${names.join(' | ')} |
|${names.map(() => '---').join('|')}|
| ${names.map((name) => `the ${name} of it`).join(' | ')} |

\`\`\`cpp
const std::string line = "${'a line of code that is longer than any screen '.repeat(6)}";
\`\`\`
`;

for (const [size, viewport] of Object.entries({ wide, small })) {
  test(`${size}: words of a table stay whole, wide tables and long lines of code scroll by themselves`, async (t) => {
    const server = await start(t, sim);
    const tab = await Tab.open(t, browser, server, { viewport });
    await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: tables }])]);
    await tab.ask('Show me a table.');
    await tab.shoot(`${size}-8-table`);
    const seen = await tab.page.evaluate(() => {
      // A word in several lines has several rectangles.
      const broken = [];
      const walker = document.createTreeWalker(document.querySelector('.text table'), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        for (const { index, 0: word } of walker.currentNode.data.matchAll(/\S+/g)) {
          const range = document.createRange();
          range.setStart(walker.currentNode, index);
          range.setEnd(walker.currentNode, index + word.length);
          if (range.getClientRects().length > 1) broken.push(word);
        }
      }
      const scrolls = (selector) => {
        const box = document.querySelector(selector);
        return box.scrollWidth > box.clientWidth;
      };
      const line = getComputedStyle(document.querySelector('.text td')).borderTopWidth;
      return { broken, line, table: scrolls('.text .table'), code: scrolls('.text pre'),
        page: document.querySelector('#log').scrollWidth - document.querySelector('#log').clientWidth,
        font: parseFloat(getComputedStyle(document.querySelector('.text pre code')).fontSize) };
    });
    assert.deepEqual(seen.broken, []);
    assert.equal(seen.line, '1px', 'cells have lines');
    assert.ok(seen.table && seen.code, JSON.stringify(seen));
    assert.ok(seen.page <= 0, `the conversation is ${seen.page} pixels too wide`);
    assert.ok(seen.font >= 14, `code has ${seen.font} pixels`);
  });
}

test('the key dialog takes the key from the keyboard alone, and gives the focus back', async (t) => {
  const server = await start(t, [...sim, '--api-key', 'the-right-one']);
  server.key = 'the-right-one';
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/401/] });
  const { keyboard } = tab.page;
  const focused = () => tab.page.evaluate(() => document.activeElement.id);
  await tab.send('let me in');
  await tab.page.waitForSelector('#key-dialog[open]');
  assert.equal(await focused(), 'key');
  for (const back of [false, true]) {
    for (let i = 0; i < 6; ++i) {
      if (back) await keyboard.down('Shift');
      await keyboard.press('Tab');
      if (back) await keyboard.up('Shift');
      assert.ok(await tab.page.evaluate(() => document.activeElement.closest('#key-dialog') !== null), 'the focus has left');
    }
  }
  await keyboard.press('Escape');
  await tab.page.waitForSelector('#key-dialog', { hidden: true });
  await tab.ended();
  assert.equal(await focused(), 'prompt');
  await tab.reload();
  await tab.send('once more');
  await tab.page.waitForSelector('#key-dialog[open]');
  await keyboard.type('the-right-one');
  await keyboard.press('Enter');
  await tab.until(() => document.querySelector('.message.assistant:last-child:not(.streaming) .figures')?.innerText);
  assert.equal(await focused(), 'prompt');
  assert.deepEqual((await tab.texts('.message.user .text')), ['let me in', 'once more'], 'the key is no message');
});

test('20 reloads in the middle of 20 answers end with the complete answers', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '16000', '--sim-step', '10']);
  const tab = await Tab.open(t, browser, server);
  await tab.settle({ more: JSON.stringify({ temperature: 0, max_tokens: 300, ignore_eos: true }) });
  for (let i = 0; i < 20; ++i) {
    const prompt = `Question ${i}`;
    const other = answer(server, prompt, { max_tokens: 300, ignore_eos: true }); // at the same time as the page's
    await tab.page.click('#new');
    await tab.send(prompt);
    await tab.until((least) =>
      document.querySelector('.message.assistant .text')?.textContent.length > least, 1 + i * 20);
    await tab.reload();
    await tab.ended();
    const shown = await tab.page.$eval('.message.assistant .text', (element) => element.textContent);
    const plain = (text) => text.replace(/\W+/g, '');
    assert.equal(plain(shown), plain((await other).text), `answer ${i}`);
    assert.match(await tab.text('.message.assistant .figures'), /^300 tokens/);
  }
  const resumed = (await server.metrics()).value('chasqui_kept_streams_resumed_total');
  assert.ok(resumed >= 18, `reloads came in the middle of ${resumed} answers`);
});

test('an answer that the server does not keep says that it was cut off', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '400000', '--resume-streams', '0']);
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/503/] });
  await tab.settle({ more: '{"ignore_eos": true, "max_tokens": 1000000}' });
  await tab.send('Never end.');
  await tab.until(() => document.querySelector('.message.assistant.streaming .text')?.textContent.length > 200);
  await tab.reload();
  await tab.ended();
  await server.idle();
  assert.equal(await tab.text('.message.assistant:last-child .end'), 'stopped');
  assert.match(await tab.text('.message .fault'), /cut off/);
});

test('an answer that was stopped goes on, messages are deleted and brought back', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '400000']);
  const tab = await Tab.open(t, browser, server);
  const asked = await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'One, two, ' }], 'length'),
    eventsOf([{ content: 'three.' }])]);
  await tab.ask('Count.');
  assert.equal(await tab.text('.message.assistant .end'), 'the longest answer was reached');
  await tab.page.click('.message.assistant [aria-label="Continue"]');
  await tab.until(() => document.querySelector('.message.assistant .text')?.innerText.trim() === 'One, two, three.');
  await tab.ended();
  assert.deepEqual(asked[1].messages, [{ role: 'user', content: 'Count.' }, { role: 'assistant', content: 'One, two, ' }]);
  assert.equal(await tab.page.$('.message.assistant [aria-label="Continue"]'), null, 'it has ended');

  await tab.page.click('.message.assistant [aria-label^="Delete this message"]');
  assert.deepEqual(await tab.messages(), ['Count.']);
  await tab.page.click('#toast button');
  assert.deepEqual(await tab.messages(), ['Count.', 'One, two, three.']);
  await tab.page.$eval('.message.user [aria-label^="Delete this message"]', (button) => button.click());
  assert.deepEqual(await tab.messages(), []);
  await tab.ask('Another beginning');
  assert.equal((await tab.messages())[0], 'Another beginning');
});

test('the context gauge says how much of a slot the conversation fills', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '2048']);
  const tab = await Tab.open(t, browser, server);
  assert.equal(await tab.page.$eval('#context', (gauge) => gauge.hidden), true, 'nothing is known yet');
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'a' }, { content: 'b' }])]);
  await tab.ask('How full is it?');
  assert.equal(await tab.text('#context'), '22 of 1,024 tokens');
  assert.equal(await tab.page.$eval('#context', (gauge) => gauge.getAttribute('aria-valuenow')), '22');
  await tab.page.setViewport(small);
  const { track, fill } = await tab.page.$eval('#context', (gauge) => ({ track: gauge.querySelector('.track').clientWidth,
    fill: gauge.querySelector('.fill').getBoundingClientRect().width }));
  assert.ok(Math.abs(fill / track - 22 / 1024) < 0.01 && fill > 0, `on phones, too: ${fill} of ${track} pixels`);
});

test('the title stays readable beside the batch view', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '2048']);
  const tab = await Tab.open(t, browser, server, { viewport: { width: 1280, height: 800 } });
  await tab.ask('How full is it?');
  await tab.page.click('#watch');
  await tab.page.waitForSelector('body.watching');
  const { shown, needed } = await tab.page.$eval('#chat h1', (title) => ({ shown: title.clientWidth, needed: title.scrollWidth }));
  assert.ok(shown >= needed, `${shown} of ${needed} pixels`);
});

test('conversations can be searched', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'Llamas carry it.' }]), eventsOf([{ content: 'Runners do.' }])]);
  await tab.ask('Who carries wool?');
  await tab.page.click('#new');
  await tab.ask('Who carries messages?');
  await tab.page.type('#search', 'LLAMAS wool');
  assert.deepEqual(await tab.texts('#side .open'), ['Who carries wool?']);
  await tab.page.click('#side .open');
  assert.equal((await tab.messages())[1], 'Llamas carry it.');
  await tab.page.type('#search', ' nothing');
  assert.deepEqual(await tab.texts('#side .open'), []);
  await tab.page.keyboard.press('Escape');
  assert.equal((await tab.texts('#side .open')).length, 2);
});

test('conversations are exported and imported, as JSON and as Markdown', async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'chasqui-page-'));
  t.after(() => rm(folder, { recursive: true }));
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.keepFiles();
  const answer = '## Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\n<b>1</b>\n```';
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: answer }]), eventsOf([{ content: 'Again.' }])]);
  await tab.settle({ system: 'Be brief.' });
  await tab.ask('What is it?');
  await tab.page.click('.message.assistant [aria-label="Try again"]');
  await tab.until(() => document.querySelector('.message.assistant .text')?.innerText.trim() === 'Again.');
  await tab.ended();
  await tab.page.$eval('.message.assistant [aria-label="Previous version"]', (button) => button.click());
  const shown = await tab.messages();
  await tab.page.click('#save');
  await tab.page.click('#export');
  const [markdown, json] = await tab.keptFiles();
  assert.match(markdown, /^# What is it\?\n/);
  assert.ok(markdown.includes(answer));

  const evil = structuredClone(JSON.parse(json));
  evil.conversations[0].nodes.x = { id: 'x', parent: 'x', role: 'user', content: 'in a circle' };
  evil.conversations[0].nodes.y = { id: 'y', parent: 'nowhere', role: 'system', content: 7 };
  const files = { 'one.md': markdown, 'two.json': json, 'evil.json': JSON.stringify(evil), 'no.json': '{"a":', 'other.json': '[]' };
  const input = await tab.page.$('#import');
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name);
    await writeFile(file, text);
    await tab.page.$eval('#toast', (toast) => toast.replaceChildren());
    await input.uploadFile(file);
    await tab.until(() => document.querySelector('#toast').innerText !== '');
    const said = await tab.text('#toast');
    if (name.startsWith('no')) assert.match(said, /not JSON/);
    else if (name.startsWith('other')) assert.match(said, /holds no conversation/);
    else assert.deepEqual([said, await tab.messages()], ['One conversation is imported.', shown], name);
  }
  assert.equal(await tab.text('.message.assistant .branches'), '1 of 2', 'JSON has all versions');
  await tab.reload();
  assert.deepEqual(await tab.messages(), shown, 'they are kept');
  assert.equal((await tab.texts('#side .open')).length, 4);
});
