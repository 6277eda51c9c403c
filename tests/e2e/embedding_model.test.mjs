// A server with a model that is made for embeddings alone: it embeds, and says of everything else that it does not.
import assert from 'node:assert/strict';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, post, refused, user } from './client.mjs';
import { demo, start } from './server.mjs';

const named = (name) => path.join(path.dirname(fileURLToPath(import.meta.url)), `../../models/demo/chasqui-${name}.gguf`);
const model = named('embed');

test.it('a model for embeddings serves them with any number of slots, and refuses to generate', async (t) => {
  for (const slots of ['1', '3', '8']) {
    const server = await start(t, [...demo, '-m', model, '-np', slots]);
    const vector = (await ask(server, '/v1/embeddings', { input: 'What is a slot?' })).data[0].embedding;
    assert.ok(vector.length > 1);
    for (const stream of [false, true]) {
      const error = await refused(
        await post(server, '/v1/chat/completions', { messages: user('hello'), max_tokens: 4, stream }), 400);
      assert.deepEqual([error.param, /embeddings/.test(error.message)], ['model', true]);
    }
    await refused(await post(server, '/v1/completions', { prompt: 'hello' }), 400);
    assert.equal((await server.fetch('/health')).status, 200);
    await server.stop();
  }
});

test.it('an encoder sees a long text whole: its first token is another one where the last word is', async (t) => {
  const server = await start(t, [...demo, '-m', named('rerank'), '--pooling', 'cls']);
  const embed = async (input) => (await ask(server, '/v1/embeddings', { input })).data.map((one) => one.embedding);
  const filler = 'stones and rain '.repeat(100); // far more than a chunk
  const [slot, cache, again] = await embed([`slot ${filler} slot`, `slot ${filler} cache`, `slot ${filler} slot`]);
  const apart = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])));
  assert.ok(apart(slot, again) < 1e-4, 'the same text');
  assert.ok(apart(slot, cache) > 1e-3, `${apart(slot, cache)}`);
  const [alone] = await embed([`slot ${filler} cache`]);
  assert.ok(apart(alone, cache) < 1e-4, 'in whatever company');
});

test.it('a ranking encoder finds what stands at the end of a long document', async (t) => {
  const server = await start(t, [...demo, '-m', named('rerank')]);
  const filler = 'stones and rain '.repeat(60);
  const documents = [filler, `${filler} eviction`, `eviction ${filler}`];
  const { results } = await ask(server, '/v1/rerank', { query: 'eviction', documents });
  const score = (index) => results.find((one) => one.index === index).relevance_score;
  assert.ok(score(1) > score(0) + 0.04 && score(2) > score(0) + 0.04, JSON.stringify(results));
});
