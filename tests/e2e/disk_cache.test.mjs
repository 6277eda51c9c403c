// --cache-disk: what was computed survives the process, and nothing in the folder can hurt the server.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer } from './client.mjs';
import { demo, run, start, testModel } from './server.mjs';

const { describe, it } = test;

const document = 'The relay runner waits at the post until the next one comes into sight. '.repeat(20);

async function folder(t) {
  const name = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

async function ask(server, question = 'What waits?', headers = {}) {
  const messages = [
    { role: 'system', content: document },
    { role: 'user', content: question },
  ];
  const body = await answer(server, messages, { max_tokens: 12 }, { headers });
  return { text: body.text, cached: body.usage.prompt_tokens_details.cached_tokens };
}

const written = (metrics) => metrics.value('chasqui_disk_snapshots') > 0 && metrics.value('chasqui_disk_queue') === 0;

async function snapshots(dir) {
  const names = await fs.readdir(path.join(dir, 'snapshots'));
  return names.filter((name) => name.endsWith('.kv')).map((name) => path.join(dir, 'snapshots', name));
}

function flipped(bytes, at) {
  const changed = Buffer.from(bytes);
  changed[at] ^= 1;
  return changed;
}

async function kill(server) {
  server.signal('SIGKILL');
  await server.ended;
}

// What a file has of a model whose memory cannot be cut is the state at a checkpoint.
const models = {
  'the demo model': demo,
  'a sliding window': ['-m', testModel('swa'), '-np', '2', '-c', '4096'],
  'a hybrid model': ['-m', testModel('hybrid'), '-np', '2', '-c', '4096'],
  'a recurrent model': ['-m', testModel('recurrent'), '-np', '2', '-c', '4096'],
};

for (const [name, model] of Object.entries(models)) {
  describe(`the folder of ${name}`, async () => {
    it('has after kill -9 what there was time to write', async (t) => {
      const dir = await folder(t);
      const first = await start(t, [...model, '--cache-disk', dir]);
      const before = await ask(first);
      await first.until(written, 'an idle server writes');
      await kill(first);
      const second = await start(t, [...model, '--cache-disk', dir]);
      const after = await ask(second);
      assert.ok(after.cached > 200);
      assert.equal(after.text, before.text);
    });

    it('may have damaged, short and replaced files: what they had is computed again', async (t) => {
      const dir = await folder(t);
      let server = await start(t, [...model, '--cache-disk', dir]);
      const { text } = await ask(server);
      await server.stop();
      const good = await Promise.all((await snapshots(dir)).map(async (file) => [file, await fs.readFile(file)]));
      const damages = {
        'a changed byte of KV': (bytes) => flipped(bytes, bytes.length - 1),
        'a changed token': (bytes) => flipped(bytes, 110),
        'half of it': (bytes) => bytes.subarray(0, bytes.length / 2),
        nothing: () => Buffer.alloc(0),
        'something else': (bytes) => Buffer.alloc(bytes.length, 'x'),
      };
      for (const [what, damage] of Object.entries(damages)) {
        for (const file of await snapshots(dir)) await fs.rm(file);
        for (const [file, bytes] of good) await fs.writeFile(file, damage(bytes), { mode: 0o600 });
        server = await start(t, [...model, '--cache-disk', dir]);
        const answer = await ask(server);
        assert.equal(answer.cached, 0, what);
        assert.equal(answer.text, text, what);
        await server.says(/snapshot file is (damaged and removed|refused)/, what);
        await server.stop();
      }
    });
  });
}

describe('a server with a folder for its cache', async () => {
  it('knows a prompt again after a restart, and says the same', async (t) => {
    const dir = await folder(t);
    const first = await start(t, [...demo, '--cache-disk', dir]);
    const before = await ask(first);
    assert.equal(before.cached, 0);
    await first.stop();
    const second = await start(t, [...demo, '--cache-disk', dir]);
    const after = await ask(second);
    assert.ok(after.cached > 200, `${after.cached} tokens are known again`);
    assert.equal(after.text, before.text);
    const metrics = await second.metrics();
    assert.equal(metrics.value('chasqui_disk_read_seconds_count'), 1);
    const props = await (await second.fetch('/props')).json();
    assert.equal(props.limits.disk_cache_bytes, 16384 * 1024 * 1024);
  });

  it('does not use what another configuration has written', async (t) => {
    const dir = await folder(t);
    const first = await start(t, [...demo, '--cache-disk', dir]);
    const before = await ask(first);
    await first.stop();
    const second = await start(t, [...demo, '--cache-disk', dir, '-ctk', 'q8_0', '-fa', 'on']);
    assert.equal((await ask(second)).cached, 0);
    assert.equal((await second.metrics()).value('chasqui_disk_snapshots_foreign'), 1);
    await second.stop();
    const third = await start(t, [...demo, '--cache-disk', dir]);
    const after = await ask(third);
    assert.ok(after.cached > 200, 'the first files are still there');
    assert.equal(after.text, before.text);
  });

  it('keeps tenants apart, whatever the order of their keys', async (t) => {
    const dir = await folder(t);
    const as = (key) => ({ authorization: `Bearer ${key}` });
    const stop = async (server) => {
      server.key = 'alice';
      await server.stop();
    };
    const first = await start(t, [...demo, '--cache-disk', dir, '--api-key', 'alice,bob']);
    await ask(first, 'What waits?', as('alice'));
    await stop(first);
    const second = await start(t, [...demo, '--cache-disk', dir, '--api-key', 'bob,alice']);
    assert.equal((await ask(second, 'What waits?', as('bob'))).cached, 0);
    assert.ok((await ask(second, 'What waits?', as('alice'))).cached > 200);
    await stop(second);
  });

  it('stays under its limit', async (t) => {
    const dir = await folder(t);
    const server = await start(t, [...demo, '--cache-disk', dir, '--cache-disk-mib', '8']);
    for (let i = 0; i < 8; ++i) await ask(server, `Question ${i}: ${'why '.repeat(10 * i)}`);
    await server.stop();
    let bytes = 0;
    for (const file of await snapshots(dir)) bytes += (await fs.stat(file)).size;
    assert.ok(bytes > 0 && bytes <= 8 * 1024 * 1024, `${bytes} bytes`);
  });

  it('is the only one there', async (t) => {
    const dir = await folder(t);
    await start(t, [...demo, '--cache-disk', dir]);
    const second = await run(['serve', ...demo, '--port', '0', '--cache-disk', dir]);
    assert.equal(second.code, 1);
    assert.match(second.stderr, /in use by another process/);
  });

  it('refuses a folder that cannot be one, and a cache without memory', async (t) => {
    const dir = await folder(t);
    await fs.writeFile(path.join(dir, 'file'), '');
    const bad = await run(['serve', ...demo, '--port', '0', '--cache-disk', path.join(dir, 'file')]);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /--cache-disk: .*file is no folder/);
    const none = await run(['serve', ...demo, '--port', '0', '--cache-disk', dir, '--cache-ram', '0']);
    assert.equal(none.code, 2);
    assert.match(none.stderr, /--cache-ram must not be 0/);
  });
});
