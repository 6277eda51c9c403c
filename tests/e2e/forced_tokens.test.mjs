// Tokens that a grammar leaves no choice about are appended without being sampled: answers are those of sampling, come
// in order, end where they have to, and need fewer steps.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';

import { ask, post, user } from './client.mjs';
import { demo, run, start, testModel } from './server.mjs';

const { describe, it } = test;
const completion = '/completion';
const text = { type: 'string', maxLength: 12 };
const properties = { customer_name: text, delivery_address: text, order_number: { type: 'integer', minimum: 0, maximum: 99999 },
  is_urgent: { type: 'boolean' }, payment_method: { enum: ['credit_card', 'bank_transfer', 'cash_on_delivery'] } };
const schema = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
// The same with one way to write it.
const grammar = String.raw`root ::= "{\"customer_name\": " text ", \"delivery_address\": " text ", \"order_number\": " [0-9]{1,5} ", \"is_urgent\": " ("true" | "false") "}"
text ::= "\"" [a-zA-Z0-9 ]{0,12} "\""`;
const prompts = ['An order of Ana, Calle Luna 7:', 'Write JSON:', 'x'];
const body = (prompt, more) => ({ prompt, max_tokens: 300, temperature: 0, cache_prompt: false, ...more });

describe('forced tokens', async () => {
  const server = await start(test, [...demo, '-np', '4']);
  const sampled = await start(test, [...demo, '-np', '4', '--no-forced-tokens']);

  // What a model says by itself is in the tokens that the tokenizer would have made.
  it('change no greedy answer, nor its tokens, where a grammar forces what the model would have said', async () => {
    for (const question of ['What is a slot?', 'What is a token?', 'Who are you?']) {
      const { prompt } = await ask(server, '/apply-template', { messages: user(question) });
      const free = await ask(sampled, completion, body(prompt, { max_tokens: 60, return_tokens: true }));
      const pieces = [...free.content.matchAll(/[^]{1,24}/gu)].map(([piece], i) => (i % 2 === 0 ? JSON.stringify(piece) : `[^\\x00]{${[...piece].length}}`));
      const more = { grammar: `root ::= ${pieces.join(' ')}`, return_tokens: true };
      const [without, forced] = await Promise.all([sampled, server].map((each) => ask(each, completion, body(prompt, more))));
      assert.equal(without.content, free.content);
      assert.equal(forced.content, free.content);
      assert.deepEqual(forced.tokens, without.tokens);
      assert.ok(forced.timings.forced_n > 2, question);
      assert.ok(forced.timings.steps < without.timings.steps);
    }
  });

  it('save steps, and are told and counted', async (t) => {
    let forced = 0;
    for (const prompt of prompts) {
      for (const more of [{ grammar }, { grammar, repeat_penalty: 1.1 }]) {
        const without = await ask(sampled, completion, body(prompt, more));
        const with_ = await ask(server, completion, body(prompt, more));
        t.diagnostic(`${with_.timings.forced_n} of ${with_.timings.predicted_n} tokens, ${with_.timings.steps} steps`);
        assert.equal(without.timings.forced_n, undefined);
        assert.ok(with_.timings.forced_n > 0);
        assert.ok(with_.timings.steps < with_.timings.predicted_n, `${with_.timings.steps} steps`);
        assert.equal(with_.stop_type, without.stop_type);
        assert.equal(with_.tokens_predicted, with_.timings.predicted_n);
        forced += with_.timings.forced_n;
      }
    }
    const metrics = await server.idle();
    assert.ok(metrics.value('chasqui_forced_tokens_total') >= forced);
    assert.equal((await sampled.idle()).value('chasqui_forced_tokens_total'), 0);
  });

  it('leave a stream in order, and as it would be in one piece', async () => {
    for (const more of [{ grammar }, { json_schema: schema, temperature: 2, seed: 5 }]) {
      const whole = await ask(server, completion, body(prompts[0], more));
      const response = await post(server, completion, body(prompts[0], { ...more, stream: true, return_tokens: true }));
      const events = (await response.text()).split('\n\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
      assert.equal(events.map(({ content }) => content).join(''), whole.content);
      assert.equal(events.at(-1).timings.forced_n, whole.timings.forced_n);
      assert.equal(events.at(-1).tokens_predicted, whole.tokens_predicted);
    }
  });

  it('end an answer where max_tokens or a stop string ends it', async () => {
    const whole = await ask(server, completion, body(prompts[1], { grammar }));
    for (const n of [1, 2, 3, 5, 9, 17]) {
      const cut = await ask(server, completion, body(prompts[1], { grammar, max_tokens: n }));
      assert.equal(cut.tokens_predicted, n);
      assert.equal(cut.stop_type, 'limit');
      assert.ok(whole.content.startsWith(cut.content), cut.content);
    }
    const stopped = await ask(server, completion, body(prompts[1], { grammar, stop: ['er_name'] }));
    assert.equal(stopped.stop_type, 'word');
    assert.equal(stopped.stopping_word, 'er_name');
    assert.equal(stopped.content, '{"custom');
  });

  it('are none where tokens are to be told with their likelihoods, nor in a deterministic answer', async () => {
    for (const more of [{ n_probs: 2 }, { deterministic: true }]) {
      const answered = await ask(server, completion, body(prompts[1], { grammar, ...more }));
      assert.equal(answered.timings.forced_n, undefined);
      if (more.n_probs) assert.equal(answered.completion_probabilities.length, answered.timings.predicted_n - 1);
    }
  });

  it('come with several answers at once, each as when it is alone', async () => {
    const alone = [];
    const seeds = [1, 2, 3, 4];
    const one = (seed) => ask(server, completion, body(prompts[2], { grammar, temperature: 0.7, seed, top_k: 5 }));
    for (const seed of seeds) alone.push((await one(seed)).content);
    const together = await Promise.all(seeds.map(one));
    for (const { content } of together) assert.match(content, /^\{"customer_name": "[^"]*", "delivery_address": "[^"]*", "order_number": \d{1,5}, "is_urgent": (true|false)\}$/);
    assert.equal(new Set(alone).size > 1, true);
  });

  it('are part of what a session goes on from', async () => {
    const first = await ask(server, completion, body(prompts[0], { grammar, cache_prompt: true, id_slot: 0 }));
    const again = await ask(server, completion, body(`${prompts[0]}${first.content} and`, { max_tokens: 4, cache_prompt: true, id_slot: 0 }));
    assert.ok(again.timings.cache_n > 20, `${again.timings.cache_n} of the answer before are cached`);
  });
});

describe('answers of a model with random weights', async () => {
  const server = await start(test, ['-m', testModel('24m-f16'), '-c', '8192', '-np', '4']);
  const validate = new Ajv2020({ strict: false }).compile(schema);

  it('keep to a schema at any temperature, with what it forces', async () => {
    const bodies = Array.from({ length: 24 }, (_, i) => ({ prompt: 'x', max_tokens: 2000, json_schema: schema, seed: i, temperature: [0, 1, 10, 100][i % 4] }));
    const answers = await Promise.all(bodies.map((each) => ask(server, completion, each)));
    let forced = 0;
    for (const { content, stop_type: ended, timings } of answers) {
      assert.equal(ended, 'eos', content);
      assert.ok(validate(JSON.parse(content)), content);
      forced += timings.forced_n ?? 0;
    }
    assert.ok(forced > 0);
  });
});

describe('--no-forced-tokens', () => {
  it('is a flag with a variable of its own', async () => {
    const { stdout } = await run(['serve', '--help']);
    assert.match(stdout, /--forced-tokens[\s\S]*CHASQUI_FORCED_TOKENS/);
  });
});
