// The chat in a real browser with a real server behind it.
import assert from 'node:assert/strict';
import test from 'node:test';

import { demo, sim, start } from '../../tests/e2e/server.mjs';
import { Tab, endless, eventsOf, openBrowser } from './browser.mjs';

const browser = await openBrowser(test);
const long = [...sim, '-np', '2', '-c', '400000'];

test('an answer grows on the page while it streams, and says what it took', async (t) => {
  const server = await start(t, [...long, '--sim-step', '2']);
  const tab = await Tab.open(t, browser, server);
  // Every text that a person could have seen before the answer ended.
  await tab.page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => {
      const message = document.querySelector('.message.assistant.streaming');
      const text = message?.querySelector('.text').textContent;
      if (text && text !== window.seen.at(-1)) window.seen.push(text);
    }).observe(document.querySelector('#log'), { subtree: true, childList: true, characterData: true, attributes: true });
  });
  await tab.settle({ more: '{"ignore_eos": true, "max_tokens": 2000}' });
  await tab.ask('What is Chasqui?');
  const seen = await tab.page.evaluate(() => window.seen);
  const whole = await tab.page.$eval('.message.assistant .text', (element) => element.textContent);
  assert.ok(seen.length >= 5, `seen while it streamed: ${seen.length}`);
  assert.ok(seen[0].length < whole.length / 4, 'its beginning, too');
  for (let i = 1; i < seen.length; ++i) assert.ok(seen[i].length > seen[i - 1].length, 'it only grows');
  for (const text of seen) assert.ok(whole.startsWith(text.trimEnd()), 'what is seen is the beginning of the answer');
  assert.match(await tab.text('.message.assistant .figures'), /^2,000 tokens · [\d.,]+ a second · first after .* · prompt \d+/);
});

test('while a prompt is read, how far that is', async (t) => {
  const server = await start(t, [...long, '-b', '256', '--sim-step', '100']);
  const tab = await Tab.open(t, browser, server);
  await tab.settle({ more: '{"max_tokens": 4}' });
  await tab.page.evaluate(() => {
    window.seen = new Set();
    new MutationObserver(() => window.seen.add(document.querySelector('.message.assistant .figures')?.textContent))
      .observe(document.querySelector('#log'), { subtree: true, childList: true, characterData: true });
  });
  await tab.page.$eval('#prompt', (input) => { input.value = 'A word after another. '.repeat(500); });
  await tab.ask(' ');
  const seen = (await tab.page.evaluate(() => [...window.seen])).filter((text) => text?.startsWith('reading the prompt'));
  const shares = seen.map((text) => Number(/^reading the prompt, (\d+) % of [\d,]+ tokens$/.exec(text)[1]));
  assert.ok(shares.length > 2, seen.join('; '));
  assert.deepEqual(shares, [...shares].sort((a, b) => a - b));
  assert.match(await tab.text('.message.assistant .figures'), /tokens/);
});

test('stop ends the answer at the server, keeps what was said, and the next one works', async (t) => {
  const server = await start(t, long);
  const tab = await Tab.open(t, browser, server);
  await tab.settle({ more: endless });
  for (const stop of [() => tab.page.click('#send'), () => tab.page.keyboard.press('Escape')]) {
    await tab.send('Never end.');
    await tab.until(() => document.querySelector('.message.assistant.streaming .text')?.textContent.length > 20);
    await stop();
    await tab.ended();
    await server.idle();
    assert.equal(await tab.text('.message.assistant:last-child .end'), 'stopped');
    assert.ok((await tab.messages()).at(-1).length > 20);
    assert.equal(await tab.page.$eval('#send', (button) => button.getAttribute('aria-label')), 'Send');
  }
});

