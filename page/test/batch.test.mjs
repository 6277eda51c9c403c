// The view of the batch in a real browser: one sees a prompt being read in chunks while streams go on.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { endless, streamChat, user } from '../../tests/e2e/client.mjs';
import { demo, run, sim, start } from '../../tests/e2e/server.mjs';
import { Tab, openBrowser } from './browser.mjs';

const browser = await openBrowser(test);

// Walks over the steps with the keyboard, from the newest back, and reads what the page says of each.
async function walk(tab, count) {
  await tab.page.focus('.charts');
  await tab.page.keyboard.press('End');
  const words = [await tab.text('#step')];
  for (let i = 1; i < count; ++i) {
    await tab.page.keyboard.press('ArrowLeft');
    words.unshift(await tab.text('#step'));
  }
  return words.filter((text, i) => text !== words[i - 1]);
}

// How many points of a chart have the colour of this variable.
function points(tab, variable) {
  return tab.page.$eval('#batch canvas', (canvas, name) => {
    const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
    const pen = copy.getContext('2d', { willReadFrequently: true });
    pen.fillStyle = getComputedStyle(canvas).getPropertyValue(name).trim();
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
    pen.clearRect(0, 0, 1, 1);
    pen.drawImage(canvas, 0, 0);
    const { data } = pen.getImageData(0, 0, copy.width, copy.height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) ++found;
    return found;
  }, variable);
}

test('a prompt is read in chunks while streams go on, and the page shows it', async (t) => {
  // Steps that take as long as those of a model: those that only decode do not push the chunks out of what is kept.
  const flags = ['-np', '4', '-c', '8192', '-b', '256', '--sim-step', '10', '--itl-target', '40,100,100'];
  const server = await start(t, [...sim, ...flags]);
  const tab = await Tab.open(t, browser, server);
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.state').dataset.state === 'live');
  const streams = [];
  for (let i = 0; i < 2; ++i) {
    const stream = await streamChat(server, `Stream ${i}`, { ...endless, max_tokens: 1500, priority: 'interactive' });
    await stream.nextText();
    streams.push(stream);
  }
  const prompt = user('A long prompt that is read in chunks. '.repeat(60));
  await (await streamChat(server, prompt, { max_tokens: 1, priority: 'background' })).collect();
  for (const stream of streams) stream.leave();
  await server.idle();
  const kept = Math.min(600, (await server.metrics()).sum('chasqui_steps_total')); // see steps.js
  await tab.until((count) =>
    / (\d+) steps,/.exec(document.querySelector('.charts canvas').ariaLabel)?.[1] >= count, kept);
  await tab.page.focus('.charts');
  await tab.page.keyboard.press('Space');
  await tab.page.waitForSelector('#pause[aria-pressed="true"]');
  const words = await walk(tab, kept);

  const chunks = words.map((text) => Number(/(\d+) background prompt rows/.exec(text)?.[1] ?? 0));
  const reads = words.flatMap((text, i) => (/reads prompts/.test(text) && chunks[i] > 0 ? [i] : []));
  assert.ok(reads.length >= 2, `more than one chunk:\n${words.join('\n')}`);
  const between = words.slice(reads[0], reads.at(-1)).filter((text) => /2 interactive streams/.test(text));
  assert.ok(between.length >= 1, `streams go on between the chunks:\n${words.join('\n')}`);
  assert.ok(words.some((text) => /a token [\d.]+ ms after the last one, target 40 ms/.test(text)), words.join('\n'));
  // The picture has the first chunk and what came after it.
  await tab.page.keyboard.press('End');
  for (let i = words.length - 1; i > reads[0]; --i) await tab.page.keyboard.press('ArrowLeft');
  assert.equal(await tab.text('#step'), words[reads[0]]);
  await tab.frames(2);
  await tab.shoot('batch-chunks-light');
  for (const variable of ['--interactive', '--background', '--prefill', '--target']) {
    assert.ok(await points(tab, variable) > 20, `${variable} is in the picture`);
  }
});

