// How likely tokens were: OpenAI's two shapes and llama-server's, whole and streamed.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import OpenAI from 'openai';

import { ask, events, post, refused, user } from './client.mjs';
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

describe('logprobs of a prompt that is echoed', async () => {
  const server = await start(test, [...demo, '-np', '2', '--spec-type', 'none']);
  const prompt = `Chasqui is ${'a runner of the Incas who carried messages. '.repeat(12)}`;
  const fields = { prompt, max_tokens: 4, temperature: 0, logprobs: 3, echo: true, ignore_eos: true };

  it('are told for each token of it and of the answer', async () => {
    const { choices: [{ text, logprobs }], usage } = await ask(server, '/v1/completions', fields);
    assert.ok(text.startsWith(prompt));
    assert.equal(logprobs.tokens.join(''), text);
    assert.equal(logprobs.tokens.length, usage.prompt_tokens + usage.completion_tokens);
    assert.ok(usage.prompt_tokens > 100, 'more than one step reads it');
    assert.equal(logprobs.token_logprobs[0], null);
    assert.equal(logprobs.top_logprobs[0], null);
    logprobs.token_logprobs.slice(1).forEach((logprob, i) => {
      assert.ok(Number.isFinite(logprob) && logprob <= 0, `${i}: ${logprob}`);
      const top = logprobs.top_logprobs[i + 1];
      assert.ok(Object.keys(top).length >= 3 && top[logprobs.tokens[i + 1]] === logprob);
    });
    logprobs.text_offset.forEach((offset, i) => assert.equal(offset, [...logprobs.tokens.slice(0, i).join('')].length));
  });

  it('are those that an answer of the same tokens has', async () => {
    const { choices: [{ text, logprobs: said }] } = await ask(server, '/v1/completions', { ...fields, echo: false, prompt: 'Chasqui is', max_tokens: 12 });
    const { choices: [{ logprobs: read }] } = await ask(server, '/v1/completions', { ...fields, prompt: `Chasqui is${text}`, max_tokens: 0 });
    assert.deepEqual(read.tokens.slice(-12), said.tokens);
    read.token_logprobs.slice(-12).forEach((logprob, i) => assert.ok(Math.abs(logprob - said.token_logprobs[i]) < 0.02, `${i}: ${logprob} ${said.token_logprobs[i]}`));
  });

  it('are the same in a stream, for each of several prompts and beside other requests', async () => {
    const prompts = ['One', prompt, 'The sun'];
    const wish = { ...fields, prompt: prompts, n: 2, max_tokens: 2 };
    const whole = (await ask(server, '/v1/completions', wish)).choices;
    assert.equal(whole.length, 6);
    const [streamed] = await Promise.all([chunks(server, '/v1/completions', wish), ask(server, '/v1/completions', { prompt, max_tokens: 50, ignore_eos: true })]);
    for (const { index, text, logprobs } of whole) {
      const own = streamed.flatMap(({ choices }) => choices).filter((choice) => choice.index === index);
      assert.equal(own.map((choice) => choice.text).join(''), text);
      const tokens = own.flatMap((choice) => choice.logprobs?.tokens ?? []);
      assert.deepEqual(tokens, logprobs.tokens);
      const told = own.flatMap((choice) => choice.logprobs?.token_logprobs ?? []);
      told.forEach((logprob, i) => (i === 0 ? assert.equal(logprob, null) : assert.ok(Math.abs(logprob - logprobs.token_logprobs[i]) < 0.02)));
      assert.deepEqual(own.flatMap((choice) => choice.logprobs?.text_offset ?? []), logprobs.text_offset);
    }
  });

  it('are bounded', async () => {
    const error = await refused(await post(server, '/v1/completions', { ...fields, prompt: Array(100).fill('a '.repeat(1500)), logprobs: 20 }), 400);
    assert.equal(error.param, 'logprobs');
    assert.equal((await refused(await post(server, '/v1/completions', { ...fields, suffix: 'x' }), 400)).param, 'suffix');
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
