// A server with a model that is made for embeddings alone: it embeds, and says of everything else that it does not.
import assert from 'node:assert/strict';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, post, refused, user } from './client.mjs';
import { demo, start } from './server.mjs';

const model = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-embed.gguf');

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