test('all steps that are held can be walked through, not only those in view', async (t) => {
  const server = await start(t, [...sim, '-np', '1', '-c', '8192']);
  const tab = await Tab.open(t, browser, server);
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.state').dataset.state === 'live');
  const decode = async () => (await streamChat(server, 'go on', { max_tokens: 800, ignore_eos: true })).collect();
  await decode();
  await tab.until(() => document.querySelector('#batch canvas').ariaLabel.includes(' 600 steps'));
  const box = await tab.page.$eval('#batch canvas', (canvas) => canvas.getBoundingClientRect().toJSON());
  const fits = Math.floor((box.width - 54) / 7); // columns, see batch_canvas.js
  const number = async () => Number(/^Step (\d+) /.exec(await tab.text('#step'))[1]);
  const press = async (key) => {
    await tab.page.keyboard.press(key);
    return number();
  };
  // What is drawn at the left end, once the picture has been drawn anew.
  const leftmost = async () => {
    await tab.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    await tab.page.mouse.move(box.x + box.width - 10 - 7 * fits + 3, box.y + 40);
    await tab.page.mouse.move(box.x + box.width - 10 - 7 * fits + 2, box.y + 40);
    return number();
  };
  await tab.page.focus('.charts');
  await tab.page.keyboard.press('Space');
  await tab.page.waitForSelector('#pause[aria-pressed="true"]');
  const last = await press('End');
  const first = await press('Home');
  assert.equal(last - first, 599, 'all that are held');
  assert.ok(last - first > fits, `more than one screen of ${fits}`);
  assert.equal(await leftmost(), first, 'the picture has moved to it');
  assert.equal(await press('PageDown'), first + fits);
  assert.equal(await press('ArrowRight'), first + fits + 1);
  await press('End');
  assert.equal(await leftmost(), last - fits + 1);
  await tab.page.mouse.wheel({ deltaY: -100 });
  const wheeled = await leftmost();
  assert.equal(wheeled, last - fits + 1 - Math.ceil(fits / 8));
  await tab.page.mouse.wheel({ deltaY: 100 });
  assert.equal(await leftmost(), last - fits + 1);
  await tab.page.mouse.move(0, 0);
  await decode();
  assert.equal(await press('Home'), first, 'what is held stays');
  await tab.page.keyboard.press('Space');
  await tab.page.waitForSelector('#pause[aria-pressed="false"]');
  assert.ok(await press('End') > last, 'live again, from the newest on');
});

test('figures follow the server: slots, queue by class, cells, cache hits', async (t) => {
  const server = await start(t, [...sim, '-np', '1', '-c', '400000', '-b', '512', '--sim-step', '10']);
  const tab = await Tab.open(t, browser, server);
  await tab.page.click('#watch');
  const tile = (n) => tab.text(`.tile:nth-child(${n}) .value`);
  const note = (n) => tab.text(`.tile:nth-child(${n}) .note`);
  const shared = user('the same beginning '.repeat(200));
  await (await streamChat(server, shared, { max_tokens: 2 })).collect();
  await (await streamChat(server, shared, { max_tokens: 2 })).collect();
  await tab.until(() => /^[1-9]\d* %$/.test(document.querySelector('.tile:nth-child(6) .value').textContent));
  const running = await streamChat(server, 'run', endless);
  await running.nextText();
  const waiting = [];
  for (const priority of ['standard', 'background', 'background']) {
    waiting.push(await streamChat(server, 'wait', { ...endless, priority }));
  }
  await tab.until(() => document.querySelector('.tile:nth-child(3) .note').textContent === '1 standard, 2 background');
  assert.equal(await tile(3), '3');
  assert.equal(await tile(2), '1 of 1');
  assert.match(await note(4), /^[\d,]+ of 400,000$/);
  for (const stream of [...waiting, running]) stream.leave();
  await server.idle();
});