test('a reload keeps conversations, also in the middle of an answer', async (t) => {
  // Slowly, so that the server still has all of it that the page resumes.
  const server = await start(t, [...long, '--sim-step', '5']);
  const tab = await Tab.open(t, browser, server);
  await tab.ask('first words');
  const before = await tab.messages();
  await tab.reload();
  assert.deepEqual(await tab.messages(), before);
  await tab.settle({ more: endless, system: 'Be brief.' });
  await tab.send('and now for long');
  await tab.until(() => document.querySelector('.message.assistant.streaming .text')?.textContent.length > 20);
  await tab.reload();
  await tab.page.waitForSelector('.message.assistant.streaming');
  await tab.page.click('#send');
  await tab.ended();
  await server.idle();
  assert.equal(await tab.text('.message.assistant:last-child .end'), 'stopped');
  const after = await tab.messages();
  assert.deepEqual(after.slice(0, 3), [...before, 'and now for long']);
  await tab.page.click('#open-settings');
  assert.equal(await tab.page.$eval('#set-system', (input) => input.value), 'Be brief.');
});

test('editing and trying again make versions to go back to', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  await tab.ask('one');
  const [, first] = await tab.messages();
  await tab.page.hover('.message.assistant');
  await tab.page.click('.message.assistant [aria-label="Try again"]');
  await tab.until(() => document.querySelector('.message.assistant .branches')?.innerText.includes('2 of 2'));
  await tab.ended();
  // Not by its place on the screen, which moves while the answer above is still being laid out.
  await tab.page.$eval('.message.assistant [aria-label="Previous version"]', (button) => button.click());
  assert.equal((await tab.messages())[1], first);

  await tab.page.hover('.message.user');
  await tab.page.click('.message.user [aria-label="Edit"]');
  await tab.page.$eval('.editing textarea', (area) => { area.value = 'two'; });
  await tab.page.focus('.editing textarea');
  await tab.page.keyboard.press('Enter');
  await tab.until(() => document.querySelector('.message.user .text')?.innerText === 'two');
  await tab.ended();
  assert.equal(await tab.text('.message.user .branches'), '2 of 2');
  await tab.page.$eval('.message.user [aria-label="Previous version"]', (button) => button.click());
  assert.deepEqual((await tab.messages()).slice(0, 2), ['one', first], 'with the answer that was chosen last');
  await tab.written();
  await tab.reload();
  assert.deepEqual((await tab.messages()).slice(0, 2), ['one', first]);
});

test('conversations are separate; they can be named, deleted and brought back', async (t) => {
  const server = await start(t, long);
  const tab = await Tab.open(t, browser, server);
  await tab.ask('the first conversation');
  await tab.page.click('#new');
  assert.deepEqual(await tab.messages(), []);
  await tab.settle({ more: endless });
  await tab.send('the second conversation');
  await tab.until(() => document.querySelector('.message.assistant.streaming .text')?.textContent.length > 20);
  await tab.page.click('#side li:not(.current) .open');
  assert.equal((await tab.messages())[0], 'the first conversation', 'while the other one goes on');
  await tab.page.click('#side li:not(.current) .open');
  await tab.page.waitForSelector('.message.assistant.streaming');
  await tab.page.click('#send');
  await tab.ended();

  await tab.page.hover('#side li.current');
  await tab.page.click('#side li.current [aria-label^="Rename"]');
  await tab.page.keyboard.type('Renamed');
  await tab.page.keyboard.press('Enter');
  assert.deepEqual(await tab.texts('#side .open'), ['Renamed', 'the first conversation']);
  await tab.page.hover('#side li.current');
  await tab.page.click('#side li.current [aria-label^="Delete"]');
  assert.deepEqual(await tab.texts('#side .open'), ['the first conversation']);
  await tab.page.click('#toast button');
  await tab.until(() => document.querySelectorAll('#side .open').length === 2);
  await tab.written();
  await tab.reload();
  assert.deepEqual((await tab.texts('#side .open')).sort(), ['Renamed', 'the first conversation']);
});

