// Daily use in a real browser: wide tables and code, the key dialog with the keyboard alone.
import assert from 'node:assert/strict';
import test from 'node:test';

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
      return { broken, table: scrolls('.text .table'), code: scrolls('.text pre'),
        page: document.querySelector('#log').scrollWidth - document.querySelector('#log').clientWidth,
        font: parseFloat(getComputedStyle(document.querySelector('.text pre code')).fontSize) };
    });
    assert.deepEqual(seen.broken, []);
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
  await tab.send('once more');
  await tab.page.waitForSelector('#key-dialog[open]');
  await keyboard.type('the-right-one');
  await keyboard.press('Enter');
  await tab.until(() => document.querySelector('.message.assistant:last-child:not(.streaming) .figures')?.innerText);
  assert.equal(await focused(), 'prompt');
  assert.deepEqual((await tab.texts('.message.user .text')), ['let me in', 'once more'], 'the key is no message');
});

test('20 reloads in the middle of 20 answers end with the complete answers', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '16000', '--sim-step', '4']);
  const tab = await Tab.open(t, browser, server);
  await tab.settle({ more: JSON.stringify({ temperature: 0, max_tokens: 300, ignore_eos: true }) });
  for (let i = 0; i < 20; ++i) {
    const prompt = `Question ${i}`;
    const messages = [{ role: 'user', content: prompt }];
    const response = await server.fetch('/v1/chat/completions', { method: 'POST',
      body: JSON.stringify({ messages, temperature: 0, max_tokens: 300, ignore_eos: true }) });
    const whole = (await response.json()).choices[0].message.content;
    await tab.page.click('#new');
    await tab.send(prompt);
    await tab.until((least) => document.querySelector('.message.assistant.streaming .text')?.textContent.length > least, 1 + i * 20);
    await tab.reload();
    await tab.ended();
    const shown = await tab.page.$eval('.message.assistant .text', (element) => element.textContent);
    const plain = (text) => text.replace(/\W+/g, '');
    assert.equal(plain(shown), plain(whole), `answer ${i}`);
    assert.match(await tab.text('.message.assistant .figures'), /^300 tokens/);
  }
  assert.ok((await server.metrics()).value('chasqui_kept_streams_resumed_total') >= 18, 'reloads came in the middle');
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
