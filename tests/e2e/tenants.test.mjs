// What a key of a tenant may not do and see, and what a key with admin=yes may.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { answer, refused } from './client.mjs';
import { exchange, parse, request } from './raw.mjs';
import { binary, demo, start } from './server.mjs';

const { describe, it } = test;
const here = path.dirname(fileURLToPath(import.meta.url));
const model = path.resolve(here, '../../models/demo/chasqui-demo.gguf');
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-tenants-'));
test.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
const adapter = path.join(folder, 'one.gguf');
execFileSync(path.join(path.dirname(binary), 'mkmodel'), ['--adapter', model, adapter, '--seed', '1']);

async function startWithKeys(context, lines) {
  const keys = path.join(folder, 'keys');
  writeFileSync(keys, lines);
  const server = await start(context, [...demo, '-m', model, '--lora', adapter, '--lora-init-without-apply', '--api-key-file', keys]);
  server.key = lines.split(/\s/)[0];
  return server;
}

const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });
const json = async (server, target, key) => (await server.fetch(target, as(key))).json();
const scale = (server, key) => server.fetch('/lora-adapters', { method: 'POST', body: '[{"id":0,"scale":1}]', ...as(key) });

describe('keys of several tenants', async () => {
  const server = await startWithKeys(test, 'a name=alice\nb name=bob\nroot name=root admin=yes\n');

  it('change nothing for each other', async () => {
    const before = (await answer(server, 'What is a slot?', { max_tokens: 8 }, as('b'))).text;
    const error = await refused(await scale(server, 'a'), 403);
    assert.match(error.message, /admin=yes/);
    assert.equal((await answer(server, 'What is a slot?', { max_tokens: 8 }, as('b'))).text, before);
    assert.equal((await scale(server, 'root')).status, 200);
    assert.equal((await json(server, '/lora-adapters', 'a'))[0].scale, 1);
  });

  it('are needed for whatever has a body', async () => {
    const without = { authorization: '' };
    for (const target of ['/health', '/ready', '/openapi.json', '/']) {
      assert.equal((await server.fetch(target, { headers: without })).status, 200, target);
      assert.equal((await server.fetch(`${target}?model=none`, { headers: without })).status, 200, `${target} names no models`);
      const big = request('GET', target, { 'Content-Length': 30_000_000 });
      assert.equal((await parse(await exchange(server, big))).status, 401, target);
      assert.equal((await parse(await exchange(server, big.replace('GET', 'OPTIONS')))).status, 413, target);
    }
  });

  it('see no paths of files', async () => {
    for (const [key, shown, lora] of [['a', path.basename(model), 'one.gguf'], ['root', model, adapter]]) {
      assert.equal((await json(server, '/props', key)).model_path, shown);
      assert.equal((await json(server, '/lora-adapters', key))[0].path, lora);
    }
    for (const target of ['/props', '/lora-adapters', '/v1/models', '/slots', '/api/tags', '/openapi.json', '/metrics']) {
      const text = await (await server.fetch(target, as('a'))).text();
      assert.ok(!text.includes(folder) && !text.includes(path.dirname(model)), target);
    }
  });

  it('are told how to show themselves', async () => {
    const anonymous = await server.fetch('/props');
    assert.deepEqual([anonymous.status, anonymous.headers.get('www-authenticate')], [401, 'Bearer realm="chasqui"']);
    assert.equal((await server.fetch('/props', { headers: { authorization: 'bearer a' } })).status, 200);
  });
});

describe('the only tenant', async () => {
  it('may do everything with any key', async (t) => {
    const server = await startWithKeys(t, 'a name=alice\na2 name=alice\n');
    assert.equal((await scale(server, 'a2')).status, 200);
    assert.equal((await json(server, '/props', 'a')).model_path, model);
  });
});
