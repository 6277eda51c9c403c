// Several answers to one request: n, best_of, arrays of prompts; and what may stand around an answer: echo, suffix.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import OpenAI from 'openai';

import { ask, events, post, refused, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const long = 'The quick brown fox jumps over the lazy dog, and then it does so again and again. '.repeat(6);

async function frames(response) {
  const out = [];
  for await (const event of events(response)) out.push(event);
  return out;
}

// Drawn answers that are compared are deterministic ones: else which rows share a batch may change a draw.
describe('several answers', async () => {
  const server = await start(test, demo);
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });

  it('come as choices in their order, each of its own seed', async () => {
    const wild = { temperature: 5, top_k: 0, top_p: 1, min_p: 0, deterministic: true };
    const fields = { messages: user('Hello'), max_tokens: 8, seed: 5, ...wild };
    const three = await client.chat.completions.create({ ...fields, n: 3 });
    assert.deepEqual(three.choices.map((choice) => choice.index), [0, 1, 2]);
    for (const choice of three.choices) {
      const one = await client.chat.completions.create({ ...fields, seed: 5 + choice.index });
      assert.equal(choice.message.content, one.choices[0].message.content);
    }
    assert.ok(new Set(three.choices.map((choice) => choice.message.content)).size > 1);
  });
  it('are asked for by llama-server\'s name, too', async () => {
    const body = { messages: user('Hello'), prompt: 'Hello', max_tokens: 2 };
    for (const route of ['/v1/chat/completions', '/v1/completions']) {
      assert.equal((await ask(server, route, { ...body, n_cmpl: 3 })).choices.length, 3);
      assert.equal((await ask(server, route, { ...body, n_cmpl: 2, n: 1 })).choices.length, 2);
      assert.equal((await refused(await post(server, route, { ...body, n_cmpl: 0 }), 400)).param, 'n_cmpl');
    }
    assert.equal((await ask(server, '/completion', { ...body, n_cmpl: 2, n: 1 })).length, 2);
  });
  it('count their prompt once, and all of their tokens', async () => {
    const one = await ask(server, '/v1/completions', { prompt: 'Hello', max_tokens: 4, ignore_eos: true });
    const many = await ask(server, '/v1/completions', { prompt: 'Hello', max_tokens: 4, ignore_eos: true, n: 3 });
    assert.equal(many.usage.prompt_tokens, one.usage.prompt_tokens);
    assert.equal(many.usage.completion_tokens, 12);
  });
  it('have their prompt computed once', async () => {
    const before = await server.metrics();
    const body = { prompt: `n: ${long}`, max_tokens: 4, ignore_eos: true, n: 4 };
    const { usage } = await ask(server, '/v1/completions', body);
    const after = await server.metrics();
    const computed = after.value('chasqui_prompt_tokens_total') - before.value('chasqui_prompt_tokens_total');
    assert.ok(computed < 1.5 * usage.prompt_tokens, `${computed} of ${usage.prompt_tokens} tokens, four times`);
  });
  it('stream beside each other, and end with one usage and one [DONE]', async () => {
    const body = {
      messages: user('Hello'), max_tokens: 5, ignore_eos: true, n: 2, stream: true, seed: 1, deterministic: true,
      stream_options: { include_usage: true },
    };
    const got = await frames(await post(server, '/v1/chat/completions', body));
    assert.equal(got.pop(), '[DONE]');
    const chunks = got.map((text) => JSON.parse(text));
    const usage = chunks.filter((chunk) => chunk.usage);
    assert.equal(usage.length, 1);
    assert.equal(usage[0].usage.completion_tokens, 10);
    const whole = await ask(server, '/v1/chat/completions', { ...body, stream: false, stream_options: undefined });
    for (const index of [0, 1]) {
      const mine = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
      const text = mine.map((choice) => choice.delta.content ?? '').join('');
      assert.equal(text, whole.choices[index].message.content);
      assert.deepEqual(mine.map((choice) => choice.finish_reason).filter(Boolean), ['length']);
    }
  });
  it('are the most likely ones of best_of', async () => {
    const wild = { temperature: 5, top_k: 0, top_p: 1, min_p: 0, deterministic: true };
    const body = { prompt: 'Once', max_tokens: 6, ignore_eos: true, seed: 3, logprobs: 0, ...wild };
    const all = await ask(server, '/v1/completions', { ...body, n: 5 });
    const mean = (choice) => choice.logprobs.token_logprobs.reduce((a, b) => a + b, 0) / 6;
    const order = [...all.choices].sort((a, b) => mean(b) - mean(a)).map((choice) => choice.text);
    const best = await ask(server, '/v1/completions', { ...body, n: 2, best_of: 5 });
    assert.deepEqual(best.choices.map((choice) => choice.text), order.slice(0, 2));
    assert.equal(best.usage.completion_tokens, 30);
  });
  it('have limits', async () => {
    for (const [fields, field] of [
      [{ n: 17 }, 'n'],
      [{ n: 3, best_of: 2 }, 'best_of'],
      [{ n: 1, best_of: 2, stream: true }, 'best_of'],
      [{ prompt: Array(130).fill('x') }, 'prompt'],
      [{ prompt: Array(100).fill('x'), n: 2 }, 'prompt'],
    ]) {
      const error = await refused(await post(server, '/v1/completions', { prompt: 'x', ...fields }), 400);
      assert.equal(error.param, field);
    }
  });
});

