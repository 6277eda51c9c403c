// llama-server's own shape: /completion and /completions; and the fields that have an effect of their own.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, events, post, refused } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

describe('/completion', async () => {
  const server = await start(test, sim);
  const prompt = '<|im_start|>user\nsay: one two three<|im_end|>\n<|im_start|>assistant\n';

  it('answers in the shape of llama-server', async () => {
    for (const path of ['/completion', '/completions']) {
      const body = await ask(server, path, { prompt, temperature: 0, seed: 4 });
      assert.equal(body.content, 'one two three');
      assert.equal(body.stop, true);
      assert.equal(body.stop_type, 'eos');
      assert.equal(body.stopping_word, '');
      assert.equal(body.truncated, false);
      assert.equal(body.prompt, prompt);
      assert.equal(body.generation_settings.seed, 4);
      assert.equal(body.generation_settings.temperature, 0);
      assert.deepEqual(body.generation_settings.samplers.slice(0, 2), ['penalties', 'dry']);
      assert.ok(body.tokens_evaluated > 0 && body.tokens_predicted > 0);
      assert.equal(body.timings.predicted_n, body.tokens_predicted);
      assert.deepEqual(body.tokens, []);
    }
  });
  it('streams parts, and a last one that says stop', async () => {
    const got = [];
    const response = await post(server, '/completion', { prompt, stream: true, return_tokens: true, timings_per_token: true });
    for await (const text of events(response)) got.push(JSON.parse(text));
    const last = got.pop();
    assert.ok(got.every((part) => part.stop === false && part.timings.predicted_n === part.tokens_predicted));
    assert.equal(got.map((part) => part.content).join(''), 'one two three');
    assert.equal(last.stop, true);
    assert.equal(last.content, '');
    const { content } = await ask(server, '/detokenize', { tokens: got.flatMap((part) => part.tokens) });
    assert.ok(content.startsWith('one two three'), content);
  });
  it('says what stopped it', async () => {
    const word = await ask(server, '/completion', { prompt, stop: ['two'] });
    assert.deepEqual([word.content, word.stop_type, word.stopping_word], ['one ', 'word', 'two']);
    const limit = await ask(server, '/completion', { prompt, n_predict: 1 });
    assert.deepEqual([limit.stop_type, limit.tokens_predicted], ['limit', 1]);
  });
  it('shows the fields that are asked for', async () => {
    const body = await ask(server, '/completion', { prompt, response_fields: ['content', 'stop_type'] });
    assert.deepEqual(Object.keys(body), ['content', 'stop_type']);
  });
  it('shows members of objects by their paths, and nothing for paths that are not there', async () => {
    const shown = ['content', 'timings/prompt_n', 'generation_settings/top_k', 'nosuch/one', 'timings/nosuch'];
    const body = await ask(server, '/completion', { prompt, top_k: 7, response_fields: shown });
    assert.deepEqual(Object.keys(body), ['content', 'generation_settings/top_k', 'timings/prompt_n']);
    assert.equal(body['generation_settings/top_k'], 7);
  });
  it('tells the tokens of each part of a stream', async () => {
    const tokens = [];
    for await (const text of events(await post(server, '/completion', { prompt, stream: true }))) {
      tokens.push(...JSON.parse(text).tokens);
    }
    const { content } = await ask(server, '/detokenize', { tokens });
    assert.ok(content.startsWith('one two three'), content);
  });
  it('takes a prompt of texts and token ids, and the object that llama-server has', async () => {
    const { tokens } = await ask(server, '/tokenize', { content: 'say: one two three' });
    const mixed = ['<|im_start|>user\n', ...tokens, '<|im_end|>\n<|im_start|>assistant\n'];
    const forms = [mixed, { prompt_string: prompt }, { prompt_string: prompt, multimodal_data: [] }];
    for (const form of forms) {
      const body = await ask(server, '/completion', { prompt: form });
      assert.deepEqual([body.prompt, body.content], [prompt, 'one two three']);
    }
    const all = await ask(server, '/completion', { prompt: forms });
    assert.deepEqual(all.map(({ content }) => content), ['one two three', 'one two three', 'one two three']);
    const openai = await ask(server, '/v1/completions', { prompt: mixed });
    assert.equal(openai.choices[0].text, 'one two three');
  });
  it('gives tokens when asked', async () => {
    const { tokens } = await ask(server, '/completion', { prompt, return_tokens: true });
    assert.ok(tokens.length > 2);
  });
  it('answers an array of prompts, or n, with an array', async () => {
    const many = await ask(server, '/completion', { prompt: [prompt, prompt.replace('three', 'four')] });
    assert.deepEqual(many.map((one) => [one.index, one.content]), [[0, 'one two three'], [1, 'one two four']]);
    assert.equal((await ask(server, '/completion', { prompt, n_cmpl: 2 })).length, 2);
  });
  it('needs a prompt', async () => {
    assert.equal((await refused(await post(server, '/completion', {}), 400)).param, 'prompt');
  });
});

describe('what ends an answer', async () => {
  const server = await start(test, sim);
  const real = await start(test, demo);
  it('may be a token id', async () => {
    const { tokens } = await ask(server, '/tokenize', { content: 'one two three' });
    const { text, finish } = await answer(server, 'say: one two three', { stop_token_ids: [tokens.at(-1)] });
    assert.ok('one two three'.startsWith(text) && text.length < 'one two three'.length, text);
    assert.equal(finish, 'stop');
  });
  it('may be the time since the first token, after a line break', async () => {
    const fields = { t_max_predict_ms: 1, max_tokens: 300, ignore_eos: true, grammar: 'root ::= "\\n" [a-z ]+' };
    const { finish, usage } = await answer(real, 'Hello', fields);
    assert.equal(finish, 'length');
    assert.ok(usage.completion_tokens < 300, `${usage.completion_tokens}`);
  });
});

describe('min_tokens', async () => {
  const server = await start(test, sim);
  it('keeps the model from ending before', async () => {
    const body = { temperature: 0, min_tokens: 12, max_tokens: 12 };
    const { usage, finish } = await answer(server, 'say: a', body);
    assert.equal(usage.completion_tokens, 12);
    assert.equal(finish, 'length');
  });
});

describe('the samplers of libllama', async () => {
  const server = await start(test, demo);
  const fields = { temperature: 1.2, max_tokens: 24, ignore_eos: true };
  const seeds = [11, 12, 13, 14, 15, 16]; // with some of them the model says what it likes most in any case
  for (const other of [
    { top_n_sigma: 0.3 }, { typical_p: 0.2 }, { xtc_probability: 1, xtc_threshold: 0.01 }, { dynatemp_range: 1 },
    { dry_multiplier: 5, dry_allowed_length: 1 }, { mirostat: 1, mirostat_tau: 0.5 }, { mirostat: 2, mirostat_tau: 0.5 },
    { samplers: 'k', top_k: 1 }, { samplers: ['adaptive_p'], adaptive_target: 0.2 },
  ]) {
    it(`change the answer and reproduce: ${JSON.stringify(other)}`, async () => {
      const texts = async (more) => {
        const out = [];
        for (const seed of seeds) out.push((await answer(server, 'Tell me more.', { ...fields, ...more, seed })).text);
        return out;
      };
      const changed = await texts(other);
      assert.notDeepEqual(changed, await texts({}));
      assert.deepEqual(await texts(other), changed);
    });
  }
});
