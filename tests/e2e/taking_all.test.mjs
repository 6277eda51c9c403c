// Clients that take what all of them share, as much of it as there is: memory for messages on their way, places in the
// queue, threads that read bodies. What others need is there all the same.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { endless, post, refused, retryAfter, streamChat, user } from './client.mjs';
import { folder, frame, Raw, startWithSocket } from './frames.mjs';
import { MiB, cases, many } from './hostile_inputs.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const bearer = (key) => ({ headers: { authorization: `Bearer ${key}` } });

describe('messages of the local socket that stand still', () => {
  it('are given up for a large one that comes without a pause', async (t) => {
    const server = await startWithSocket(t, sim);
    const half = Buffer.concat([Buffer.from([0, 0, 128, 0]), Buffer.alloc(4 * MiB, ' ')]); // of 8 MiB
    const still = await Promise.all(many(65, () => Raw.connect(t, server.socket)));
    for (const raw of still) raw.write(half);
    // On a busy machine the first of them are given up for the last.
    await server.until((metrics) => metrics.value('chasqui_socket_incomplete_bytes') >= 250 * MiB, 'they hold nearly all');
    const large = await Raw.connect(t, server.socket);
    large.write(frame({ id: 'large', event: 'health', padding: 'x'.repeat(7 * MiB) }));
    assert.equal((await large.next()).id, 'large');
    const given = await Promise.race(still.map((raw) => raw.next()));
    assert.deepEqual([given.id, given.code], [null, 'overloaded']);
  });
});

describe('a tenant that fills the queue', () => {
  it('leaves places for others', async (t) => {
    const file = path.join(await folder(t), 'keys');
    writeFileSync(file, 'alice in_flight=1000\nbob\n');
    const flags = [...sim, '-np', '1', '-c', '500000', '--queue-requests', '7', '--api-key-file', file];
    const server = await start(t, flags);
    server.key = 'bob';
    const open = [];
    for (let i = 0; i < 8; ++i) open.push(await streamChat(server, `go on ${i}`, endless, bearer('alice')));
    for (const running of open) running.readOn();
    const alices = await post(server, '/generate', { prompt: 'x' }, bearer('alice'));
    assert.ok(retryAfter(alices) > 0);
    await refused(alices, 503);
    const bobs = await streamChat(server, 'go on', endless, bearer('bob'));
    bobs.readOn();
    await refused(await post(server, '/generate', { prompt: 'x' }, bearer('bob')), 503);
    for (const running of [...open, bobs]) running.leave();
  });
});

describe('all that is read or written of a long request', () => {
  const long = { id: 'x'.repeat(20_000) };
  const calls = cases.find(([name]) => name === 'outputs of calls that there are not')[2];

  it('counts as long, so that a thread stays free for short ones', async (t) => {
    const server = await start(t, [...demo, '-np', '2', '--slot-save-path', await folder(t)]);
    const jobs = async () => (await server.metrics()).value('chasqui_offload_long_jobs_total');
    for (const [route, body, expected, options] of [
      ['/v1/responses', calls, 2], // reading, and rendering
      ['/v1/responses/input_tokens', calls, 2],
      ['/v1/chat/completions/control', long, 1],
      ['/slots/0?action=save', { filename: 'x'.repeat(20_000) }, 1],
      ['/v1/streams/lookup', { conversation_ids: [long.id] }, 1],
      ['/v1/chat/completions', { messages: user('x'.repeat(600_000)) }, 2, { headers: { 'idempotency-key': 'k' } }], // and its hash
      ['/tokenize', { content: 'ab '.repeat(300_000) }, 2], // and its compression
      ['/tokenize', { content: 'x' }, 0],
    ]) {
      const before = await jobs();
      const response = await post(server, route, body, options);
      await response.text();
      assert.equal(await jobs(), before + expected, `${route}: ${response.status}`);
    }
  });

  it('when it goes on with a long conversation as well', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '100000']);
    const jobs = async () => (await server.metrics()).value('chasqui_offload_long_jobs_total');
    const first = await post(server, '/v1/responses', { input: 'x'.repeat(20_000), max_output_tokens: 1 });
    const { id } = await first.json();
    const before = await jobs();
    const next = await post(server, '/v1/responses', { input: 'y', previous_response_id: id, max_output_tokens: 1 });
    assert.equal(next.status, 200, await next.text());
    assert.equal(await jobs(), before + 1);
  });
});
