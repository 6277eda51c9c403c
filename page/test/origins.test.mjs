// Pages of other origins in a real browser: what they may not do, and what they may when they are allowed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

import { sim, start } from '../../tests/e2e/server.mjs';
import { openBrowser } from './browser.mjs';

const { describe, it } = test;

// A page of http://evil.example, which the browser finds on this machine.
async function foreignPage(t) {
  const site = http.createServer((_, response) => response.end('<!doctype html><title>evil</title>')).listen(0, '127.0.0.1');
  await once(site, 'listening');
  t.after(() => site.close());
  return `http://evil.example:${site.address().port}`;
}

// A page of that kind with OpenAI's own client, bundled as for any web application.
const clients = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../tests/e2e');
async function pageWithClient(t) {
  const { outputFiles: [bundle] } = await build({ stdin: { contents: "import OpenAI from 'openai'; globalThis.OpenAI = OpenAI;", resolveDir: clients },
    bundle: true, format: 'iife', platform: 'browser', write: false, logLevel: 'silent' });
  const site = http.createServer((request, response) => {
    if (request.url === '/client.js') return response.setHeader('content-type', 'text/javascript').end(bundle.contents);
    return response.setHeader('content-type', 'text/html').end('<!doctype html><title>app</title><script src="/client.js"></script>');
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  t.after(() => site.close());
  return `http://evil.example:${site.address().port}`;
}

// As a script of that page: status and text, or what stopped it.
function fetchIn(page, url, options) {
  return page.evaluate(async (...args) => {
    try {
      const response = await fetch(...args);
      return { status: response.status, text: await response.text() };
    } catch (error) {
      return { error: error.name };
    }
  }, url, options);
}

const chat = (type, fields = {}) => ({ method: 'POST', headers: { 'Content-Type': type },
  body: JSON.stringify({ messages: [{ role: 'user', content: 'say: hello' }], ...fields }) });

describe('a page of another origin', async () => {
  const browser = await openBrowser(test, ['--host-resolver-rules=MAP evil.example 127.0.0.1']);

  it('is refused', async (t) => {
    const server = await start(t, sim);
    const origin = await foreignPage(t);
    const page = await browser.newPage();
    await page.goto(origin);
    for (const type of ['text/plain', 'application/json']) {
      assert.deepEqual(await fetchIn(page, `${server.url}/v1/chat/completions`, chat(type)), { error: 'TypeError' });
    }
    await fetchIn(page, `${server.url}/v1/chat/completions`, { ...chat('text/plain'), mode: 'no-cors' });
    assert.deepEqual(await fetchIn(page, `${server.url}/props`), { error: 'TypeError' });
    assert.equal((await server.metrics()).sum('chasqui_requests_finished_total'), 0);
    // The name that it was loaded under now leads to the server.
    const rebound = await page.goto(`http://evil.example:${server.port}/props`);
    assert.equal(rebound.status(), 421);
  });

  it('may ask when it is allowed', async (t) => {
    const origin = await foreignPage(t);
    const server = await start(t, [...sim, '--cors-origins', origin]);
    const page = await browser.newPage();
    await page.goto(origin);
    const whole = await fetchIn(page, `${server.url}/v1/chat/completions`, chat('application/json'));
    assert.equal(JSON.parse(whole.text).choices[0].message.content, 'hello');
    const stream = await fetchIn(page, `${server.url}/v1/chat/completions`, chat('application/json', { stream: true }));
    assert.match(stream.text, /\[DONE\]/);
    const session = await fetchIn(page, `${server.url}/v1/sessions`, { method: 'POST',
      headers: { 'Content-Type': 'application/json' }, body: '{"text":"once"}' });
    const ended = await fetchIn(page, `${server.url}/v1/sessions/${JSON.parse(session.text).id}`, { method: 'DELETE' });
    assert.equal(ended.status, 200);
  });

  const installed = existsSync(path.join(clients, 'node_modules/openai'));
  it('talks to it with the official OpenAI client, streamed', { skip: !installed && 'run make e2e once: the client is not installed' }, async (t) => {
    const origin = await pageWithClient(t);
    const server = await start(t, [...sim, '--cors-origins', origin, '--api-key', 'key-of-the-page']);
    server.key = 'key-of-the-page';
    const page = await browser.newPage();
    await page.goto(origin);
    const said = await page.evaluate(async (baseURL) => {
      const client = new OpenAI({ baseURL, apiKey: 'key-of-the-page', dangerouslyAllowBrowser: true, maxRetries: 0 });
      const ask = { model: 'any', messages: [{ role: 'user', content: 'say: one two three four' }] };
      const pieces = [];
      for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) pieces.push(chunk.choices[0]?.delta?.content ?? '');
      const whole = await client.chat.completions.create(ask);
      const models = (await client.models.list()).data.map(({ id }) => id);
      const refused = await client.chat.completions.create({ ...ask, temperature: -1 }).catch((error) => error.status);
      const stranger = await new OpenAI({ baseURL, apiKey: 'none', dangerouslyAllowBrowser: true, maxRetries: 0 }).models.list().catch((error) => error.status);
      return { pieces: pieces.filter((piece) => piece), whole: whole.choices[0].message.content, models, refused, stranger };
    }, `${server.url}/v1`);
    assert.equal(said.pieces.join(''), 'one two three four');
    assert.ok(said.pieces.length > 1, 'it came in pieces');
    assert.equal(said.whole, 'one two three four');
    assert.equal(said.models.length, 1);
    assert.deepEqual([said.refused, said.stranger], [400, 401]);
  });
});
