// The receipt of a request, `timings`: every dialect has it, the clients of the vendors hand it on, and together they are
// the processor time of the process, with those of embeddings, which are in the log.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { ask, post, requestLines, user } from './client.mjs';
import { startWithSocket } from './frames.mjs';
import { withGaps } from './gguf.mjs';
import { demo } from './server.mjs';

const { describe, it } = test;
const many = { temperature: 0, ignore_eos: true, cache_prompt: false };

// The objects that an answer consists of, whatever its form: one, a list, events or lines.
async function objects(server, path, body) {
  const response = await post(server, path, body);
  const text = await response.text();
  assert.equal(response.status, 200, `${path}: ${text}`);
  const type = response.headers.get('content-type');
  if (type === 'application/json') return [JSON.parse(text)].flat();
  const lines = text.split('\n');
  if (type === 'application/x-ndjson') return lines.filter((line) => line).map((line) => JSON.parse(line));
  return lines.filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice('data: '.length)));
}

const timed = (events) => events.map(({ timings }) => timings).filter((timings) => timings);

function check(timings, what, tokens) {
  assert.ok(timings.cpu_ms > 0, `${what}: ${JSON.stringify(timings)}`);
  assert.equal(timings.predicted_n, tokens, what);
  assert.ok(timings.prompt_n + timings.cache_n > 0 && timings.steps > 0, `${what}: ${JSON.stringify(timings)}`);
}

