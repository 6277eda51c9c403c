// Idempotency-Key: a request that is sent again gets the first answer, and is not computed again.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import OpenAI from 'openai';

import { ask, endless, events, post, refused, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

const chat = '/v1/chat/completions';
const body = { messages: user('What is Chasqui?'), max_tokens: 12, temperature: 1 };
const keyed = (key, more = {}) => ({ headers: { 'idempotency-key': key, ...more } });
const finished = async (server) => (await server.metrics()).sum('chasqui_requests_finished_total');

describe('a request with an Idempotency-Key', async () => {
  const server = await start(test, demo);

  it('is answered once', async () => {
    const before = await finished(server);
    const first = await post(server, chat, body, keyed('one'));
    const again = await post(server, chat, body, keyed('one'));
    assert.equal(first.headers.get('idempotent-replayed'), null);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(again.headers.get('content-type'), 'application/json');
    assert.equal(await again.text(), await first.text());
    assert.equal(await finished(server), before + 1);
    assert.notEqual((await ask(server, chat, body, keyed('two'))).id, (await ask(server, chat, body, keyed('three'))).id);
    const metrics = await server.metrics();
    assert.equal(metrics.sum('chasqui_idempotent_replays_total'), 1);
    assert.equal(metrics.sum('chasqui_idempotent_answers'), 3);
    assert.ok(metrics.sum('chasqui_idempotent_answer_bytes') > 1000);
  });

  it('gets the same stream again', async () => {
    const read = async () => {
      const out = [];
      for await (const event of events(await post(server, chat, { ...body, stream: true }, keyed('stream')))) out.push(event);
      return out;
    };
    const first = await read();
    const before = await finished(server);
    assert.deepEqual(await read(), first);
    assert.equal(first.at(-1), '[DONE]');
    assert.equal(await finished(server), before);
  });

  it('is refused where the key was for another request', async () => {
    await ask(server, chat, body, keyed('other'));
    for (const [path, more] of [[chat, { max_tokens: 13 }], ['/v1/messages', {}]]) {
      const response = await post(server, path, { ...body, ...more }, keyed('other'));
      assert.equal(response.status, 422);
      const { error } = await response.json();
      assert.match(error.message, /Idempotency-Key/);
    }
  });

  it('may be sent again where it was refused', async () => {
    await refused(await post(server, chat, { ...body, temperature: -1 }, keyed('bad')), 400);
    await ask(server, chat, body, keyed('bad'));
  });

  it('may be sent again where its stream ended in an error', async (t) => {
    const busy = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-timeout', '2']);
    const running = await streamChat(busy, 'go on', endless);
    await running.nextText();
    running.readOn();
    const late = async (key) => (await post(busy, chat, { ...body, stream: true }, keyed(...key))).text();
    const keys = [['late'], ['late-and-named', { 'x-resumable': '1' }]];
    for (const key of keys) assert.match(await late(key), /queue timeout/);
    running.leave();
    await busy.idle();
    for (const key of keys) assert.match(await late(key), /"finish_reason":"\w+"/, key[0]);
  });

  it('needs a key that is one', async () => {
    for (const key of ['', 'a b', 'x'.repeat(256)]) {
      const error = await refused(await post(server, chat, body, keyed(key)), 400);
      assert.equal(error.param, 'Idempotency-Key');
    }
    await ask(server, chat, body, keyed('x'.repeat(255)));
  });

  it('holds for every route that is posted to', async () => {
    for (const [path, fields] of [['/tokenize', { content: 'x' }], ['/v1/embeddings', { input: 'x' }], ['/v1/responses', { input: 'x', max_output_tokens: 4 }],
      ['/completion', { prompt: 'x', n_predict: 4 }], ['/v1/messages', { ...body }]]) {
      const first = await ask(server, path, fields, keyed(`route ${path}`.replace(' ', ':')));
      assert.deepEqual(await ask(server, path, fields, keyed(`route:${path}`)), first);
    }
  });

  it('works with the official client', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const wish = () => client.chat.completions.create({ model: 'x', ...body }, { idempotencyKey: 'sdk', headers: { 'idempotency-key': 'sdk' } });
    assert.deepEqual(await wish(), await wish());
  });

  it('hashes bodies of every size whole', async () => {
    const long = (middle) => ({ ...body, messages: user('x'), ignored: `${'a'.repeat(400_000)}${middle}${'a'.repeat(400_000)}` });
    await ask(server, chat, long('b'), keyed('long'));
    assert.equal((await post(server, chat, long('c'), keyed('long'))).status, 422);
    assert.equal((await post(server, chat, long('b'), keyed('long'))).headers.get('idempotent-replayed'), 'true');
  });
});

describe('a request that is under way', async () => {
  const server = await start(test, sim);

  it('is not answered a second time, and may be sent again when its client has left', async () => {
    const wish = { temperature: 0, messages: user('x'), ...endless, stream: true };
    const controller = new AbortController();
    const response = await post(server, chat, wish, { ...keyed('running'), signal: controller.signal });
    await events(response).next();
    const error = await refused(await post(server, chat, wish, keyed('running')), 409);
    assert.match(error.message, /under way/);
    controller.abort();
    await server.idle();
    await ask(server, chat, { ...body }, keyed('running'));
  });
});

describe('keys of tenants', async () => {
  const server = await start(test, [...sim, '--api-key', 'key-of-ann,key-of-bob']);
  server.key = 'key-of-ann';

  it('are their own', async () => {
    const as = (name) => keyed('same', { authorization: `Bearer key-of-${name}` });
    const ann = await ask(server, chat, { ...body, messages: user('say: secret') }, as('ann'));
    const bob = await ask(server, chat, { ...body, messages: user('say: hello') }, as('bob'));
    assert.equal(ann.choices[0].message.content, 'secret');
    assert.equal(bob.choices[0].message.content, 'hello');
  });
});
