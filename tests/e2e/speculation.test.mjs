// Guesses of next tokens: answers are the same with and without, the guesses that were right are told and counted, and
// whoever wants none gets none.
import assert from 'node:assert/strict';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, post, refused } from './client.mjs';
import { demo, run, start } from './server.mjs';

const { describe, it } = test;
const draft = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-draft.gguf');
const embed = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-embed.gguf');
// What the small model goes on with by repeating it.
const list = 'one two three four, one two three four, one two three four, one two three four, one two';
const prompts = [list, `Say it again: ${list}`, 'Write a list of numbers: 1, 2, 3,', 'What is a slot?'];
const body = (prompt, more = {}) => ({ prompt, max_tokens: 96, temperature: 0, ignore_eos: true, ...more });
const all = (server, more) => Promise.all(prompts.map((prompt) => ask(server, '/completion', body(prompt, more))));
const texts = (answers) => answers.map(({ content }) => content);

describe('guesses from what was said before', async () => {
  const plain = await start(test, [...demo, '-np', '4', '--spec-type', 'none']);
  const server = await start(test, [...demo, '-np', '4', '--spec-type', 'ngram', '--draft-min', '3']);

  it('change no answer, greedy or with a seed', async () => {
    for (const more of [{}, { temperature: 0.8, seed: 11 }, { temperature: 1.2, top_p: 0.9, seed: 3, repeat_penalty: 1.1 }]) {
      for (const prompt of prompts) {
        const without = await ask(plain, '/completion', body(prompt, more));
        const guessed = await ask(server, '/completion', body(prompt, more));
        assert.equal(guessed.content, without.content);
        assert.equal(without.timings.draft_n, undefined);
      }
    }
    const metrics = await server.idle();
    const value = (name, labels) => metrics.value(name, labels);
    assert.ok(value('chasqui_guesses_right_total') > 0, 'some were right');
    assert.ok(value('chasqui_guesses_total') >= value('chasqui_guesses_right_total'));
    assert.equal(value('vllm:spec_decode_num_accepted_tokens_total'), value('chasqui_guesses_right_total'));
  });

  it('change no answer under a grammar, nor its likelihoods', async () => {
    const grammar = 'root ::= ("ab " | "cd ")+';
    const [without, guessed] = await Promise.all([plain, server].map((each) =>
      ask(each, '/completion', body('ab cd ab cd ab cd', { grammar, n_probs: 2 }))));
    assert.equal(guessed.content, without.content);
    assert.deepEqual(guessed.completion_probabilities.map(({ id }) => id), without.completion_probabilities.map(({ id }) => id));
    assert.equal(guessed.completion_probabilities.length, guessed.timings.predicted_n);
  });

  it('come together with a text that fits, token by token', async () => {
    const response = await post(server, '/completion', body(list, { stream: true }));
    const events = (await response.text()).split('\n\n').filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)));
    const whole = await ask(plain, '/completion', body(list));
    assert.equal(events.map(({ content }) => content).join(''), whole.content);
    assert.equal(events.at(-1).timings.predicted_n, 96);
  });

  it('are made for nobody who wants none, and their number is checked', async () => {
    const before = (await server.idle()).value('chasqui_guesses_total');
    for (const answered of await all(server, { 'speculative.n_max': 0 })) assert.equal(answered.timings.draft_n, undefined);
    assert.equal((await server.idle()).value('chasqui_guesses_total'), before);
    for (const wrong of [-1, 17, 1.5, 'many']) {
      const error = await refused(await post(server, '/completion', body(list, { 'speculative.n_max': wrong })), 400);
      assert.match(JSON.stringify(error), /speculative\.n_max/);
    }
  });
});

describe('a draft model', async () => {
  const plain = await start(test, [...demo, '-np', '4', '--spec-type', 'none']);
  const server = await start(test, [...demo, '-np', '4', '-md', draft, '--spec-synth-rates', '1', '--draft-max', '4', '--draft-min', '4']);
  const honest = await start(test, [...demo, '-np', '4', '--model-draft', draft, '--draft-min', '3']);

  it('changes no answer, alone and in company', async () => {
    for (const prompt of prompts) {
      const without = await ask(plain, '/completion', body(prompt));
      assert.equal((await ask(honest, '/completion', body(prompt))).content, without.content);
    }
    const alone = [];
    for (const prompt of prompts) alone.push(await ask(honest, '/completion', body(prompt)));
    assert.deepEqual(texts(await all(honest)), texts(alone));
    const metrics = await honest.idle();
    assert.ok(metrics.value('chasqui_draft_rows_total') > 0, 'it has read the prompts');
    assert.ok(metrics.value('chasqui_guesses_right_total') > 0.2 * metrics.value('chasqui_guesses_total'), 'it was trained for it');
  });

  it('is told of by the timings, the log and the metrics, where its guesses count as right', async () => {
    for (let i = 0; i < 4; ++i) await all(server);
    const metrics = await server.idle();
    const value = (name, labels) => metrics.value(name, labels);
    assert.ok(value('chasqui_guesses_total') > 0);
    assert.ok(value('chasqui_guesses_right_total') > 0.9 * value('chasqui_guesses_total'), 'all but those that end it');
    assert.ok(value('chasqui_guesses_right_at_total', { place: '0' }) > 0);
    assert.equal(value('chasqui_guesses_right_at_total', { place: '4' }), 0, '--draft-max 4');
  });

  it('must speak the same tokens', async () => {
    const { code, stderr } = await run(['serve', ...demo, '--port', '0', '--model-draft', embed]);
    assert.notEqual(code, 0);
    assert.match(stderr, /--model-draft must have the vocabulary/);
    const missing = await run(['serve', ...demo, '--port', '0', '--spec-type', 'draft']);
    assert.notEqual(missing.code, 0);
    assert.match(missing.stderr, /--model-draft FILE/);
  });
});
