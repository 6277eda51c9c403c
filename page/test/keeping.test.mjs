// What the browser keeps, in a real one: of conversations that are deleted, that several tabs have open, that are larger
// than a file may be, and where there is no room.
import assert from 'node:assert/strict';
import test from 'node:test';

import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, endless, eventsOf, openBrowser } from './browser.mjs';

const browser = await openBrowser(test);
const names = '#side .open';

// Slowly, so that the server still has all of it that a second tab resumes.
async function streaming(t, options) {
  const server = await start(t, [...sim, '-np', '2', '-c', '400000', '--sim-step', '5']);
  const tab = await Tab.open(t, browser, server, options);
  await tab.settle({ more: endless });
  await tab.send('Never end.');
  await tab.until(() => document.querySelector('.message.assistant.streaming .text')?.textContent.length > 100);
  return { server, tab };
}

// Its text has come and nothing streams.
const shows = (tab, text) => tab.until((wanted) => document.querySelector('#log').innerText.includes(wanted) &&
  !document.querySelector('.streaming'), text);

// A click that needs no place on the screen, which a tab behind another has not.
const press = (tab, selector) => tab.page.$eval(selector, (button) => button.click());

test('a conversation that is deleted while its answer comes stays deleted', async (t) => {
  const { server, tab } = await streaming(t);
  await press(tab, '[aria-label^="Delete “Never end"]');
  await server.idle();
  await tab.written();
  await tab.reload();
  assert.deepEqual(await tab.texts(names), ['New conversation']);
});

test('… and comes back with what there was of its answer when that is undone', async (t) => {
  const { server, tab } = await streaming(t);
  await press(tab, '[aria-label^="Delete “Never end"]');
  await server.idle();
  await press(tab, '#toast button');
  await tab.written();
  await tab.reload();
  await tab.ended();
  assert.ok((await tab.messages())[1].length > 100);
  assert.equal(await tab.text('.message.assistant .end'), 'stopped');
});

test('two tabs write into one conversation, and no message is lost', async (t) => {
  const server = await start(t, sim);
  const one = await Tab.open(t, browser, server);
  await one.answerWith('/v1/chat/completions', ['first', 'third'].map((content) => eventsOf([{ content }])));
  await one.ask('Question 1');
  const two = await Tab.open(t, browser, server, { beside: one });
  await two.answerWith('/v1/chat/completions', [eventsOf([{ content: 'second' }])]);
  await two.ask('Question 2');
  await shows(one, 'second');
  await one.page.bringToFront();
  await one.ask('Question 3');
  await shows(two, 'third');
  const all = ['Question 1', 'first', 'Question 2', 'second', 'Question 3', 'third'];
  assert.deepEqual([await one.messages(), await two.messages()], [all, all]);
  await one.page.click('.message.assistant:last-child [aria-label^="Delete this message"]');
  await two.until(() => document.querySelectorAll('.message').length === 5);
  await one.page.click('#toast button');
  await shows(two, 'third');
  await two.reload();
  assert.deepEqual(await two.messages(), all);
});

test('a tab that was not told of the others writes nothing away', async (t) => {
  const server = await start(t, sim);
  const one = await Tab.open(t, browser, server);
  await one.answerWith('/v1/chat/completions', ['first', 'third'].map((content) => eventsOf([{ content }])));
  await one.ask('Question 1');
  const two = await Tab.open(t, browser, server, { beside: one });
  await one.page.evaluate(() => { BroadcastChannel.prototype.postMessage = () => {}; });
  await two.page.evaluate(() => { BroadcastChannel.prototype.postMessage = () => {}; });
  await two.answerWith('/v1/chat/completions', [eventsOf([{ content: 'second' }])]);
  await two.ask('Question 2');
  await one.page.bringToFront();
  await one.ask('Question 3');
  await one.reload();
  assert.deepEqual(await one.messages(), ['Question 1', 'first', 'Question 3', 'third']);
  await one.page.$$eval('[aria-label="Previous version"]', (buttons) => buttons.find((button) => !button.disabled).click());
  assert.deepEqual(await one.messages(), ['Question 1', 'first', 'Question 2', 'second']);
});

