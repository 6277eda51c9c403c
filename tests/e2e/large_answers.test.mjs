// Answers that are long because of what was asked for, not of what was said: they are told once, and not written on the
// loop, take little memory while they wait, and one stream has few readers.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import * as test from 'node:test';

import { ask, endless, post, refused, user } from './client.mjs';
import { MiB, many } from './hostile_inputs.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;
const resident = (server, name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) * 1024;

describe('large answers', async () => {
  const server = await start(test, [...demo, '-np', '4', '-c', '8192', '--no-compression']);
  const jobs = async () => (await server.metrics()).value('chasqui_offload_jobs_total');

  it('tell a field once, however often it is asked for', async () => {
    const fields = { prompt: 'x', n_predict: 1, stop: ['q'], response_fields: many(64, () => 'generation_settings/stop') };
    const response = await post(server, '/completion', fields);
    assert.equal(await response.text(), '{"generation_settings/stop":["q"]}');
  });

  it('are written in the pool', async () => {
    for (const [path, fields, reading] of [
      ['/completion', { prompt: 'x', n_predict: 100, n_probs: 100, ignore_eos: true }, 1],
      ['/v1/completions', { prompt: 'x', max_tokens: 300, logprobs: 20, ignore_eos: true }, 1],
      ['/v1/chat/completions', { messages: user('x'), max_tokens: 300, logprobs: true, top_logprobs: 20, ignore_eos: true }, 1],
    ]) {
      const before = await jobs();
      await ask(server, path, { ...fields, n: 2, n_predict: 1, max_tokens: 1 });
      assert.equal(await jobs(), before + reading, `${path}, a short one`);
      await ask(server, path, fields);
      assert.equal(await jobs(), before + 2 * reading + 1, `${path}, a long one`);
    }
  });

  it('take memory for the tokens that there are, not for how far a request looks back', { skip: process.platform !== 'linux' }, async () => {
    const body = { prompt: many(8, () => 'x'), n: 16, max_tokens: 1, temperature: 0, dry_multiplier: 1,
      dry_penalty_last_n: 1_000_000, repeat_last_n: 1_000_000, repeat_penalty: 1.1 };
    await ask(server, '/v1/completions', { ...body, dry_penalty_last_n: 10, repeat_last_n: 10 });
    writeFileSync(`/proc/${server.pid}/clear_refs`, '5'); // the most memory counts from here on
    const before = resident(server, 'VmRSS');
    await ask(server, '/v1/completions', body);
    const grown = resident(server, 'VmHWM') - before;
    assert.ok(grown < 64 * MiB, `${grown / MiB} MiB`);
  });

  it('have few readers where they are streams', async () => {
    const controller = new AbortController();
    const options = { headers: { 'x-conversation-id': 'crowd' }, signal: controller.signal };
    const first = await post(server, '/v1/chat/completions', { messages: user('x'), stream: true, ...endless }, options);
    assert.equal(first.status, 200);
    const { limits } = await (await server.fetch('/props')).json();
    const again = () => server.fetch('/v1/stream?conv_id=crowd', { signal: controller.signal });
    for (let i = 1; i < limits.resume_readers; ++i) assert.equal((await again()).status, 200);
    assert.match((await refused(await again(), 429)).message, /connections read one stream/);
    assert.equal((await server.fetch('/v1/stream?conv_id=crowd', { method: 'DELETE' })).status, 204);
    controller.abort();
  });
});