describe('a receipt', async () => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'receipts-'));
  test.after(() => fs.rmSync(folder, { recursive: true, maxRetries: 20 }));
  const model = join(folder, 'gaps.gguf'); // /infill wants its tokens
  withGaps(model);
  const server = await startWithSocket(test, [...demo, '-m', model, '-np', '4']);

  // Each says `tokens` tokens about `topic`, and gives its receipts.
  const inSession = (stream) => async (topic, tokens) => {
    const { id } = await ask(server, '/v1/sessions', { messages: user(topic) });
    const path = `/v1/sessions/${id}/generate`;
    return timed(await objects(server, path, { ...many, max_tokens: tokens, stream }));
  };
  const at = (path, bodyOf, more = {}) => async (topic, tokens) =>
    timed(await objects(server, path, { ...many, ...bodyOf(topic), max_tokens: tokens, ...more }));
  const ollama = (path, bodyOf, stream) => async (topic, tokens) =>
    timed(await objects(server, path, { ...bodyOf(topic), stream, options: { ...many, num_predict: tokens } }));
  const chat = (topic) => ({ messages: user(topic) });
  const prompt = (topic) => ({ prompt: topic });
  const input = (topic) => ({ input: topic, store: false });
  const dialects = {
    'a chat': at('/v1/chat/completions', chat),
    'a chat in a stream': at('/v1/chat/completions', chat, { stream: true }),
    'a completion': at('/v1/completions', prompt),
    'a completion in a stream': at('/v1/completions', prompt, { stream: true }),
    'a native completion': at('/completion', prompt),
    'a native completion in a stream': at('/completion', prompt, { stream: true }),
    'a text': at('/generate', prompt, { stream: false }),
    'an infill': at('/infill', (topic) => ({ input_prefix: topic, input_suffix: 'assistant' })),
    'a message': at('/v1/messages', chat),
    'a message in a stream': at('/v1/messages', chat, { stream: true }),
    'a response': at('/v1/responses', input),
    'a response in a stream': at('/v1/responses', input, { stream: true }),
    'a chat of Ollama': ollama('/api/chat', chat, false),
    'a chat of Ollama in a stream': ollama('/api/chat', chat, true),
    'a generation of Ollama': ollama('/api/generate', prompt, false),
    'a session': inSession(false),
    'a session in a stream': inSession(true),
    'a frame': async (topic, tokens) => {
      const client = await server.client(test);
      const events = [];
      for await (const event of client.generate({ ...many, messages: user(topic), max_tokens: tokens })) events.push(event);
      return timed(events);
    },
  };

  for (const [name, say] of Object.entries(dialects)) {
    it(`is in the answer of ${name}, once`, async () => {
      const receipts = await say('What is Chasqui?', 6);
      assert.equal(receipts.length, 1);
      check(receipts[0], name, 6);
    });
  }

  it('is of all choices of an answer', async () => {
    const body = { ...many, messages: user('What is a slot?'), max_tokens: 12 };
    const costOf = async (more) => timed(await objects(server, '/v1/chat/completions', { ...body, ...more }));
    const streamed = await costOf({ n: 3, stream: true, stream_options: { include_usage: true } });
    assert.equal(streamed.length, 4, 'one for each choice, and one of all with the usage');
    const all = streamed.pop();
    const sum = streamed.reduce((so, { cpu_ms: one }) => so + one, 0);
    assert.ok(Math.abs(all.cpu_ms - sum) < 0.01, `${all.cpu_ms} of ${sum}`);
    const [whole] = await costOf({ n: 3 });
    check(whole, 'the first of three', 12);
  });

  it('reaches those who use the clients of the vendors', async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const message = { model: 'x', max_tokens: 6, messages: user('Hello'), ...many };
    check((await anthropic.messages.create(message)).timings, 'Anthropic', 6);
    const events = [];
    const stream = anthropic.messages.stream(message).on('streamEvent', (event) => events.push(event));
    assert.equal((await stream.finalMessage()).usage.output_tokens, 6);
    check(timed(events)[0], 'Anthropic in a stream', 6);

    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const wish = { model: 'x', max_output_tokens: 6, input: 'Hello', ...many };
    const response = await openai.responses.create(wish);
    check(response.timings, 'OpenAI', 6);
    assert.deepEqual((await openai.responses.retrieve(response.id)).timings, response.timings, 'it is kept with the response');
    check((await openai.responses.stream(wish).finalResponse()).timings, 'OpenAI in a stream', 6);

    const client = new Ollama({ host: server.url });
    const said = await client.chat({ model: 'chasqui-demo', messages: user('Hello'), options: { num_predict: 6, ...many } });
    check(said.timings, 'Ollama', 6);
  });

  it('is a share of the time of the process, and all are that time, whatever dialects were spoken beside embeddings', async () => {
    const embed = (i) => ask(server, '/v1/embeddings', { input: [`${i} ${'a word '.repeat(100)}`, 'and more '.repeat(10 * (1 + i % 9))] });
    await dialects['a chat']('begin', 1);
    await embed(1); // makes its context
    await server.idle();
    const [before, beforeOfWorkers, beforeOfEmbeddings] = [server.computed(), server.computed('worker'), server.computed('embed')];
    const enough = () => server.computed('worker') - beforeOfWorkers >= 4000;
    const says = Object.values(dialects);
    const shares = [];
    let [said, embedded] = [0, 0];
    const talk = async () => {
      while (!enough() || said < says.length) {
        const i = said++;
        const receipts = await says[i % says.length](`${i} ${'tell me more '.repeat(20 * (i % 4))}`, [100, 200, 300][i % 3]);
        shares.push(...receipts.map(({ cpu_ms: share }) => share));
      }
    };
    const embedAll = async () => {
      while (!enough()) await embed(++embedded);
    };
    await Promise.all([...Array.from({ length: 6 }, talk), embedAll(), embedAll()]);
    const [whole, ofEmbeddings] = [server.computed() - before, server.computed('embed') - beforeOfEmbeddings];
    assert.equal(shares.length, said, 'one for each');
    assert.ok(Math.min(...shares) > 0, `${shares}`);
    const lines = () => requestLines(server).filter(({ kind }) => kind === 'embedding').slice(1);
    await server.until(() => lines().length === embedded, 'all lines are in the log');
    const all = (costs) => costs.reduce((sum, one) => sum + one, 0);
    const [talks, embeddings] = [all(shares), all(lines().map(({ cpu_ms: share }) => Number(share)))];
    // What comes before the first step and after the last one is no request's.
    const sum = talks + embeddings;
    assert.ok(Math.abs(sum - whole) <= 0.02 * whole + 10, `${talks} and ${embeddings} ms of ${whole} ms`);
    // No step pays for what their thread computes, and they pay for little else while a model generates.
    assert.ok(embeddings >= 0.98 * ofEmbeddings - 10, `${embeddings} ms of ${ofEmbeddings} ms`);
    assert.ok(talks <= 1.02 * (whole - ofEmbeddings) + 10, `${talks} ms of ${whole - ofEmbeddings} ms`);
  });
});
