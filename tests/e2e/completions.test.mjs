// Text completions, and /generate with its simpler stream.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, events, post, stream } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const prompt = 'The capital of France is';

describe('/v1/completions', async () => {
  const server = await start(test, demo);
  const complete = (fields) => ask(server, '/v1/completions', { prompt, temperature: 0, max_tokens: 12, ...fields });

  it('completes a string', async () => {
    const body = await complete({});
    assert.equal(body.object, 'text_completion');
    assert.match(body.id, /^cmpl-/);
    const [choice] = body.choices;
    assert.ok(choice.text.length > 0);
    assert.equal(choice.logprobs, null);
    assert.equal(choice.index, 0);
    assert.ok(['stop', 'length'].includes(choice.finish_reason));
    assert.equal(body.usage.total_tokens, body.usage.prompt_tokens + body.usage.completion_tokens);
  });

  it('shows with verbose what the model saw and said', async () => {
    const chat = { messages: [{ role: 'user', content: 'Say hello.' }], temperature: 0, max_tokens: 12 };
    const { prompt: seen } = await ask(server, '/apply-template', { messages: chat.messages });
    const body = await ask(server, '/v1/chat/completions', { ...chat, verbose: true });
    const { content, prompt: shown, stop_type: end, tokens_predicted: made, generation_settings: settings } = body.__verbose;
    assert.deepEqual([content, shown, made, settings.temperature], [body.choices[0].message.content, seen, body.usage.completion_tokens, 0]);
    assert.equal(end, body.choices[0].finish_reason === 'stop' ? 'eos' : 'limit');
    for (const path of ['/v1/chat/completions', '/v1/completions']) {
      const chunks = [];
      for await (const event of events(await post(server, path, { ...chat, prompt, n: 2, stream: true, verbose: true }))) {
        if (event !== '[DONE]') chunks.push(JSON.parse(event));
      }
      const told = chunks.filter((chunk) => chunk.__verbose).map((chunk) => [chunk.choices[0].index, chunk.__verbose.index]);
      assert.deepEqual(told.sort(), [[0, 0], [1, 1]], 'once for each choice, with its end');
      assert.ok(!('__verbose' in (await ask(server, path, { ...chat, prompt }))));
    }
  });

  it('streams the same text that it gives whole', async () => {
    const whole = await complete({});
    const parts = await stream(server, '/v1/completions',
      { prompt, temperature: 0, max_tokens: 12, stream_options: { include_usage: true } });
    await parts.collect();
    assert.equal(parts.text, whole.choices[0].text);
    assert.equal(parts.finish, whole.choices[0].finish_reason);
    assert.deepEqual(parts.chunks.at(-1).usage, whole.usage);
    assert.ok(parts.chunks.every((chunk) => chunk.object === 'text_completion'));
    assert.ok(parts.pieces.length > 3);
  });

  it('takes the tokens of /tokenize for the string', async () => {
    const { tokens } = await ask(server, '/tokenize', { content: prompt, add_special: true });
    const fromTokens = await complete({ prompt: tokens });
    const fromText = await complete({});
    assert.equal(fromTokens.choices[0].text, fromText.choices[0].text);
    assert.equal(fromTokens.usage.prompt_tokens, tokens.length);
    assert.equal((await complete({ prompt: [tokens] })).choices[0].text, fromText.choices[0].text);
    assert.equal((await complete({ prompt: [prompt] })).choices[0].text, fromText.choices[0].text);
  });

  it('answers a chat when the prompt is its template', async () => {
    const messages = [{ role: 'user', content: 'What is Chasqui?' }];
    const rendered = await ask(server, '/apply-template', { messages });
    const chat = await ask(server, '/v1/chat/completions', { messages, temperature: 0, max_tokens: 20 });
    const text = await complete({ prompt: rendered.prompt, max_tokens: 20 });
    assert.equal(text.choices[0].text, chat.choices[0].message.content);
  });

  it('stops at stop strings', async () => {
    const whole = await complete({});
    const stop = whole.choices[0].text.slice(4, 7);
    const cut = await complete({ stop });
    assert.equal(cut.choices[0].text, whole.choices[0].text.slice(0, whole.choices[0].text.indexOf(stop)));
    assert.equal(cut.choices[0].finish_reason, 'stop');
  });
});

describe('/generate', async () => {
  const server = await start(test, demo);

  // One request as the smoke test of the seed makes it.
  async function generate(text, fields = {}) {
    const response = await post(server, '/generate', { prompt: text, max_tokens: 30, ...fields });
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type'), /^text\/event-stream/);
    const all = [];
    for await (const event of events(response)) all.push(event);
    assert.equal(all.pop(), '[DONE]');
    return all.map((event) => {
      const piece = JSON.parse(event);
      assert.deepEqual(Object.keys(piece), ['text']);
      return piece.text;
    });
  }

  it('streams pieces of text, and [DONE]', async () => {
    const pieces = await generate(prompt, { max_tokens: 20, ignore_eos: true });
    assert.ok(pieces.length > 5, 'tokens stream as the model makes them, not as one blob');
    assert.ok(pieces.every((piece) => piece.length > 0));
  });

  it('passes the smoke test: three requests at once, three answers', async () => {
    const prompts = ['The capital of France is', 'Once upon a time', 'Python is'];
    const together = await Promise.all(prompts.map((text) => generate(text)));
    for (const pieces of together) assert.ok(pieces.join('').length > 0);
  });

  it('is greedy and of 64 tokens by default', async () => {
    const body = { prompt, stream: false, ignore_eos: true };
    const first = await ask(server, '/generate', body);
    const second = await ask(server, '/generate', body);
    assert.equal(first.text, second.text);
    assert.equal(first.usage.completion_tokens, 64);
    assert.equal(first.finish_reason, 'length');
    assert.deepEqual(Object.keys(first).sort(), ['finish_reason', 'text', 'timings', 'usage']);
    assert.equal((await generate(prompt, { max_tokens: 64, ignore_eos: true })).join(''), first.text);
  });

  it('takes every field of the seed', async () => {
    const fields = { temperature: 0.7, top_k: 5, top_p: 0.9, rep_penalty: 1.1, stream: false, max_tokens: 9, seed: 3 };
    const first = await ask(server, '/generate', { prompt, ...fields });
    assert.ok(first.usage.completion_tokens <= 9);
    assert.equal((await ask(server, '/generate', { prompt, ...fields })).text, first.text);
  });
});

describe('/v1/completions of the simulated model', async () => {
  const server = await start(test, sim);

  it('depends on every token of the prompt', async () => {
    const texts = new Set();
    for (const first of ['red', 'blue', 'green']) {
      const fields = { prompt: `${first} and so on`, max_tokens: 16, ignore_eos: true };
      const body = await ask(server, '/v1/completions', fields);
      texts.add(body.choices[0].text);
    }
    assert.equal(texts.size, 3);
  });

  it('takes a prompt that fills the context but for one token', async () => {
    const { limits } = await (await server.fetch('/props')).json();
    const tokens = new Array(limits.context_tokens - 1).fill(300);
    const { usage, choices } = await ask(server, '/v1/completions', { prompt: tokens, ignore_eos: true });
    assert.equal(usage.completion_tokens, 1);
    assert.equal(choices[0].finish_reason, 'length');
  });
});