test('a conversation that one tab deletes leaves the others, and comes back there as well', async (t) => {
  const expectedFaults = [/404.*v1\/stream/]; // both read the stream and have it stopped, one of them too late
  const { server, tab: one } = await streaming(t, { expectedFaults });
  const two = await Tab.open(t, browser, server, { beside: one, expectedFaults });
  await press(two, '[aria-label^="Delete “Never end"]');
  await one.until(() => !document.querySelector('.message'));
  assert.match(await one.text('#toast'), /deleted in another tab/);
  await server.idle();
  assert.deepEqual(await one.texts(names), ['New conversation']);
  await press(two, '#toast button');
  await one.until(() => document.querySelector('#side').innerText.includes('Never end.'));
  await one.reload();
  assert.ok((await one.texts(names)).includes('Never end.'));
});

test('conversations that fill several files are exported and imported, one with large pictures as well', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.ask('say: hello');
  // As the page keeps it: a chain of messages, each with a picture.
  await tab.page.evaluate(() => new Promise((done) => {
    const nodes = {};
    const chosen = {};
    const data = 'A'.repeat(16 * 1024 * 1024);
    for (let i = 0; i < 5; ++i) {
      const [id, parent] = [`n${i}`, i ? `n${i - 1}` : ''];
      nodes[id] = { id, parent, at: 1, role: 'user', content: `picture ${i}`, reasoning: '', tool_calls: [], state: 'done',
        attachments: [{ name: 'p.png', size: 12 * 1024 * 1024, type: 'image/png', data }] };
      chosen[parent] = id;
    }
    indexedDB.open('chasqui').onsuccess = ({ target: { result } }) => {
      const transaction = result.transaction('conversations', 'readwrite');
      const [created, updated] = [Date.now(), Date.now() + 1000];
      transaction.objectStore('conversations').put({ id: 'large', title: 'Pictures', system: '', created, updated, nodes, chosen });
      transaction.oncomplete = done;
    };
  }));
  await tab.reload();
  await tab.keepFiles();
  await press(tab, '#export');
  const sizes = await tab.page.evaluate(() => window.files.map(({ size }) => size));
  assert.ok(sizes.every((size) => size <= 64 * 1024 * 1024), `${sizes}`);
  assert.match(await tab.text('#toast'), new RegExp(`in ${sizes.length} files`));
  await tab.page.$eval('#import', (input) => {
    const files = new DataTransfer();
    window.files.forEach((file, i) => files.items.add(new File([file], `${i}.json`)));
    input.files = files.files;
    input.dispatchEvent(new Event('change'));
  });
  await tab.until(() => document.querySelector('#toast').innerText.includes('imported'));
  assert.equal(await tab.text('#toast'), '2 conversations are imported.');
  assert.deepEqual((await tab.texts(names)).sort(), ['Pictures', 'Pictures', 'say: hello', 'say: hello']);
  const pictures = Array.from({ length: 5 }, (_, i) => `picture ${i}`);
  for (const which of [0, 1]) {
    await tab.page.$$eval(names, (list, i) => list.filter((one) => one.innerText === 'Pictures').at(i).click(), which);
    assert.deepEqual(await tab.messages(), pictures);
    assert.equal(await tab.page.$$eval('.attachment.picture', (list) => list.length), 5);
  }
});

test('who writes is told once when the browser keeps nothing, and it is kept when there is room again', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const faults = () => tab.page.$eval('#warning', (element) => element.innerText);
  await tab.ask('say: kept');
  await tab.page.evaluate(() => {
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function refuse(...values) {
      const request = put.apply(this, values);
      if (window.full) this.transaction.abort();
      return request;
    };
    window.full = true;
  });
  await tab.ask('say: lost');
  assert.match(await faults(), /cannot keep new messages.*Export/s);
  assert.deepEqual(await tab.axeFaults(), []);
  await tab.page.click('#warning button');
  await tab.ask('say: more');
  assert.equal(await faults(), '');
  await tab.page.evaluate(() => { window.full = false; });
  await tab.ask('say: again');
  await tab.reload();
  assert.deepEqual(await tab.texts('.message.user .text'), ['say: kept', 'say: lost', 'say: more', 'say: again']);
});

test('a browser without a store says so when something is to be kept', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.page.evaluateOnNewDocument(() => { indexedDB.open = () => { throw new Error('refused'); }; });
  await tab.reload();
  assert.equal(await tab.text('#warning'), '');
  await tab.ask('say: hello');
  assert.match(await tab.text('#warning'), /refuses to store/);
});
