// What a client has had erased is on no disk, whatever happens to the server after it has said so.
// CHASQUI_ERASE_ROUNDS says how often the server is killed (20).
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

const rounds = Number(process.env.CHASQUI_ERASE_ROUNDS ?? 20);
const text = (i, words = 60) => `Story ${i} of its own. ${`The runner ${i} passes the river and waits for rain. `.repeat(words / 10)}`;

const left = async (folder) => (await fs.readdir(folder).catch(() => [])).filter((name) => name !== 'lock');

describe('after a kill', () => {
  it(`nothing is left of what was erased before, ${rounds} times`, async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    const flags = [...demo, '-np', '4', '--cache-disk', dir, '--cache-ram', '8', '--session-dir', dir];
    let files = 0;
    let sessions = 0;
    for (let round = 0; round < rounds; round++) {
      const server = await start(t, flags);
      const answers = Array.from({ length: 8 }, (_, i) =>
        ask(server, '/v1/completions', { prompt: text(round * 8 + i, 10 + 30 * (i % 3)), max_tokens: 4 }));
      const opened = Array.from({ length: 3 }, (_, i) => ask(server, '/v1/sessions', { text: text(i) }));
      const ids = (await Promise.all(opened)).map(({ id }) => id);
      await Promise.all(ids.map((id) => ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 3 })));
      await Promise.all(answers);
      sessions += (await left(path.join(dir, 'sessions'))).length;
      await Promise.all(ids.map((id) => server.fetch(`/v1/sessions/${id}`, { method: 'DELETE' })));
      const { n_erased: erased } = await ask(server, '/slots/0?action=erase', {});
      server.signal('SIGKILL');
      await server.ended;
      files += erased;
      assert.deepEqual(await left(path.join(dir, 'snapshots')), [], `round ${round}: files of what was erased`);
      assert.deepEqual(await left(path.join(dir, 'sessions')), [], `round ${round}: files of sessions that had ended`);
    }
    assert.ok(files > rounds && sessions === 3 * rounds, 'there was nothing to erase');
  });
});
