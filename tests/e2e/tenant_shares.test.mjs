// Folders that tenants fill: what one of them leaves there takes no room that is the others'.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, refused, user } from './client.mjs';
import { demo, hangAfter, sim, start } from './server.mjs';

const { describe, it } = test;
const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });

async function folder(t) {
  const name = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

async function startFor(t, flags) {
  const server = await start(t, [...flags, '--api-key', 'alice,bob']);
  server.key = 'alice';
  return server;
}

describe('batches of a tenant that has its share', () => {
  const endpoint = '/v1/chat/completions';
  const send = async (server, key, count) => {
    const form = new FormData();
    const body = { messages: user('say: yes'), max_tokens: 8 };
    const lines = Array.from({ length: count }, (_, i) =>
      JSON.stringify({ custom_id: `${i}`, method: 'POST', url: endpoint, body }));
    form.set('purpose', 'batch');
    form.set('file', new Blob([lines.join('\n')]), 'in.jsonl');
    return server.fetch('/v1/files', { method: 'POST', body: form, ...as(key) });
  };
  const order = (server, key, input) =>
    ask(server, '/v1/batches', { input_file_id: input, endpoint, completion_window: '24h' }, as(key));
  const until = async (server, key, id, status) => {
    for (const end = Date.now() + hangAfter; ;) {
      const batch = await (await server.fetch(`/v1/batches/${id}`, as(key))).json();
      if (batch.status === status) return batch;
      assert.ok(Date.now() < end && batch.status !== 'completed', JSON.stringify(batch));
    }
  };

  it('wait until it has deleted files, and those of others run', async (t) => {
    const dir = await folder(t);
    const first = await startFor(t, [...sim, '--batch-dir', dir]);
    const [large, small] = [await (await send(first, 'alice', 1)).json(), await (await send(first, 'alice', 5)).json()];
    await first.stop();
    // A hole of 5 GiB takes no room on the disk.
    const bytes = 5 * 2 ** 30;
    await fs.truncate(path.join(dir, `${large.id}.bytes`), bytes);
    const meta = path.join(dir, `${large.id}.meta`);
    await fs.writeFile(meta, (await fs.readFile(meta, 'utf8')).replace(/"bytes":\s*\d+/, `"bytes":${bytes}`));

    const server = await startFor(t, [...sim, '--batch-dir', dir]);
    assert.match((await refused(await send(server, 'alice', 1), 413)).message, /4294967296 bytes together/);
    const waiting = await order(server, 'alice', small.id);
    await until(server, 'alice', waiting.id, 'in_progress');
    const other = await order(server, 'bob', (await (await send(server, 'bob', 20)).json()).id);
    assert.equal((await until(server, 'bob', other.id, 'completed')).request_counts.completed, 20);
    assert.equal((await until(server, 'alice', waiting.id, 'in_progress')).request_counts.completed, 0);
    assert.equal((await server.fetch(`/v1/files/${large.id}`, { method: 'DELETE', ...as('alice') })).status, 200);
    assert.equal((await until(server, 'alice', waiting.id, 'completed')).request_counts.completed, 5);
  });
});

describe('slots that a tenant has saved', () => {
  const save = (server, key, filename) => post(server, '/slots/0?action=save', { filename }, as(key));
  const question = { prompt: 'The relay runner waits at the post. '.repeat(12), n_predict: 8, id_slot: 0 };
  const compute = (server, key) => ask(server, '/completion', question, as(key));
  const saved = async (response) => {
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()).n_written;
  };

  it('leave others their room, also after a restart, where a server without keys lets them have all', async (t) => {
    const dir = await folder(t);
    const flags = [...demo, '-np', '2', '-c', '4096', '--slot-save-path', dir];
    const first = await startFor(t, flags);
    await compute(first, 'alice');
    const bytes = await saved(await save(first, 'alice', 'a0'));
    await first.stop();

    const most = Math.ceil((10 * bytes) / 2 ** 20);
    const second = await startFor(t, [...flags, '--slot-save-mib', `${most}`]);
    for (const key of ['alice', 'bob']) await compute(second, key);
    const fits = Math.floor((most * 2 ** 20) / 4 / bytes);
    for (let i = 1; i < fits; ++i) await saved(await save(second, 'alice', `a${i}`));
    const error = await refused(await save(second, 'alice', `a${fits}`), 413);
    assert.equal(error.param, 'filename');
    const told = `your files may have ${most * 2 ** 18} together, a fourth of --slot-save-mib`;
    assert.ok(error.message.includes(told), error.message);
    await saved(await save(second, 'alice', 'a0'));
    await saved(await save(second, 'bob', 'b0'));
    await second.stop();

    const open = await start(t, [...flags, '--slot-save-mib', `${most}`]);
    await ask(open, '/completion', question);
    for (let i = 0; i < fits; ++i) await saved(await post(open, '/slots/0?action=save', { filename: `c${i}` }));
    await saved(await post(open, '/slots/0?action=save', { filename: 'one more than a fourth' }));
  });
});