test('settings go into the request, empty ones are left to the server', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const asked = await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: 'a' }]), eventsOf([{ content: 'b' }])]);
  await tab.ask('with defaults');
  assert.deepEqual(Object.keys(asked[0]).sort(), ['messages', 'return_progress', 'stream', 'stream_options']);
  await tab.settle({ system: 'Speak like a runner.', temperature: '0', top_k: '5', seed: '7', max_tokens: '12',
    stop: 'END\nFIN', more: '{"min_keep": 2}' });
  await tab.ask('with settings');
  const { messages, stream, return_progress: progress, stream_options: options, ...fields } = asked[1];
  assert.deepEqual(fields, { temperature: 0, top_k: 5, seed: 7, max_tokens: 12, stop: ['END', 'FIN'], min_keep: 2 });
  assert.deepEqual(messages.map(({ role }) => role), ['system', 'user', 'assistant', 'user']);
  assert.equal(messages[0].content, 'Speak like a runner.');
  assert.equal(stream && progress && options.include_usage, true);
});

test('reasoning and tool calls are shown, and the result of a tool goes back', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const call = (fields) => ({ tool_calls: [{ index: 0, ...fields }] });
  const asked = await tab.answerWith('/v1/chat/completions', [
    eventsOf([{ reasoning_content: 'The weather is not known, ' }, { reasoning_content: 'so ask.' },
      call({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
      call({ function: { arguments: '{"place":' } }), call({ function: { arguments: '"Cusco"}' } })], 'tool_calls'),
    eventsOf([{ content: 'It is sunny.' }]),
  ]);
  await tab.ask('How is the weather in Cusco?');
  await tab.page.click('.reasoning summary');
  assert.equal(await tab.text('.thoughts'), 'The weather is not known, so ask.');
  assert.match(await tab.text('.call'), /Calls\s+weather\s+\{\s*"place": "Cusco"\s*\}/);
  await tab.page.type('.call textarea', '{"sky":"clear"}');
  await tab.page.click('.tools .primary');
  await tab.until(() => document.querySelector('.message.assistant:last-child .text')?.innerText.trim() === 'It is sunny.');
  const sent = asked[1].messages;
  assert.deepEqual(sent[1].tool_calls, [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"place":"Cusco"}' } }]);
  assert.deepEqual(sent[2], { role: 'tool', tool_call_id: 'call_1', content: '{"sky":"clear"}' });
  assert.match(await tab.text('.message.assistant:last-child .figures'), /1 token · 42\.0 a second .* prompt 20, 12 cached/);
});

test('what a model writes can neither run nor call home', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const evil = '<script>window.hurt = 1</script><img src="http://192.0.2.1/a.png" onerror="window.hurt = 1">\n\n' +
    '![picture](http://192.0.2.1/b.png) [link](javascript:window.hurt=1) <iframe src="/"></iframe>\n\n' +
    '$\\text{<img src="x" onerror="window.hurt = 1">}$ $\\href{javascript:window.hurt=1}{x}$\n\n' +
    '| a | b |\n|---|---|\n| **c** | `d` |\n\n```js\nconst x = "</code><script>window.hurt = 1</script>";\n```\n';
  const pieces = evil.match(/[^]{1,7}/g).map((content) => ({ content }));
  await tab.answerWith('/v1/chat/completions', [eventsOf(pieces)]);
  await tab.ask('Say something evil.');
  assert.equal(await tab.page.evaluate(() => window.hurt), undefined);
  const bad = '.text :is(script, img, iframe, [onerror], [href^="javascript"])';
  assert.equal(await tab.page.$(`.message ${bad}`), null);
  assert.equal(await tab.text('.text th'), 'a');
  assert.equal(await tab.text('.text td strong'), 'c');
  assert.match(await tab.text('.text pre'), /<script>window.hurt/);
  assert.ok(await tab.page.$('.text pre .hljs-keyword'), 'code has colours');
});

test('a refusal and a break are said in words, and trying again works', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/503/] });
  const full = JSON.stringify({ error: { code: 503, message: 'too many requests are waiting', type: 'unavailable_error', param: null } });
  const broken = eventsOf([{ content: 'Half of ' }]).split('data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{}')[0];
  await tab.answerWith('/v1/chat/completions', [{ status: 503, body: full, headers: { 'retry-after': '7' } }, broken,
    `data: ${JSON.stringify({ error: { code: 500, message: 'the model gave up', type: 'server_error', param: null } })}\n\n`]);
  await tab.ask('hello');
  assert.equal(await tab.text('.message .fault'), 'too many requests are waiting. Try again in 7 s.');
  const retry = async () => {
    const before = await tab.page.$eval('.message.assistant', (element) => element.dataset.id);
    await tab.page.click('.message.assistant [aria-label="Try again"]');
    await tab.until((old) => document.querySelector('.message.assistant:not(.streaming)') &&
      document.querySelector('.message.assistant').dataset.id !== old, before);
  };
  await retry();
  assert.match(await tab.text('.message .fault'), /ended before the answer did/);
  assert.equal((await tab.messages())[1], 'Half of', 'what was said is kept');
  await retry();
  assert.match(await tab.text('.message .fault'), /the model gave up/);
  await retry();
  assert.equal(await tab.page.$('.message .fault'), null);
});

