// Draft tokens: answers are the same with and without, accepted ones are told and counted, and
// a request that wants none gets none.
import assert from 'node:assert/strict';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, post, refused } from './client.mjs';
import { demo, run, start, testModel } from './server.mjs';

const { describe, it } = test;
const draft = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-draft.gguf');
const embed = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-embed.gguf');
// What the small model goes on with by repeating it.
const list = 'one two three four, one two three four, one two three four, one two three four, one two';
const prompts = [list, `Say it again: ${list}`, 'Write a list of numbers: 1, 2, 3,', 'What is a slot?'];
const body = (prompt, more = {}) => ({ prompt, max_tokens: 96, temperature: 0, ignore_eos: true, ...more });
const all = (server, more) => Promise.all(prompts.map((prompt) => ask(server, '/completion', body(prompt, more))));
const texts = (answers) => answers.map(({ content }) => content);

describe('draft tokens from what was said before', async () => {
  const plain = await start(test, [...demo, '-np', '4', '--spec-type', 'none']);
  const server = await start(test, [...demo, '-np', '4', '--spec-type', 'ngram', '--draft-min', '3']);

  it('change no answer, greedy or with a seed', async () => {
    for (const more of [{}, { temperature: 0.8, seed: 11 }, { temperature: 1.2, top_p: 0.9, seed: 3, repeat_penalty: 1.1 }]) {
      for (const prompt of prompts) {
        const without = await ask(plain, '/completion', body(prompt, more));
        const drafted = await ask(server, '/completion', body(prompt, more));
        assert.equal(drafted.content, without.content);
        assert.equal(without.timings.draft_n, undefined);
      }
    }
    const metrics = await server.idle();
    const value = (name, labels) => metrics.value(name, labels);
    assert.ok(value('chasqui_spec_accepted_tokens_total') > 0, 'some were right');
    assert.ok(value('chasqui_spec_draft_tokens_total') >= value('chasqui_spec_accepted_tokens_total'));
    assert.equal(value('vllm:spec_decode_num_accepted_tokens_total'), value('chasqui_spec_accepted_tokens_total'));
  });

  it('change no answer under a grammar, nor its likelihoods', async () => {
    const grammar = 'root ::= ("ab " | "cd ")+';
    const [without, drafted] = await Promise.all([plain, server].map((each) =>
      ask(each, '/completion', body('ab cd ab cd ab cd', { grammar, n_probs: 2 }))));
    assert.equal(drafted.content, without.content);
    const ids = ({ completion_probabilities: all }) => all.map(({ id }) => id);
    assert.deepEqual(ids(drafted), ids(without));
    assert.equal(drafted.completion_probabilities.length, drafted.timings.predicted_n);
  });

  it('come together with a text that fits, token by token', async () => {
    const response = await post(server, '/completion', body(list, { stream: true }));
    const events = (await response.text()).split('\n\n').filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)));
    const whole = await ask(plain, '/completion', body(list));
    assert.equal(events.map(({ content }) => content).join(''), whole.content);
    assert.equal(events.at(-1).timings.predicted_n, 96);
  });

  it('are not made for requests that want none, and their number is checked', async () => {
    const before = (await server.idle()).value('chasqui_spec_draft_tokens_total');
    for (const answered of await all(server, { 'speculative.n_max': 0 })) assert.equal(answered.timings.draft_n, undefined);
    assert.equal((await server.idle()).value('chasqui_spec_draft_tokens_total'), before);
    for (const wrong of [-1, 17, 1.5, 'many']) {
      const error = await refused(await post(server, '/completion', body(list, { 'speculative.n_max': wrong })), 400);
      assert.match(JSON.stringify(error), /speculative\.n_max/);
    }
  });
});