const rows = (tab) => tab.page.$$eval('.who tbody tr', (list) => list.map((row) => [...row.cells].map((cell) => cell.textContent)));

test('who runs and who waits is listed: as many as fit, those that wait among them', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, 'keys'), 'k-alice name=alice\nk-bob name=bob class=background\nk-root name=root admin=yes\n');
  const server = await start(t, [...sim, '-np', '2', '-c', '400000', '--sim-step', '20', '--api-key-file', path.join(folder, 'keys')]);
  const as = (key) => {
    const other = Object.create(server);
    other.fetch = (target, options) => server.fetch(target, { ...options, headers: { ...options?.headers, authorization: `Bearer ${key}` } });
    return other;
  };
  server.key = 'k-root';
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/40[13]/] });
  await tab.settle({ key: 'k-root' });
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.who .hint')?.textContent === 'No request runs or waits.');
  const asked = [await streamChat(as('k-alice'), 'one', endless), await streamChat(as('k-alice'), 'two', endless)];
  for (const stream of asked) await stream.nextText();
  asked.push(await streamChat(as('k-bob'), user('a long prompt '.repeat(40)), endless));
  await tab.until(() => document.querySelectorAll('.who tbody tr').length === 3);
  const [first, second, third] = await rows(tab);
  for (const [tenant, name, state, age, tokens] of [first, second]) {
    assert.deepEqual([tenant, name, state], ['alice', 'standard', 'writing']);
    assert.match(age, /^[\d.]+ (s|min)$/);
    assert.match(tokens, /^[\d,]+ written$/);
  }
  assert.deepEqual([third[0], third[1], third[2]], ['bob', 'background', 'waiting']);
  assert.match(third[4], /^[\d,]+ to read$/);
  assert.equal(await tab.text('.who .hint'), '');
  assert.equal(await tab.text('.who caption'), 'Who runs and who waits');
  for (let i = 0; i < 20; ++i) asked.push(await streamChat(as('k-bob'), 'wait', endless));
  await tab.until(() => /^and \d+ more$/.test(document.querySelector('.who .hint').textContent) &&
    document.querySelector('#batch .tile:nth-child(3) .value').textContent === '21');
  await tab.page.waitForFunction(() => document.querySelectorAll('.who tbody tr').length +
    Number(/\d+/.exec(document.querySelector('.who .hint').textContent)) === 23);
  const many = await rows(tab);
  assert.deepEqual(new Set(many.map((row) => row[2])), new Set(['writing', 'waiting']));
  const inside = await tab.page.evaluate(() => document.querySelector('.who .hint').getBoundingClientRect().bottom <=
    document.querySelector('.who').getBoundingClientRect().bottom + 1);
  assert.ok(inside, 'they fit');
  // Who is no operator sees the numbers alone.
  await tab.settle({ key: 'k-alice' });
  await tab.until(() => document.querySelector('.who table').hidden && document.querySelector('.who .hint').textContent === '2 run, 21 wait');
  assert.deepEqual(await tab.texts('#toast'), ['']);
  for (const stream of asked) stream.leave();
});

