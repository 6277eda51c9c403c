// The receipt of a request, `timings`: every dialect has it, the clients of the vendors hand it on, and together they are
// the processor time of the process.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { ask, post, user } from './client.mjs';
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

  it('is a share of the time of the process, and all are that time, whatever dialects were spoken', async () => {
    // What the process has computed, in milliseconds, by a clock with ticks of 10 ms.
    const computed = () => {
      const fields = fs.readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 10;
    };
    await dialects['a chat']('begin', 1);
    await server.idle();
    const before = computed();
    const load = Object.values(dialects).flatMap((say, i) =>
      [100, 300].map((tokens) => say(`${i} ${'tell me more '.repeat(20 * (i % 4))}`, tokens)));
    const receipts = (await Promise.all(load)).flat();
    const whole = computed() - before;
    const shares = receipts.map(({ cpu_ms: share }) => share);
    const sum = shares.reduce((all, one) => all + one, 0);
    assert.equal(shares.length, 2 * Object.keys(dialects).length);
    assert.ok(Math.min(...shares) > 0, `${shares}`);
    // What comes before the first step and after the last one is no request's; neither is the rest of a tick.
    assert.ok(Math.abs(sum - whole) <= 0.02 * whole + 60, `${sum} ms of ${whole} ms`);
  });
});
