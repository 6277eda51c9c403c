// The table of limits: printed, documented, in force, and seen by those who look.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, post, refused } from './client.mjs';
import { run, sim, start } from './server.mjs';

const { describe, it } = test;
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const file = (name) => readFileSync(path.join(root, name), 'utf8');
const table = async (...flags) => JSON.parse((await run(['config', '--limits', '--json', ...flags])).stdout);

describe('the table of limits', async () => {
  it('is what docs/limits.md says', async () => {
    const { code, stdout } = await run(['config', '--limits']);
    assert.equal(code, 0);
    assert.equal(stdout, file('docs/limits.md'));
  });

  it('names flags and metrics that there are', async () => {
    const { stdout: help } = await run(['serve', '--help']);
    const metrics = file('docs/metrics.md');
    for (const [name, { flag, metric }] of Object.entries(await table())) {
      if (flag) assert.ok(help.includes(flag), `${name}: ${flag}`);
      if (metric) assert.ok(metrics.includes(`\`${metric}\``), `${name}: ${metric}`);
    }
  });

  it('shows what was set instead', async () => {
    const limits = await table('--queue-requests', '7', '--timeout', '3');
    assert.equal(limits.queue_requests.setting, '7');
    assert.equal(limits.write_seconds.setting, '3');
    assert.ok(!('setting' in limits.sessions));
    const { stdout } = await run(['config', '--limits', '--queue-requests', '7']);
    assert.match(stdout, /`queue_requests` \| \*\*7\*\*, not 10000 /);
  });

  it('is in /props as it is in force', async (t) => {
    const server = await start(t, [...sim, '--queue-requests', '7', '--sessions-max', '9', '--drain-time', '4']);
    const { limits } = await (await server.fetch('/props')).json();
    for (const name of Object.keys(await table())) assert.ok(name in limits, name);
    assert.deepEqual([limits.queue_requests, limits.sessions, limits.drain_seconds], [7, 9, 4]);
    assert.equal(limits.header_bytes, 16 * 1024);
  });
});

describe('what the table says of a request', async () => {
  const server = await start(test, sim);
  const { limits } = await (await server.fetch('/props')).json();
  const completion = (fields) => post(server, '/v1/completions', { prompt: 'x', max_tokens: 1, ...fields });
  const filled = (n, what) => Array.from({ length: n }, (_, i) => what(i));

  for (const [name, fields] of [
    ['stop', (n) => ({ stop: filled(n, (i) => `s${i}`) })],
    ['stop_bytes', (n) => ({ stop: 'x'.repeat(n) })],
    ['stops_bytes', (n) => ({ stop: filled(Math.ceil(n / 1000), (i) => 'x'.repeat(Math.min(1000, n - 1000 * i))) })],
    ['answers', (n) => ({ n })],
    ['requests', (n) => ({ prompt: filled(n, () => 'x') })],
  ]) {
    it(`${name} holds to the last one, and no further`, async () => {
      const most = limits[name];
      await ask(server, '/v1/completions', { prompt: 'x', max_tokens: 1, ...fields(most) });
      await refused(await completion(fields(most + 1)), 400);
    });
  }

  it('json_depth holds', async () => {
    const nested = (depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const body = (depth) => `{"prompt": "x", "max_tokens": 1, "metadata": ${nested(depth)}}`;
    const error = await refused(await post(server, '/v1/completions', body(limits.json_depth)), 400);
    assert.match(error.message, new RegExp(`at most ${limits.json_depth} levels`));
    const within = await post(server, '/v1/completions', body(limits.json_depth - 2));
    assert.doesNotMatch(await within.text(), /nested too deeply/);
  });
});