test('who runs is asked for while the view is open and the page visible', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  let asked = 0;
  tab.page.on('request', (request) => { if (request.url().endsWith('/debug/sequences')) asked += 1; });
  const turns = () => tab.page.evaluate(() => new Promise((done) => { setTimeout(done, 2200); }));
  await turns();
  assert.equal(asked, 0, 'not while the view is closed');
  const begun = Date.now();
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.who .hint').textContent === 'No request runs or waits.');
  await turns();
  const most = 2 + (Date.now() - begun) / 1000;
  assert.ok(asked >= 2 && asked <= most, `every second: ${asked}`);
  await tab.page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  asked = 0;
  await turns();
  assert.equal(asked, 0, 'not while it is hidden');
  await tab.page.evaluate(() => {
    delete document.hidden;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await turns();
  assert.ok(asked >= 2, 'again when it is seen');
  await tab.page.click('#close-batch');
  asked = 0;
  await turns();
  assert.equal(asked, 0, 'not when the view is closed');
});

test('who runs is asked for again after an answer that took longer than a second', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  // The page's second is over when the test says so.
  await tab.page.evaluate(() => {
    const real = window.setTimeout;
    window.setTimeout = (run, ms, ...values) => (ms === 1000 ? void (window.turn = run) : real(run, ms, ...values));
  });
  const turn = () => tab.page.evaluate(() => {
    const { turn: run } = window;
    window.turn = null;
    run?.();
    return Boolean(run);
  });
  const held = [];
  const ours = (request) => request.url().endsWith('/debug/sequences');
  await tab.page.setRequestInterception(true);
  tab.page.on('request', (request) => (ours(request) ? held.push(request) : request.continue()));
  const next = () => tab.page.waitForRequest(ours);
  let asked = next();
  await tab.page.click('#watch');
  await asked;
  const meanwhile = [turn, () => tab.page.evaluate(() => { document.dispatchEvent(new Event('visibilitychange')); })];
  for (const happen of meanwhile) {
    await happen();
    assert.equal(held.length, 1, 'not twice at once');
    await tab.page.$eval('.who .hint', (hint) => { hint.textContent = ''; });
    await held.pop().continue();
    await tab.until(() => document.querySelector('.who .hint').textContent === 'No request runs or waits.');
    asked = next();
    asked.catch(() => {}); // where there is no turn, nothing is asked for until the test ends
    assert.ok(await turn(), 'there is a next turn');
    await asked;
  }
  await held.pop().continue();
});

test('the feed stops while the page is hidden and comes back', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const watchers = (count) => server.until(
    (metrics) => metrics.value('chasqui_http_exchanges_running') === count + 1, `${count} watch`);
  await watchers(0);
  await tab.page.click('#watch');
  await watchers(1);
  await tab.page.click('#close-batch');
  await watchers(0);
  await tab.page.click('#watch');
  await watchers(1);
  await tab.reload();
  await watchers(1);
  assert.ok(await tab.page.$('#batch:not([hidden])'), 'it is open again after a reload');
});

test('a file of recorded steps is opened, walked through from its first step, and closed again', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-steps-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = (name) => path.join(folder, name);
  const recorded = await start(t, [...demo, '-np', '2', '--record', file('record')]);
  await Promise.all([0, 1, 2].map(async (i) => (await streamChat(recorded, `Recorded ${i}`, { max_tokens: 300, ignore_eos: true })).collect()));
  await recorded.stop();
  assert.equal((await run(['replay', file('record'), '--steps', file('steps.json')])).code, 0);
  const { steps } = JSON.parse(readFileSync(file('steps.json'), 'utf8'));

  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.state').dataset.state === 'live');
  writeFileSync(file('other.json'), '{}');
  await (await tab.page.$('#steps-file')).uploadFile(file('other.json'));
  await tab.until(() => document.querySelector('#step').textContent.includes('other.json is neither a recording'));
  await (await tab.page.$('#steps-file')).uploadFile(file('steps.json'));
  await tab.until(() => document.querySelector('.state').textContent === 'steps.json');
  await tab.frames(2); // a page is as many steps as are drawn
  await tab.page.focus('.charts');
  await tab.page.keyboard.press('Home');
  assert.match(await tab.text('#step'), /^Step 1 reads prompts/);
  await tab.page.keyboard.press('End');
  assert.match(await tab.text('#step'), new RegExp(`^Step ${steps.length} `));
  await tab.page.keyboard.press('PageUp');
  await tab.page.keyboard.press('ArrowLeft');
  const before = Number(/^Step (\d+) /.exec(await tab.text('#step'))[1]);
  assert.ok(before < steps.length - 2, `a page back: ${before}`);
  await tab.page.click('#close-batch');
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.state').dataset.state === 'live');
});
