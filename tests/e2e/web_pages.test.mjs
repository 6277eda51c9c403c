// What web pages may do: names that the server answers to, origins, types of bodies, CORS, and a prefix of all paths.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, checkError, user } from './client.mjs';
import { exchange, parse, refusal, request } from './raw.mjs';
import { run, sim, start } from './server.mjs';

const { describe, it } = test;

const json = { 'Content-Type': 'application/json' };
const foreign = { Origin: 'http://evil.example' };

// As a browser would send it: fetch() of node does not let a caller choose Host, and leaves Origin out.
async function ask(server, method, target, headers = {}, body = '') {
  const length = body ? { 'Content-Length': Buffer.byteLength(body) } : {};
  return parse(await exchange(server, request(method, target, { ...length, ...headers }, body)));
}

const chatBody = JSON.stringify({ messages: user('say: hello') });
const chat = (server, headers) => ask(server, 'POST', '/v1/chat/completions', headers, chatBody);

describe('a server without keys', async () => {
  const server = await start(test, sim);

  it('answers to names of this machine only', async () => {
    for (const Host of ['localhost', `127.0.0.1:${server.port}`, '[::1]:1', 'a.localhost', '127.9.9.9']) {
      assert.equal((await chat(server, { Host })).status, 200, Host);
    }
    for (const target of ['/', '/props', '/v1/sessions', '/slots', '/lora-adapters', '/health', '/metrics']) {
      const { error } = await refusal(server, request('GET', target, { Host: 'evil.example' }), 421);
      assert.match(error.message, /--allowed-hosts/);
    }
    const refused = async () => (await server.metrics()).value('chasqui_http_pages_refused_total', { reason: 'host' });
    const before = await refused();
    assert.equal((await chat(server, { Host: 'evil.example' })).status, 421);
    assert.equal(await refused(), before + 1);
  });

  it('refuses pages of other origins, whatever they ask for', async () => {
    for (const headers of [{}, { 'Content-Type': 'text/plain' }, json]) {
      const response = await chat(server, { ...foreign, ...headers });
      assert.equal(response.status, 403);
      assert.match(checkError(JSON.parse(response.body), 403).message, /--cors-origins/);
      assert.equal(response.headers['access-control-allow-origin'], undefined);
    }
    for (const [method, target] of [['GET', '/v1/sessions'], ['DELETE', '/v1/sessions/x'], ['POST', '/slots/0?action=erase']]) {
      assert.equal((await ask(server, method, target, foreign)).status, 403, target);
    }
    const anthropic = await ask(server, 'POST', '/v1/messages', foreign, '{}');
    assert.equal(JSON.parse(anthropic.body).type, 'error');
  });

  it('lets pages of other sites embed nothing', async () => {
    const shown = async (as, target = '/props') => (await ask(server, 'GET', target, { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': as })).status;
    for (const as of ['image', 'script', 'iframe', 'empty']) assert.equal(await shown(as), 403, as);
    assert.equal(await shown('document', '/'), 200, 'a link was followed');
  });

  it('takes from pages what is declared as JSON, and anything from others', async () => {
    const own = { Origin: `http://localhost:${server.port}`, Host: `localhost:${server.port}` };
    assert.equal((await chat(server, { ...own, 'Content-Type': 'text/plain' })).status, 415);
    assert.equal((await chat(server, { 'Sec-Fetch-Site': 'cross-site', 'Content-Type': 'text/plain' })).status, 415);
    assert.equal((await chat(server, { ...own, ...json })).status, 200);
    assert.equal((await chat(server, { 'Content-Type': 'application/x-www-form-urlencoded' })).status, 200);
  });

  it('tells browsers that pages of this machine may ask', async () => {
    const Origin = 'http://localhost:3000';
    const response = await chat(server, { Origin, ...json });
    assert.equal(response.status, 200);
    assert.equal(response.headers['access-control-allow-origin'], Origin);
    assert.match(response.headers['access-control-expose-headers'], /Retry-After/);
    const lost = await ask(server, 'GET', '/nowhere', { Origin });
    assert.deepEqual([lost.status, lost.headers['access-control-allow-origin']], [404, Origin]);
    for (const target of ['/v1/chat/completions', '/v1/sessions/abc', '/health', '/nowhere', '*']) {
      const preflight = await ask(server, 'OPTIONS', target, {
        Origin, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization,content-type' });
      assert.equal(preflight.status, 204, target);
      assert.equal(preflight.headers['access-control-allow-origin'], Origin);
      assert.equal(preflight.headers['access-control-allow-headers'], 'authorization,content-type');
      assert.match(preflight.headers['access-control-allow-methods'], /POST/);
      assert.equal(preflight.headers['access-control-max-age'], '600');
    }
    const refused = await ask(server, 'OPTIONS', '/v1/chat/completions', { ...foreign, 'Access-Control-Request-Method': 'POST' });
    assert.deepEqual([refused.status, refused.headers['access-control-allow-origin']], [204, undefined]);
  });

  it('answers to any name on a Unix socket', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    const socketPath = path.join(dir, 's.sock');
    await start(t, [...sim, '--unix-socket', socketPath]);
    const status = await new Promise((resolve, reject) => {
      http.get({ socketPath, path: '/props', headers: { Host: 'anything' } }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      }).on('error', reject);
    });
    assert.equal(status, 200);
  });
});

describe('--cors-origins and its like', async () => {
  it('name who may ask', async (t) => {
    const server = await start(t, [...sim, '--cors-origins', 'https://chat.example,http://evil.example', '--cors-methods',
      'GET', '--cors-headers', 'x-a', '--no-cors-credentials', '--allowed-hosts', 'box.lan']);
    const response = await chat(server, { ...foreign, ...json, Host: 'box.lan:1' });
    assert.equal(response.status, 200);
    assert.equal(response.headers['access-control-allow-origin'], foreign.Origin);
    assert.equal(response.headers['access-control-allow-credentials'], undefined);
    assert.equal((await chat(server, { ...json, Origin: 'http://localhost:3000' })).status, 403);
    const preflight = await ask(server, 'OPTIONS', '/props', { ...foreign, 'Access-Control-Request-Headers': 'x-b' });
    assert.equal(preflight.headers['access-control-allow-methods'], 'GET');
    assert.equal(preflight.headers['access-control-allow-headers'], 'x-a');
  });

  it('allow everybody with a key only', async (t) => {
    const server = await start(t, [...sim, '--api-key', 'k'], { LLAMA_ARG_CORS_ORIGINS: '*' });
    server.key = 'k';
    const response = await chat(server, { ...foreign, ...json, Authorization: 'Bearer k', Host: 'any.example' });
    assert.deepEqual([response.status, response.headers['access-control-allow-origin']], [200, foreign.Origin]);
    assert.equal((await chat(server, { ...foreign, ...json })).status, 401);
    const open = await run(['serve', ...sim, '--port', '0', '--cors-origins', '*']);
    assert.deepEqual([open.code, /--cors-origins.*--api-key/.test(open.stderr)], [2, true]);
    for (const wrong of ['chat.example', 'https://chat.example/', '']) {
      assert.equal((await run(['serve', ...sim, '--port', '0', '--cors-origins', wrong])).code, 2, wrong);
    }
  });

  it('leave a server with keys to its keys', async (t) => {
    const server = await start(t, [...sim, '--api-key', 'k']);
    server.key = 'k';
    const response = await chat(server, { ...foreign, Host: 'proxy.example', Authorization: 'Bearer k' });
    assert.deepEqual([response.status, response.headers['access-control-allow-origin']], [200, undefined]);
  });
});

describe('--api-prefix', async () => {
  it('puts everything below a path', async (t) => {
    const server = await start(t, [...sim, '--api-prefix', '/llm/a']);
    assert.equal((await server.fetch('/health')).status, 404);
    const moved = await server.fetch('/llm/a', { redirect: 'manual' });
    assert.deepEqual([moved.status, moved.headers.get('location')], [308, '/llm/a/']);
    assert.match(await (await server.fetch('/llm/a/')).text(), /<html/);
    server.url += '/llm/a';
    assert.equal((await answer(server, 'say: hello')).text, 'hello');
    assert.equal((await (await server.fetch('/openapi.json')).json()).servers[0].url, '/llm/a');
    for (const wrong of ['llm', '/llm/', '/', '//a', '/a b']) {
      assert.equal((await run(['serve', ...sim, '--port', '0', '--api-prefix', wrong])).code, 2, wrong);
    }
  });
});