test('a server with keys is asked with one that the person gives once', async (t) => {
  const server = await start(t, [...sim, '--api-key', 'the-right-one']);
  server.key = 'the-right-one';
  const tab = await Tab.open(t, browser, server, { expectedFaults: [/401/] });
  await tab.send('let me in');
  await tab.page.waitForSelector('#key-dialog[open]');
  await tab.page.type('#key', 'a-wrong-one');
  await tab.page.keyboard.press('Enter');
  await tab.page.waitForSelector('#key-dialog .fault');
  await tab.page.type('#key', 'the-right-one');
  await tab.page.keyboard.press('Enter');
  await tab.ended();
  assert.equal((await tab.messages())[0], 'let me in');
  assert.ok((await tab.messages())[1].length > 0);
  await tab.reload();
  await tab.ask('and again');
  assert.equal(await tab.page.$('#key-dialog'), null, 'it is kept');
});

test('everything can be reached with the keyboard alone', async (t) => {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server);
  const press = async (...keys) => {
    for (const key of keys.slice(0, -1)) await tab.page.keyboard.down(key);
    await tab.page.keyboard.press(keys.at(-1));
    for (const key of keys.slice(0, -1)) await tab.page.keyboard.up(key);
  };
  await tab.page.type('#prompt', 'one line');
  await press('Shift', 'Enter');
  await tab.page.type('#prompt', 'two lines');
  await press('Enter');
  await tab.ended();
  assert.equal((await tab.messages())[0], 'one line\ntwo lines');
  await press('ArrowUp');
  assert.equal(await tab.page.$eval('.editing textarea', (area) => area === document.activeElement && area.value), 'one line\ntwo lines');
  await press('Escape');
  assert.equal(await tab.page.$('.editing'), null);
  await press('Alt', 'n');
  assert.deepEqual(await tab.messages(), []);
  await press('Alt', 'b');
  assert.ok(await tab.page.$('#batch:not([hidden])'));
  await press('Alt', 'b');
  assert.ok(await tab.page.$('#batch[hidden]'));
  await press('Alt', ',');
  assert.ok(await tab.page.$('#settings[open]'));
  await press('Escape');
  assert.equal(await tab.page.$('#settings[open]'), null);
  await tab.page.focus('#theme');
  await press('/');
  assert.equal(await tab.page.evaluate(() => document.activeElement.id), 'prompt');
});

test('an empty conversation suggests what the model that is served can answer', async (t) => {
  const suggested = async (flags) => {
    const server = await start(t, flags);
    const tab = await Tab.open(t, browser, server);
    await tab.until(() => document.querySelector('.welcome').innerText.includes(' answers, on this server.'));
    return { tab, texts: await tab.texts('.welcome button') };
  };
  const { texts: ofDemo } = await suggested(demo);
  assert.equal(ofDemo[0], 'What is Chasqui?');
  const { tab, texts: ofOther } = await suggested([...sim, '-a', 'other']);
  assert.match(await tab.text('.welcome p'), /^other answers/);
  assert.equal(ofOther.length, 3);
  for (const text of ofOther) assert.doesNotMatch(text, /Chasqui|cache|prompt|stream/i);
  await tab.page.click('.welcome button');
  await tab.ended();
  assert.equal((await tab.messages())[0], ofOther[0]);
});
