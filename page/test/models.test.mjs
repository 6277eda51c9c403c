// A server of several models in a real browser: which one answers is chosen, kept and told.
import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { endless, streamChat } from '../../tests/e2e/client.mjs';
import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, eventsOf, openBrowser } from './browser.mjs';

const browser = await openBrowser(test);
const demo = path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf');

async function twoModels(t, flags = []) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'chasqui-models-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const name of ['alpha', 'beta']) await symlink(demo, path.join(folder, `${name}.gguf`));
  return start(t, [...sim, '--models-dir', folder, ...flags]);
}

const states = async (server) => {
  const { data } = await (await server.fetch('/v1/models')).json();
  return Object.fromEntries(data.map(({ id, status }) => [id, status.value]));
};

test('the model that answers is chosen from a menu, is loaded when it is asked, and stays chosen', async (t) => {
  const server = await twoModels(t);
  const tab = await Tab.open(t, browser, server);
  const asked = [];
  tab.page.on('request', (request) => {
    if (request.url().endsWith('/v1/chat/completions')) asked.push(JSON.parse(request.postData()).model);
  });
  const chosen = () => tab.page.$eval('#model', (select) => select.value);
  const options = () => tab.page.$$eval('#model option', (list) => list.map((one) => one.textContent));
  await tab.page.waitForSelector('.picker:not([hidden]) #model');
  assert.deepEqual(await options(), ['alpha', 'beta (unloaded)']);
  assert.match(await tab.text('.model'), /^alpha · \d+ slots/);
  await tab.ask('Who are you?');
  await tab.page.select('#model', 'beta');
  await tab.until(() => document.querySelector('.model').textContent === 'beta · is loaded when it is asked');
  assert.equal((await states(server)).beta, 'unloaded', 'choosing loads nothing');
  await tab.ask('And you?');
  assert.deepEqual(asked, ['alpha', 'beta']);
  assert.equal((await states(server)).beta, 'loaded');
  await tab.until(() => /^beta · \d+ slots/.test(document.querySelector('.model').textContent));
  assert.deepEqual(await options(), ['alpha', 'beta']);
  await tab.reload();
  await tab.until(() => document.querySelector('#model').value === 'beta');
  await tab.page.click('#new');
  assert.equal(await chosen(), 'beta', 'so does a new conversation');
  await tab.page.select('#model', 'alpha');
  await tab.ask('And you again?');
  await tab.page.click('.list li:not(.current) .open');
  await tab.until(() => document.querySelector('#model').value === 'beta');
  assert.deepEqual(asked, ['alpha', 'beta', 'alpha']);
});

test('sampling and the system prompt can be kept for one model', async (t) => {
  const server = await twoModels(t);
  const tab = await Tab.open(t, browser, server);
  const answers = ['a', 'b', 'c'].map((content) => eventsOf([{ content }]));
  const asked = await tab.answerWith('/v1/chat/completions', answers);
  await tab.page.waitForSelector('.picker:not([hidden]) #model');
  const own = async () => {
    await tab.page.click('#open-settings');
    await tab.page.click('#set-own');
    await tab.page.click('#settings button[type=submit]');
  };
  const values = async () => {
    await tab.page.click('#open-settings');
    const found = await tab.page.evaluate(() => ['own', 'temperature', 'system', 'stop'].map((name) => {
      const input = document.querySelector(`#set-${name}`);
      return name === 'own' ? input.checked : input.value;
    }));
    await tab.page.keyboard.press('Escape');
    return found;
  };
  const told = ({ model, temperature, stop, messages }) => [model, temperature, stop, messages[0].content];
  await tab.settle({ temperature: '0.5', system: 'For all.', stop: 'END' });
  await tab.page.select('#model', 'beta');
  await own();
  await tab.settle({ temperature: '0.9', system: 'For beta.', stop: '' });
  assert.deepEqual(await values(), [true, '0.9', 'For beta.', '']);
  await tab.page.click('#open-settings');
  await tab.page.focus('#set-own');
  await tab.shoot('wide-9-models');
  assert.deepEqual(await tab.axeFaults(), []);
  await tab.page.keyboard.press('Escape');
  await tab.ask('one');
  assert.deepEqual(told(asked[0]), ['beta', 0.9, undefined, 'For beta.']);
  await tab.page.click('#new');
  await tab.page.select('#model', 'alpha');
  assert.deepEqual(await values(), [false, '0.5', 'For all.', 'END']);
  await tab.ask('two');
  assert.deepEqual(told(asked[1]), ['alpha', 0.5, ['END'], 'For all.']);
  await tab.page.click('#new');
  await tab.page.select('#model', 'beta');
  await tab.reload();
  await tab.page.waitForSelector('.picker:not([hidden]) #model');
  await tab.page.click('#new');
  await tab.until(() => document.querySelector('#model').value === 'beta');
  await tab.ask('three');
  assert.deepEqual(told(asked[2]), ['beta', 0.9, undefined, 'For beta.'], 'it is kept, also for what is begun later');
  // Without the mark the fields show what holds for all, and that is what is saved.
  await own();
  assert.deepEqual(await values(), [false, '0.5', 'For all.', 'END']);
});

test('the batch is that of the chosen model', async (t) => {
  const server = await twoModels(t, ['--sim-step', '20']);
  const tab = await Tab.open(t, browser, server, { path: '/#batch' });
  await tab.page.waitForSelector('.picker:not([hidden]) #model');
  await tab.page.select('#model', 'beta');
  await tab.ask('What is a slot?');
  await tab.until(() => /^Step \d+|^\d/.test(document.querySelector('#batch .tile:nth-child(5) .value').textContent));
  // Models share the machine, so the list of who runs has those of all.
  const running = [];
  for (const model of ['alpha', 'beta']) {
    running.push(await streamChat(server, 'go on', { ...endless, model }));
    await running.at(-1).nextText();
  }
  await tab.until(() => document.querySelectorAll('.who tbody tr').length === 2);
  assert.deepEqual(await tab.texts('.who th'), ['Tenant', 'Model', 'Class', 'State', 'Age', 'Tokens']);
  assert.deepEqual((await tab.texts('.who td:nth-child(2)')).sort(), ['alpha', 'beta']);
  for (const stream of running) stream.leave();
});

test('a server of one model has no menu, and its requests name none', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.page.click('#open-settings');
  assert.equal(await tab.page.$('#set-own'), null, 'nor has it settings of its own');
  await tab.page.keyboard.press('Escape');
  let body;
  tab.page.on('request', (request) => { if (request.url().endsWith('/completions')) body = JSON.parse(request.postData()); });
  await tab.ask('What is a slot?');
  assert.equal(body.model, undefined);
  assert.equal(await tab.page.$eval('.picker', (label) => label.hidden), true);
});