describe('an array of prompts', async () => {
  const server = await start(test, sim);
  const say = (text) => `<|im_start|>user\nsay: ${text}<|im_end|>\n<|im_start|>assistant\n`;
  it('has an answer for each, in their order', async () => {
    const prompt = ['one', 'two', 'three'].map(say);
    const { choices } = await ask(server, '/v1/completions', { prompt });
    assert.deepEqual(choices.map((choice) => choice.text), ['one', 'two', 'three']);
  });
  it('may be token ids, or an array of those', async () => {
    const tokens = [];
    for (const text of ['one', 'two']) {
      tokens.push((await ask(server, '/tokenize', { content: say(text), add_special: true })).tokens);
    }
    const { choices } = await ask(server, '/v1/completions', { prompt: tokens });
    assert.deepEqual(choices.map((choice) => choice.text), ['one', 'two']);
    assert.equal((await ask(server, '/v1/completions', { prompt: tokens[1] })).choices[0].text, 'two');
    const mixed = await ask(server, '/v1/completions', { prompt: [say('three'), tokens[0]] });
    assert.deepEqual(mixed.choices.map((choice) => choice.text), ['three', 'one']);
  });
  it('goes together with n', async () => {
    const { choices } = await ask(server, '/v1/completions', { prompt: ['one', 'two'].map(say), n: 2 });
    assert.deepEqual(choices.map((choice) => choice.text), ['one', 'one', 'two', 'two']);
    assert.deepEqual(choices.map((choice) => choice.index), [0, 1, 2, 3]);
  });
  it('is echoed before each answer', async () => {
    const prompt = ['one', 'two'].map(say);
    const { choices } = await ask(server, '/v1/completions', { prompt, echo: true });
    assert.deepEqual(choices.map((choice) => choice.text), [`${prompt[0]}one`, `${prompt[1]}two`]);
    const streamed = ['', ''];
    for (const text of await frames(await post(server, '/v1/completions', { prompt, echo: true, stream: true }))) {
      if (text === '[DONE]') continue;
      for (const choice of JSON.parse(text).choices) streamed[choice.index] += choice.text;
    }
    assert.deepEqual(streamed, choices.map((choice) => choice.text));
  });
  it('cannot be empty, nor hold anything else', async () => {
    for (const prompt of [[], [''], [{}], [[]], ['a', {}], [1.5], {}]) {
      await refused(await post(server, '/v1/completions', { prompt }), 400);
    }
  });
  it('is one prompt where there are token ids among its texts', async () => {
    const { choices } = await ask(server, '/v1/completions', { prompt: ['a', 300, 'b'], max_tokens: 2 });
    assert.equal(choices.length, 1);
  });
  it('and echo are told together with logprobs', async () => {
    const { choices: [{ text, logprobs }] } = await ask(server, '/v1/completions', { prompt: 'x y', echo: true, logprobs: 1, max_tokens: 2 });
    assert.equal(logprobs.tokens.join(''), text);
    assert.equal(logprobs.token_logprobs[0], null);
  });
  it('with a suffix needs a model that fills in gaps', async () => {
    const error = await refused(await post(server, '/v1/completions', { prompt: 'a', suffix: 'b' }), 400);
    assert.equal(error.param, 'suffix');
    await refused(await post(server, '/infill', { input_prefix: 'a', input_suffix: 'b' }), 400);
  });
});
