// What is quick stays quick while the model computes.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, endless, pieceOf, post, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

for (const [name, flags, most] of [
  // Small batches and impatient streams: a fast machine reads the whole prompt while a stream may wait for it, or
  // between two looks at the metrics.
  ['demo', [...demo, '-np', '4', '-c', '40960', '-b', '16', '--itl-target', '5,5,5'], 2500],
  ['simulated', [...sim, '-np', '2', '-c', '400000', '-b', '512'], 150_000],
]) {
  describe(`while the ${name} model reads a long prompt`, async () => {
    const server = await start(test, flags);
    const { limits } = await (await server.fetch('/props')).json();
    const length = Math.min(limits.context_tokens - 200, most);
    const body = { prompt: new Array(length).fill(300), cache_prompt: false };

    it('/health, /ready, /metrics and /props answer before it does', async () => {
      let finished = false;
      const long = ask(server, '/v1/completions', { ...body, max_tokens: 190, ignore_eos: true });
      long.then(() => (finished = true));
      await server.until((metrics) => metrics.value('chasqui_requests_running') === 1);
      for (const path of ['/health', '/ready', '/metrics', '/props', '/v1/models']) {
        const response = await server.fetch(path);
        await response.text();
        assert.equal(response.status, 200, path);
        assert.ok(!finished, `${path} answered after the prompt`);
      }
      assert.equal((await long).usage.prompt_tokens, length);
    });

    it('a running stream goes on, and the prompt is read between its tokens', async () => {
      const running = await streamChat(server, 'go on', endless);
      await running.nextText();
      let pieces = 0;
      const left = assert.rejects(running.collect(() => ++pieces)); // read all the time, so that it is not cut
      const long = ask(server, '/v1/completions', { ...body, max_tokens: 1 });
      const samples = [];
      await server.until((metrics) => {
        if (metrics.value('chasqui_requests_running') === 2) samples.push(metrics);
        return samples.length > 0 && metrics.value('chasqui_requests_running') === 1;
      }, 'the prompt is read');
      // Only the stream has made decode steps in the time between the samples, and only the prompt had others.
      const [first, last] = [samples[0], samples.at(-1)];
      assert.ok(last.steps('prefill') - first.steps('prefill') >= 3, 'the prompt was read in pieces');
      assert.ok(last.steps('decode') - first.steps('decode') >= 3, 'the stream stood still while the prompt was read');
      await long;
      const before = pieces;
      await server.until(() => pieces >= before + 5, 'the stream goes on');
      running.leave();
      await left;
      await server.idle();
    });
  });
}

describe('while a huge body is read and turned into tokens', async () => {
  const server = await start(test, [...sim, '-np', '2', '-c', '4000']);

  it('streams go on', async () => {
    const stream = await streamChat(server, 'the neighbour', { ignore_eos: true, max_tokens: 1500 });
    let pieces = 0;
    const all = stream.collect((chunk) => (pieces += pieceOf(chunk) ? 1 : 0));
    const content = 'word '.repeat(1_000_000);
    const response = await post(server, '/v1/chat/completions', { messages: [{ role: 'user', content }] });
    const { error } = await response.json();
    assert.equal(error.type, 'exceed_context_size_error');
    await all;
    assert.ok(pieces > 500);
    assert.equal((await answer(server, 'say: fine')).text, 'fine');
  });
});

// Of any client: each takes half a second of one of two threads. (/v1/messages/count_tokens refuses such a text at once:
// it is longer than the context.)
describe('while many long texts are turned into tokens', async () => {
  const server = await start(test, demo);

  it('a question is answered before them', async () => {
    const content = 'word '.repeat(200_000);
    let ended = 0;
    const long = Array.from({ length: 12 }, async () => {
      await (await post(server, '/tokenize', { content })).arrayBuffer();
      ++ended;
    });
    await server.until((metrics) => metrics.value('chasqui_offload_queue_jobs') + ended >= 10, 'all are there');
    const before = ended;
    await answer(server, 'What is Chasqui?', { max_tokens: 1 });
    // The two that ran when it came, and what ends while it is answered on a machine with other work.
    assert.ok(ended - before <= 4, `${ended - before} texts came first`);
    await Promise.all(long);
  });
});
