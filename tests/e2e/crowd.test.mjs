// More clients at once than there are slots, none of which tries again.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, endless, post, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const times = (n, what) => Promise.all(Array.from({ length: n }, (_, i) => what(i)));

describe('a crowd', async () => {
  it('of 500 clients is answered, each of them', async (t) => {
    const server = await start(t, [...demo, '-np', '64', '-c', '32768']);
    const all = await times(500, (i) => answer(server, `Hello, I am number ${i}`, { max_tokens: 4, ignore_eos: true }));
    for (const { usage } of all) assert.equal(usage.completion_tokens, 4);
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_requests_finished_total', { reason: 'length' }), 500);
    assert.equal(metrics.sum('chasqui_requests_refused_total'), 0);
    assert.equal(metrics.value('chasqui_offload_refused_total'), 0);
  });

  it('of 64 readers of streams on two slots hears all, and where it stands meanwhile', async (t) => {
    const server = await start(t, [...demo, '-np', '2']);
    const body = (i) => ({ stream: true, max_tokens: 20, ignore_eos: true, messages: user(`Hello, number ${i}`) });
    const texts = await times(64, async (i) => (await post(server, '/v1/chat/completions', body(i))).text());
    for (const text of texts) assert.match(text, /"finish_reason":"length"[\s\S]*data: \[DONE\]\n\n$/);
    assert.equal((await server.idle()).sum('chasqui_requests_refused_total'), 0);
  });

  it('that shares a long prompt is answered as well', async (t) => {
    const server = await start(t, [...demo, '-np', '8', '-c', '16384']);
    const shared = 'The relay runner carries a message over the mountains. '.repeat(60);
    const all = await times(24, (i) => answer(server, `${shared} Who is number ${i}?`, { max_tokens: 4, ignore_eos: true }));
    for (const { usage } of all) assert.equal(usage.completion_tokens, 4);
    assert.equal((await server.idle()).sum('chasqui_requests_refused_total'), 0);
  });
});

describe('a client that waits', async () => {
  it('and leaves frees its place at once', async (t) => {
    const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '1']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    running.readOn();
    for (let i = 0; i < 5; ++i) {
      const waiting = await streamChat(server, `number ${i}`, endless);
      await server.until((metrics) => metrics.value('chasqui_requests_in_flight') === 2);
      waiting.leave();
      await server.until((metrics) => metrics.value('chasqui_requests_in_flight') === 1);
    }
    assert.equal((await server.metrics()).sum('chasqui_requests_refused_total'), 0);
    running.leave();
  });
});

describe('tenants that share a server', async () => {
  it('are served while another sends hundreds of large bodies', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
    t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
    const keys = path.join(folder, 'keys');
    writeFileSync(keys, 'loud name=loud in_flight=1000\nquiet name=quiet\n');
    const server = await start(t, [...sim, '-np', '4', '--api-key-file', keys]);
    server.key = 'quiet';
    const bearer = (key) => ({ headers: { authorization: `Bearer ${key}` } });
    const large = { messages: user('word '.repeat(1800)) };
    const loud = times(400, async () => (await post(server, '/apply-template', large, bearer('loud'))).status);
    for (let i = 0; i < 10; ++i) assert.equal((await answer(server, `say: ${i}`, {}, bearer('quiet'))).text, `${i}`);
    assert.deepEqual([...new Set(await loud)], [200]);
  });

  it('have a quota for requests that take no slot, too', async (t) => {
    const server = await start(t, [...sim, '-np', '1', '--tenant-requests', '1']);
    const statuses = await times(100, async () => (await post(server, '/tokenize', { content: 'word '.repeat(50000) })).status);
    assert.ok(statuses.includes(200) && statuses.includes(429), `${statuses}`);
    assert.equal((await post(server, '/tokenize', { content: 'x' })).status, 200);
  });
});
