// How likely tokens were: OpenAI's two shapes and llama-server's, whole and streamed.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import OpenAI from 'openai';

import { ask, events, post, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

async function chunks(server, path, body) {
  const out = [];
  for await (const text of events(await post(server, path, { ...body, stream: true }))) {
    if (text !== '[DONE]') out.push(JSON.parse(text));
  }
  return out;
}

describe('logprobs', async () => {
  const server = await start(test, demo);
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const body = { messages: user('Hello'), max_tokens: 6, temperature: 0, logprobs: true, top_logprobs: 3 };

  it('of a chat are told for each token of its text', async () => {
    const { choices } = await client.chat.completions.create({ ...body, model: 'demo' });
    const { content } = choices[0].logprobs;
    const bytes = Buffer.from(content.flatMap((token) => token.bytes));
    assert.equal(bytes.toString(), choices[0].message.content);
    for (const token of content) {
      assert.equal(token.top_logprobs.length, 3);
      assert.equal(token.token, token.top_logprobs[0].token, 'greedy takes the most likely one');
      assert.equal(token.logprob, token.top_logprobs[0].logprob);
      const [a, b, c] = token.top_logprobs.map((top) => top.logprob);
      assert.ok(0 >= a && a >= b && b >= c, `${a} ${b} ${c}`);
    }
  });
  it('are the same in a stream', async () => {
    const whole = await ask(server, '/v1/chat/completions', body);
    const streamed = await chunks(server, '/v1/chat/completions', body);
    const content = streamed.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.deepEqual(content, whole.choices[0].logprobs.content);
  });
  it('are a distribution', async () => {
    const fields = { prompt: 'Hello', max_tokens: 1, ignore_eos: true, n_probs: 100, temperature: 0 };
    const { completion_probabilities: [token] } = await ask(server, '/completion', fields);
    const sum = token.top_logprobs.reduce((total, top) => total + Math.exp(top.logprob), 0);
    assert.ok(sum > 0.2 && sum <= 1.0001, `${sum}`);
    assert.equal(token.top_logprobs.length, 100);
  });
  it('are not told unless asked for', async () => {
    const { choices } = await ask(server, '/v1/chat/completions', { messages: user('x'), max_tokens: 2 });
    assert.equal(choices[0].logprobs, undefined);
    const text = await ask(server, '/v1/completions', { prompt: 'x', max_tokens: 2 });
    assert.equal(text.choices[0].logprobs, null);
  });
  it('of a completion have the older shape', async () => {
    const fields = { prompt: 'Hello', max_tokens: 5, temperature: 0, logprobs: 2, ignore_eos: true };
    const { choices: [{ text, logprobs }] } = await ask(server, '/v1/completions', fields);
    assert.deepEqual(Object.keys(logprobs), ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset']);
    assert.equal(logprobs.tokens.join(''), text);
    logprobs.text_offset.forEach((offset, i) => assert.equal(offset, [...logprobs.tokens.slice(0, i).join('')].length));
    for (const top of logprobs.top_logprobs) assert.ok(Object.keys(top).length >= 1);
    const streamed = (await chunks(server, '/v1/completions', fields)).flatMap((chunk) => chunk.choices);
    assert.deepEqual(streamed.flatMap((choice) => choice.logprobs?.text_offset ?? []), logprobs.text_offset);
  });
  it('are of the model, and on request of what the samplers left', async () => {
    const fields = { prompt: 'Hello', max_tokens: 1, ignore_eos: true, n_probs: 5, top_k: 2, temperature: 0.5, seed: 1 };
    const before = await ask(server, '/completion', fields);
    assert.equal(before.completion_probabilities[0].top_logprobs.length, 5);
    const after = await ask(server, '/completion', { ...fields, post_sampling_probs: true });
    const { top_probs: top } = after.completion_probabilities[0];
    assert.ok(top.length <= 2);
    assert.ok(Math.abs(top.reduce((sum, { prob }) => sum + prob, 0) - 1) < 1e-5);
  });
});

describe('logprobs of an answer that a stop string ends', async () => {
  const server = await start(test, sim);
  const body = { messages: user('say: one two three'), stop: ' three', logprobs: true };
  const text = (content) => Buffer.from(content.flatMap((token) => token.bytes)).toString();
  it('do not tell the stop string', async () => {
    const { choices: [choice] } = await ask(server, '/v1/chat/completions', body);
    assert.equal(choice.message.content, 'one two');
    assert.equal(text(choice.logprobs.content), 'one two');
    const streamed = await chunks(server, '/v1/chat/completions', body);
    const content = streamed.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.equal(text(content), text(choice.logprobs.content));
  });
  it('do not tell the token that ends it', async () => {
    const { choices: [choice] } = await ask(server, '/v1/chat/completions', { ...body, stop: undefined });
    assert.equal(text(choice.logprobs.content), choice.message.content);
  });
});
