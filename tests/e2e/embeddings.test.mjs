// Vectors of texts, beside generation: OpenAI's client, Ollama's, and llama-server's own routes.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const model = 'chasqui-demo';
const texts = ['What is Chasqui?', 'A server of language models.', 'Rain in Lima', 'word '.repeat(300)];
const length = (vector) => Math.hypot(...vector);
const cosine = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0) / length(a) / length(b);
const greatest = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])));

async function post(server, target, body) {
  const response = await server.fetch(target, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

describe('embeddings', async () => {
  const server = await start(test, demo);
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'unused', maxRetries: 0 });
  const embed = async (input, more = {}) => {
    const body = await client.embeddings.create({ model, input, encoding_format: 'float', ...more });
    return body.data.map((one) => one.embedding);
  };

  it('are the same together, alone and again', async () => {
    const together = await embed(texts);
    assert.equal(together.length, texts.length);
    for (const [i, text] of texts.entries()) {
      const [alone] = await embed(text);
      const [again] = await embed([text]);
      assert.deepEqual(again, alone);
      assert.ok(cosine(together[i], alone) > 0.9999, `${cosine(together[i], alone)}`);
      assert.ok(Math.abs(length(alone) - 1) < 1e-4);
    }
    assert.ok(cosine(together[0], together[2]) < 0.999, 'different texts have different vectors');
  });

  it('of clients that ask together are those that each gets alone', async () => {
    const mine = Array.from({ length: 24 }, (_, i) => Array.from({ length: 1 + i % 3 }, (_, j) => `${texts[(i + j) % 3]} ${i} ${j} `.repeat(1 + i % 5)));
    const together = await Promise.all(mine.map((inputs) => embed(inputs)));
    for (const [i, inputs] of mine.entries()) {
      const alone = await embed(inputs);
      assert.equal(together[i].length, inputs.length);
      // Of two of these texts, 0.036 at least. What shares a batch has other last digits.
      for (const [j, vector] of alone.entries()) assert.ok(greatest(vector, together[i][j]) < 5e-3, `input ${j} of client ${i}`);
    }
  });

  it('come as numbers or as base64', async () => {
    const [numbers] = await embed(texts[0]);
    const packed = await client.embeddings.create({ model, input: texts[0] }); // the client's default, which it unpacks
    assert.ok(greatest(packed.data[0].embedding, numbers) < 1e-6);
    const raw = await post(server, '/v1/embeddings', { input: texts[0], encoding_format: 'base64' });
    assert.equal(Buffer.from(raw.body.data[0].embedding, 'base64').length, 4 * numbers.length);
  });

  it('count tokens, of texts and of tokens', async () => {
    const { body: { tokens } } = await post(server, '/tokenize', { content: texts[1], add_special: true });
    const body = await client.embeddings.create({ model, input: texts[1], encoding_format: 'float' });
    assert.deepEqual(body.usage, { prompt_tokens: tokens.length, total_tokens: tokens.length });
    const [fromTokens] = await embed(tokens);
    assert.deepEqual(fromTokens, body.data[0].embedding);
    const [first, second] = await embed([tokens, tokens.slice(0, 2)]);
    assert.ok(cosine(first, fromTokens) > 0.9999);
    assert.ok(cosine(second, fromTokens) < 0.9999);
  });

  it('can be shorter, and not normalized', async () => {
    const [whole] = await embed(texts[0], { embd_normalize: -1 });
    const [short] = await embed(texts[0], { dimensions: 8 });
    assert.equal(short.length, 8);
    assert.ok(Math.abs(length(short) - 1) < 1e-4);
    assert.ok(cosine(short, whole.slice(0, 8)) > 0.9999);
    const [most] = await embed(texts[0], { embd_normalize: 0 });
    assert.ok(Math.abs(Math.max(...most.map(Math.abs)) - 32760) < 1);
    const [sum] = await embed(texts[0], { embd_normalize: 1 });
    assert.ok(Math.abs(sum.reduce((total, value) => total + Math.abs(value), 0) - 1) < 1e-4);
  });

  it('are the same in every dialect', async () => {
    const [openai] = await embed(texts[0]);
    const native = await post(server, '/embeddings', { content: texts[0] });
    assert.deepEqual(native.body, [{ index: 0, embedding: [openai] }]);
    const ollama = new Ollama({ host: server.url });
    const body = await ollama.embed({ model, input: texts.slice(0, 2) });
    assert.equal(body.embeddings.length, 2);
    assert.ok(cosine(body.embeddings[0], openai) > 0.9999);
    assert.ok(body.prompt_eval_count > 0 && body.total_duration > 1000);
    const older = await ollama.embeddings({ model, prompt: texts[0] });
    assert.ok(cosine(older.embedding, openai) > 0.9999);
  });

  it('of what is too long are those of its beginning, or refused, to Ollama\'s clients', async () => {
    const ollama = new Ollama({ host: server.url });
    const long = 'word '.repeat(20000);
    const [cut] = (await ollama.embed({ model, input: long })).embeddings;
    assert.equal(cut.length, (await embed('a'))[0].length);
    await assert.rejects(ollama.embed({ model, input: long, truncate: false }), /context|tokens/);
  });

  it('are none for nothing, by which Ollama\'s clients load a model', async () => {
    for (const body of [{}, { input: '' }, { input: [] }]) {
      assert.deepEqual((await post(server, '/api/embed', body)).body.embeddings, []);
    }
    for (const body of [{}, { prompt: '' }]) {
      assert.deepEqual((await post(server, '/api/embeddings', body)).body, { embedding: [] });
    }
  });

  it('are more inputs than fit in one go', async () => {
    const many = Array.from({ length: 300 }, (_, i) => `text number ${i}`);
    const vectors = await embed(many);
    assert.equal(vectors.length, many.length);
    const [one] = await embed(many[217]);
    assert.ok(cosine(vectors[217], one) > 0.9999);
  });

  it('come beside streams, which go on', async () => {
    const stream = await client.chat.completions.create(
      { model, messages: [{ role: 'user', content: 'Go on' }], stream: true, max_tokens: 200, ignore_eos: true });
    const waiting = Promise.all(Array.from({ length: 4 }, () => embed(texts)));
    let tokens = 0;
    for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) ++tokens;
    assert.ok(tokens > 50);
    assert.equal((await waiting).length, 4);
  });

  it('refuse what cannot be, naming the field', async () => {
    const cases = [
      ['/v1/embeddings', {}, 'input'],
      ['/v1/embeddings', { input: '' }, 'input'],
      ['/v1/embeddings', { input: [] }, 'input'],
      ['/v1/embeddings', { input: ['a', {}] }, 'input[1]'],
      ['/v1/embeddings', { input: [-1] }, 'input'],
      ['/v1/embeddings', { input: 'a', encoding_format: 'hex' }, 'encoding_format'],
      ['/v1/embeddings', { input: 'a', dimensions: 0 }, 'dimensions'],
      ['/v1/embeddings', { input: 'a', dimensions: 1e6 }, 'dimensions'],
      ['/v1/embeddings', { input: 'a', embd_normalize: -2 }, 'embd_normalize'],
      ['/v1/embeddings', { input: 'a', stream: true }, 'stream'],
      ['/v1/embeddings', { input: Array(2049).fill('a') }, 'input'],
      ['/embeddings', {}, 'content'],
      ['/v1/rerank', { query: 'q', documents: ['a'] }, 'model'],
      ['/rerank', { query: 'q', texts: ['a'] }, 'model'],
      ['/v1/score', { text_1: 'q', text_2: 'a' }, 'model'],
    ];
    for (const [target, body, field] of cases) {
      const answer = await post(server, target, body);
      assert.equal(answer.status, 400, `${target} ${JSON.stringify(body).slice(0, 80)}`);
      assert.equal(answer.body.error.param, field);
    }
    const long = await post(server, '/v1/embeddings', { input: ['a', 'word '.repeat(20000)] });
    assert.equal(long.status, 400);
    assert.equal(long.body.error.type, 'exceed_context_size_error');
    assert.equal(long.body.error.param, 'input[1]');
  });

  it('leave the model listed as llama-server lists it, and its properties alone', async () => {
    const listed = await (await server.fetch('/v1/models')).json();
    assert.equal(listed.models[0].name, model);
    assert.equal(listed.data[0].meta.n_embd, (await embed('a'))[0].length);
    assert.equal((await post(server, '/props', { n_ctx: 3 })).status, 501);
  });
});

