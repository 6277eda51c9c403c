// What an answer repeats of its request, what an error quotes, and what clients do not read: none of it may take the
// server's memory, or the time of its loop.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import * as test from 'node:test';

import { ask, post, refused, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

describe('what /v1/responses repeats', async () => {
  const server = await start(test, demo);
  const respond = (fields) => post(server, '/v1/responses', { input: 'x', max_output_tokens: 1, ...fields });
  const long = 'x'.repeat(17_000);

  const cases = { metadata: { a: long }, user: long, safety_identifier: long, prompt_cache_key: long, service_tier: long, previous_response_id: long,
    reasoning: { summary: long } };
  for (const [field, value] of Object.entries(cases)) {
    it(`${field} is short, or refused by name`, async () => {
      const error = await refused(await respond({ [field]: value }), 400);
      assert.equal(error.param, field);
      assert.match(error.message, /at most 16384 bytes/);
    });
  }

  it('text is as long as a schema may be, or refused by name', async () => {
    const error = await refused(await respond({ text: { format: { type: 'text', name: 'x'.repeat(100_000) } } }), 400);
    assert.equal(error.param, 'text');
  });

  it('tools that the model is not shown are bounded together', async () => {
    const tools = Array.from({ length: 200 }, () => ({ type: 'web_search', filters: 'x'.repeat(10_000) }));
    assert.equal((await refused(await respond({ tools }), 400)).param, 'tools');
    const few = await (await respond({ tools: tools.slice(0, 10) })).json();
    assert.equal(few.tools.length, 10);
  });

  it('ordinary ones come back', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`key${i}`, 'é'.repeat(400)]));
    const answer = await (await respond({ metadata, user: 'ann', prompt_cache_key: 'k', reasoning: { effort: 'low' } })).json();
    assert.deepEqual(answer.metadata, metadata);
    assert.equal(answer.user, 'ann');
    assert.deepEqual(answer.reasoning, { effort: 'low' });
  });
});

describe('an error', async () => {
  const server = await start(test, demo);

  it('is cut where it quotes a long text, between characters', async () => {
    for (const before of ['', 'a']) {
      const error = await refused(await server.fetch(`/v1/responses/${before}${encodeURIComponent('é'.repeat(1200))}`), 404);
      assert.match(error.message, /é…$/);
      assert.ok(Buffer.byteLength(error.message) <= 2048 + 3, `${error.message.length}`);
    }
  });

  it('names what a grammar was made of', async () => {
    const impossible = { type: 'string', allOf: [{ format: 'email' }, { format: 'uri' }, { format: 'ipv6' }] };
    const ofSchema = await refused(await post(server, '/v1/chat/completions', { messages: user('x'), json_schema: impossible }), 400);
    assert.equal(ofSchema.param, 'json_schema');
    assert.match(ofSchema.message, /^json_schema cannot be kept to: its grammar /);
  });

  it('says that a number is too large', async () => {
    for (const body of ['{"messages":[{"role":"user","content":"x"}],"zzz":1e999}',
      '{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"a","parameters":{"minimum":-1e400}}}]}']) {
      assert.match((await refused(await post(server, '/v1/chat/completions', body), 400)).message, /a number that is too large/);
    }
  });
});

describe('clients that do not read', async () => {
  const server = await start(test, [...demo, '--timeout', '600']);
  const pieces = JSON.stringify({ content: 'x'.repeat(1_000_000), with_pieces: true });

  it('hold at most 256 MiB of large answers together; small ones are served beside them', async () => {
    const sockets = [];
    for (let i = 0; i < 16; ++i) { // eleven answers have room
      const socket = net.connect(server.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.pause();
      socket.on('error', () => {});
      socket.write(`POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${pieces.length}\r\n\r\n${pieces}`);
      sockets.push(socket);
    }
    // Each wait has its own time: a busy machine turns so many texts into tokens slowly.
    await server.until((metrics) => metrics.value('chasqui_http_answer_bytes') > 100 * 2 ** 20);
    const held = await server.until((metrics) => metrics.value('chasqui_http_answers_refused_total') >= 4);
    const bytes = held.value('chasqui_http_answer_bytes');
    assert.ok(bytes > 100 * 2 ** 20 && bytes <= 256 * 2 ** 20, `${bytes}`);
    assert.ok((await ask(server, '/v1/chat/completions', { messages: user('x'), max_tokens: 4 })).choices[0].message.content.length > 0);
    const refusal = await post(server, '/tokenize', pieces);
    assert.equal(refusal.headers.get('retry-after'), '1');
    await refused(refusal, 503);
    for (const socket of sockets) socket.destroy();
    await server.until((metrics) => metrics.value('chasqui_http_answer_bytes') < 65536);
    assert.equal((await post(server, '/tokenize', pieces)).status, 200);
  });
});