describe('the length of n-grams', () => {
  // Answers repeat some of their tokens, but not so many at once.
  for (const [flags, drafted] of [[['--spec-ngram-size', '2'], true], [['--spec-ngram-mod-n-match', '200'], false]]) {
    it(`decides what is drafted: ${flags.join(' ')}`, async (t) => {
      const server = await start(t, [...demo, '-np', '1', '--spec-type', 'ngram', '--draft-min', '3', ...flags]);
      const answers = await all(server, {});
      assert.equal(answers.some(({ timings }) => timings.draft_n > 0), drafted);
    });
  }
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
    assert.ok(metrics.value('chasqui_spec_draft_rows_total') > 0, 'it has read the prompts');
    const checked = metrics.value('chasqui_spec_draft_tokens_total');
    assert.ok(metrics.value('chasqui_spec_accepted_tokens_total') > 0.2 * checked, 'it was trained for it');
  });

  it('is told of by the timings, the log and the metrics, where its draft tokens count as accepted', async () => {
    for (let i = 0; i < 4; ++i) await all(server);
    const metrics = await server.idle();
    const value = (name, labels) => metrics.value(name, labels);
    assert.ok(value('chasqui_spec_draft_tokens_total') > 0);
    const checked = value('chasqui_spec_draft_tokens_total');
    assert.ok(value('chasqui_spec_accepted_tokens_total') > 0.9 * checked, 'all but those that end it');
    assert.ok(value('chasqui_spec_accepted_tokens_at_total', { position: '0' }) > 0);
    assert.equal(value('chasqui_spec_accepted_tokens_at_total', { position: '4' }), 0, '--draft-max 4');
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

// With random weights they are never right; those that count as right take the way of those that are. Such models are
// undecided between two tokens now and then, and other numbers of rows are rounded in other ways; but a state that was
// taken back wrongly would show at the first draft token.
const begins = (a, b) => {
  let same = 0;
  while (same < a.length && a[same] === b[same]) ++same;
  return same >= a.length / 5;
};
describe('heads', async () => {
  const kinds = [
    ['in a file of their own', ['-m', testModel('24m-f16')], ['-md', testModel('eagle3')]],
    ['in the file of the model', ['-m', testModel('mtp')], ['--spec-type', 'draft-mtp']],
    ['of a model whose memory is partly a state', ['-m', testModel('qwen35')], ['--spec-type', 'mtp']],
  ];
  for (const [where, model, flags] of kinds) {
    it(`${where} change no answer, alone and in company`, async () => {
      const plain = await start(test, [...model, '-np', '4', '-c', '2048', '--spec-type', 'none']);
      const server = await start(test, [...model, '-np', '4', '-c', '2048', ...flags, '--draft-min', '2']);
      const expected = texts(await all(plain));
      const alone = [];
      for (const prompt of prompts) alone.push((await ask(server, '/completion', body(prompt))).content);
      for (const found of [alone, texts(await all(server))]) {
        const same = found.filter((text, i) => begins(text, expected[i]));
        assert.ok(same.length >= prompts.length - 1, `${JSON.stringify(found)}, and not ${JSON.stringify(expected)}`);
      }
      const metrics = await server.idle();
      assert.ok(metrics.value('chasqui_spec_draft_tokens_total') > 100);
      assert.equal(metrics.value('chasqui_spec_draft_rows_total'), 0, 'they have nothing to read');
      assert.equal(metrics.value('chasqui_spec_accepted_tokens_at_total', { position: '3' }), 0, 'three at a time');
      for (const answer of await all(server, { 'speculative.n_max': 0 })) assert.equal(answer.timings.draft_n, undefined);
    });

    it(`${where} make several tokens of a step where they count as right`, async () => {
      const server = await start(test, [...model, '-np', '4', '-c', '2048', ...flags, '--spec-synth-rates', '1', '--draft-min', '3']);
      await all(server);
      for (const prompt of prompts) await ask(server, '/completion', body(prompt));
      const metrics = await server.idle();
      const checked = metrics.value('chasqui_spec_draft_tokens_total');
      assert.ok(checked > 0);
      assert.ok(metrics.value('chasqui_spec_accepted_tokens_total') > 0.9 * checked);
    });
  }

  it('must be there and fit', async () => {
    const cases = [
      [[...demo, '--spec-type', 'mtp'], /--spec-type mtp: the model has no such heads/],
      [['-m', testModel('hybrid'), '--spec-type', 'mtp'], /--spec-type mtp: the model has no such heads/],
      [[...demo, '--spec-type', 'eagle3'], /--spec-type eagle3 needs a file: --model-draft FILE/],
      [[...demo, '-md', testModel('eagle3')], /--model-draft: .* they read states of width 288, the model has /],
      [[...demo, '--spec-type', 'eagle3', '-md', draft], /--model-draft: .* has no EAGLE-3 heads/],
    ];
    for (const [flags, message] of cases) {
      const { code, stderr } = await run(['serve', ...flags, '--port', '0']);
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    }
  });

  it('sleep and wake with their model', async () => {
    const server = await start(test, ['-m', testModel('24m-f16'), '-np', '2', '-c', '1024', '-md', testModel('eagle3'), '--draft-min', '2',
      '--sleep-idle-seconds', '1']);
    const before = await ask(server, '/completion', body(list));
    await server.until((metrics) => metrics.value('chasqui_sleeping') === 1, 'it sleeps');
    assert.equal((await ask(server, '/completion', body(list))).content, before.content);
  });
});

// Its state is taken back with the draft tokens that were rejected.
describe('a model whose memory is partly a state', async () => {
  const model = ['-m', testModel('hybrid'), '-np', '4', '-c', '2048'];

  it('goes on as without draft tokens where all of them are rejected', async (t) => {
    const plain = await start(t, [...model, '--spec-type', 'none']);
    const server = await start(t, [...model, '--spec-type', 'ngram', '--spec-synth-rates', '0', '--draft-min', '3']);
    const expected = texts(await all(plain));
    const alone = async () => {
      const answers = [];
      for (const prompt of prompts) answers.push(await ask(server, '/completion', body(prompt)));
      return texts(answers);
    };
    for (const found of [await alone(), await alone(), texts(await all(server))]) { // then from checkpoints, and in company
      const same = found.filter((text, i) => begins(text, expected[i]));
      assert.ok(same.length >= prompts.length - 1, `${JSON.stringify(found)}, and not ${JSON.stringify(expected)}`);
    }
    const metrics = await server.idle();
    assert.ok(metrics.value('chasqui_spec_draft_tokens_total') > 300);
    assert.equal(metrics.value('chasqui_spec_accepted_tokens_total'), 0);
  });

  it('says several tokens in a step where they are accepted', async (t) => {
    const server = await start(t, [...model, '--spec-type', 'ngram', '--spec-synth-rates', '1', '--draft-min', '3']);
    for (const prompt of prompts) {
      const { timings } = await ask(server, '/completion', body(prompt));
      assert.ok(timings.draft_n_accepted > 60, JSON.stringify(timings));
    }
  });

  it('checks what a draft model says', async (t) => {
    const server = await start(t, ['-m', testModel('hybrid'), '-np', '2', '-c', '1024', '-md', testModel('24m-f16'), '--draft-min', '2']);
    const answer = await ask(server, '/completion', body(list));
    assert.ok(answer.timings.draft_n > 0, JSON.stringify(answer.timings));
  });
});

describe('the source of draft tokens', () => {
  const cases = [
    ['none', 0, [...demo, '--spec-type', 'none']],
    ['ngram', 7, [...demo, '--spec-type', 'ngram']],
    ['draft', 4, [...demo, '--model-draft', draft, '--draft-max', '4']],
    ['heads', 3, ['-m', testModel('mtp'), '-c', '1024', '--spec-type', 'mtp']],
    ['heads', 2, ['-m', testModel('qwen35moe'), '-c', '1024', '--spec-type', 'mtp', '--draft-max', '2']],
    ['none', 0, ['-m', testModel('qwen35'), '-c', '1024', '-md', testModel('eagle3')]],
    ['ngram', 5, ['-m', testModel('hybrid'), '-c', '1024', '--spec-type', 'ngram', '--draft-max', '5']],
    ['none', 0, ['-m', testModel('recurrent'), '-c', '1024', '--spec-type', 'ngram']],
  ];
  for (const [drafter, most, flags] of cases) {
    it(`is in /props and /slots: ${drafter} with ${flags.join(' ').replace(/\S*\//g, '')}`, async (t) => {
      const server = await start(t, [...flags, '-np', '2']);
      assert.deepEqual((await (await server.fetch('/props')).json()).speculation, { drafter, n_max: most });
      for (const slot of await (await server.fetch('/slots')).json()) assert.equal(slot.speculative, most > 0);
    });
  }
});