describe('pooling', async () => {
  const bodies = {};
  for (const pooling of ['none', 'cls', 'last', 'mean']) {
    it(`${pooling} is what --pooling says`, async (t) => {
      const server = await start(t, [...demo, '--pooling', pooling]);
      bodies[pooling] = (await post(server, '/embeddings', { content: texts[3], embd_normalize: -1 })).body[0].embedding;
      const openai = await post(server, '/v1/embeddings', { input: 'a' });
      assert.equal(openai.status, pooling === 'none' ? 400 : 200);
    });
  }
  it('none has an answer that is bounded', async (t) => {
    const server = await start(t, [...demo, '--pooling', 'none']);
    const answer = await post(server, '/embeddings', { content: Array.from({ length: 100 }, () => 'a b '.repeat(500)) });
    assert.equal(answer.status, 400);
    assert.match(answer.body.error.message, /content would be answered by \d+ numbers/);
  });
  it('makes one vector of those of the tokens', () => {
    const tokens = bodies.none;
    assert.ok(tokens.length > 300, 'more tokens than are computed at once');
    assert.ok(cosine(bodies.cls[0], tokens[0]) > 0.9999);
    assert.ok(cosine(bodies.last[0], tokens.at(-1)) > 0.9999);
    const mean = tokens[0].map((_, i) => tokens.reduce((sum, vector) => sum + vector[i], 0) / tokens.length);
    assert.ok(cosine(bodies.mean[0], mean) > 0.9999);
  });
});

it('tokens that wait to be embedded are bounded, and what is small is let in again', async (t) => {
  const server = await start(t, demo);
  const body = JSON.stringify({ input: Array.from({ length: 2048 }, () => 'a b '.repeat(1000)) });
  const leave = new AbortController();
  const ask = () => server.fetch('/v1/embeddings', { method: 'POST', body, signal: leave.signal }).catch(() => undefined);
  const first = await Promise.race(Array.from({ length: 8 }, ask));
  assert.equal(first.status, 503);
  assert.match(await first.text(), /wait to be embedded/);
  assert.ok(Number(first.headers.get('retry-after-ms')) > 0);
  leave.abort();
  await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') <= 1);
  assert.equal((await post(server, '/v1/embeddings', { input: 'a' })).status, 200);
});

describe('the simulated model', async () => {
  const server = await start(test, sim);
  it('says that it has none', async () => {
    const answer = await post(server, '/v1/embeddings', { input: 'a' });
    assert.equal(answer.status, 400);
    assert.match(answer.body.error.message, /simulated model has no embeddings/);
  });
});
