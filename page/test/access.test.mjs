// What is seldom on the screen is accessible, too; and all that can be done with messages and conversations can be done
// with the keyboard alone, by buttons that one sees.
import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { streamChat } from '../../tests/e2e/client.mjs';
import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, eventsOf, openBrowser, small, wide } from './browser.mjs';
import { talk } from './conversations.mjs';

const browser = await openBrowser(test);
const demo = path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf');

// On small screens the list is a menu.
async function openSide(tab) {
  if (await tab.page.$('body.side-shut')) await tab.page.click('#menu');
}

for (const [size, viewport] of Object.entries({ wide, small })) {
  test(`${size}: axe finds nothing in what is shown while a message or a conversation is changed`, async (t) => {
    const server = await start(t, sim);
    const tab = await Tab.open(t, browser, server, { viewport, expectedFaults: [/503/] });
    const full = JSON.stringify({ error: { code: 503, message: 'too many requests are waiting', type: 'unavailable_error', param: null } });
    await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'Runners do.' }]),
      { status: 503, body: full, headers: { 'retry-after': '7' } }]);
    await tab.ask('Who carries messages?');
    await tab.page.hover('.message.user');
    await tab.page.click('.message.user [aria-label="Edit"]');
    await tab.check(`${size}-11-edit`);
    await tab.page.keyboard.press('Escape');
    await tab.ask('How fast?');
    await tab.page.waitForSelector('.message .fault');
    await tab.check(`${size}-11-fault`);
    await openSide(tab);
    await tab.page.$eval('[aria-label^="Rename"]', (button) => button.click());
    await tab.page.waitForSelector('#side li input');
    await tab.check(`${size}-11-rename`);
    await tab.page.keyboard.press('Escape');
    await tab.page.type('#search', 'no such words');
    await tab.until(() => document.querySelector('.list').innerText === 'No conversation has these words.');
    await tab.check(`${size}-11-search`);
    await tab.page.keyboard.press('Escape');
    await tab.page.$eval('[aria-label^="Delete “"]', (button) => button.click());
    await tab.page.waitForSelector('#toast button');
    assert.ok(await tab.page.$eval('#toast span', (span) => span.clientHeight) < 40, 'its few words stand in one line');
    await tab.check(`${size}-11-toast`);
  });

  test(`${size}: axe finds nothing in the key dialog, nor in that after a wrong key`, async (t) => {
    const server = await start(t, [...sim, '--api-key', 'the-right-one']);
    server.key = 'the-right-one';
    const tab = await Tab.open(t, browser, server, { viewport, expectedFaults: [/401/] });
    await tab.send('let me in');
    await tab.page.waitForSelector('#key-dialog[open]');
    await tab.check(`${size}-12-key`);
    await tab.page.type('#key', 'a-wrong-one');
    await tab.page.keyboard.press('Enter');
    await tab.page.waitForSelector('#key-dialog .fault');
    await tab.check(`${size}-12-wrong-key`);
  });

  test(`${size}: axe finds nothing in the menu with several models`, async (t) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'chasqui-models-'));
    t.after(() => rm(folder, { recursive: true }));
    for (const name of ['alpha', 'beta']) await symlink(demo, path.join(folder, `${name}.gguf`));
    const server = await start(t, [...sim, '--models-dir', folder]);
    const tab = await Tab.open(t, browser, server, { viewport });
    await openSide(tab);
    await tab.page.waitForSelector('.picker:not([hidden]) #model');
    await tab.page.focus('#model');
    await tab.check(`${size}-13-models`);
  });

  test(`${size}: axe finds nothing in the batch view that is held`, async (t) => {
    const server = await start(t, [...sim, '-np', '1', '-c', '8192', '--sim-step', '10']);
    const tab = await Tab.open(t, browser, server, { viewport });
    await tab.page.click('#watch');
    const streams = [];
    for (let i = 0; i < 3; ++i) streams.push(await streamChat(server, `Stream ${i}`, { max_tokens: 4000, ignore_eos: true }));
    await streams[0].nextText();
    await tab.until(() => document.querySelectorAll('.who tbody tr').length === 3);
    // Requests and steps come by themselves; a picture without steps has none to hold.
    await tab.until(() => / [1-9]\d* steps,/.test(document.querySelector('.charts canvas').ariaLabel));
    await tab.page.focus('.charts');
    await tab.page.keyboard.press('Home');
    await tab.page.waitForSelector('#pause[aria-pressed="true"]');
    await tab.check(`${size}-14-held`);
    await tab.page.$eval('.panel', (panel) => { panel.scrollTop = panel.scrollHeight; });
    await tab.check(`${size}-14-who`);
    for (const stream of streams) stream.leave();
  });
}

// Presses Tab, or Shift and Tab, until this has the focus; it is seen then.
async function reach(tab, selector, back = false) {
  const { keyboard } = tab.page;
  const there = () => tab.page.evaluate((wanted) => document.activeElement.matches(wanted), selector);
  for (let i = 0; !await there(); ++i) {
    assert.ok(i < 150, `Tab does not come to ${selector}`);
    if (back) await keyboard.down('Shift');
    await keyboard.press('Tab');
    if (back) await keyboard.up('Shift');
  }
  await tab.page.waitForFunction(() => { // it may fade in
    const { activeElement: focused } = document;
    let opacity = 1;
    for (let element = focused; element; element = element.parentElement) opacity *= getComputedStyle(element).opacity;
    const box = focused.getBoundingClientRect();
    const x = box.left + box.width / 2;
    const y = box.top + box.height / 2;
    const inView = box.width >= 12 && box.height >= 12 && x > 0 && x < innerWidth && y > 0 && y < innerHeight;
    return opacity === 1 && inView && focused.contains(document.elementFromPoint(x, y)) &&
      getComputedStyle(focused).outlineStyle !== 'none';
  }).catch(() => assert.fail(`one does not see that ${selector} has the focus`));
}

async function press(tab, selector, back) {
  await reach(tab, selector, back);
  await tab.page.keyboard.press('Enter');
}

test('messages are copied, asked again, edited, deleted and brought back with the keyboard alone', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.page.browserContext().overridePermissions(server.url, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
  const asked = await tab.answerWith('/v1/chat/completions', ['first', 'second', 'third'].map((content) => eventsOf([{ content }])));
  const shows = async (...texts) => {
    await tab.until((wanted) => [...document.querySelectorAll('.message .text')].map((one) => one.innerText.trim()).join() === wanted &&
      !document.querySelector('.streaming'), texts.join());
  };
  await tab.ask('one');
  await shows('one', 'first');
  const answer = '.message.assistant footer';
  await press(tab, `${answer} [aria-label="Copy"]`, true);
  assert.equal(await tab.page.evaluate(() => navigator.clipboard.readText()), 'first');
  await press(tab, `${answer} [aria-label="Try again"]`);
  await shows('one', 'second');
  await press(tab, '.message.user footer [aria-label="Edit"]');
  await tab.page.keyboard.press('End');
  await tab.page.keyboard.type(' and two');
  await press(tab, '.editing .primary');
  await shows('one and two', 'third');
  assert.equal(asked[2].messages[0].content, 'one and two');
  await press(tab, `${answer} [aria-label^="Delete this message"]`);
  await shows('one and two');
  await press(tab, '#toast button');
  await shows('one and two', 'third');
});

test('conversations are renamed, found, deleted, brought back and saved, and colours chosen, with the keyboard alone', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const list = (...names) => tab.until((wanted) =>
    [...document.querySelectorAll('#side .open')].map((one) => one.innerText.trim()).join() === wanted, names.join());
  await tab.answerWith('/v1/chat/completions', ['Llamas do.', 'Runners do.'].map((content) => eventsOf([{ content }])));
  await tab.keepFiles();
  await tab.ask('Who carries wool?');
  await press(tab, '#new', true);
  await tab.ask('Who carries messages?');
  await press(tab, '#side li.current [aria-label^="Rename"]', true);
  await tab.page.keyboard.type('Runners');
  await tab.page.keyboard.press('Enter');
  await list('Runners', 'Who carries wool?');
  await reach(tab, '#search');
  await tab.page.keyboard.type('llamas');
  await list('Who carries wool?');
  await press(tab, '#side .open');
  assert.equal((await tab.messages())[1], 'Llamas do.');
  await reach(tab, '#search', true);
  await tab.page.keyboard.press('Escape');
  await list('Runners', 'Who carries wool?');
  await press(tab, '#side [aria-label="Delete “Runners”"]');
  await list('Who carries wool?');
  await press(tab, '#toast button');
  await tab.until(() => document.querySelectorAll('#side .open').length === 2);
  await press(tab, '#export', true);
  await press(tab, '#save');
  const [json, markdown] = await tab.keptFiles();
  assert.equal(JSON.parse(json).conversations.length, 2);
  assert.match(markdown, /^# Runners\n/);
  await press(tab, '#theme');
  assert.equal(await tab.page.evaluate(() => document.documentElement.dataset.theme), 'dark');
});

test('one comes to the end of a long conversation with the keyboard alone', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.store(talk(5));
  await tab.page.goto(server.url);
  await tab.page.waitForSelector('body.ready');
  const fromEnd = () => tab.page.$eval('#log', (log) => Math.round(log.scrollHeight - log.scrollTop - log.clientHeight));
  await reach(tab, '#log', true);
  await tab.page.keyboard.press('Home');
  await tab.page.waitForFunction(() => document.querySelector('#log').scrollTop === 0);
  assert.ok(await fromEnd() > 100);
  await tab.page.focus('#prompt');
  await press(tab, '#jump', true);
  await tab.frames();
  assert.equal(await fromEnd(), 0);
});
