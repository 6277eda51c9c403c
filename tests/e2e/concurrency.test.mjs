// Many answers at once: each is what it would be alone, and they share the batches.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, streamChat } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

describe('concurrent streams', async () => {
  const server = await start(test, demo);

  it('all complete, and their pieces arrive in turns', async () => {
    const before = await server.metrics();
    const streams = await Promise.all([1, 2, 3, 4, 5].map(async (number) => {
      const fields = { ignore_eos: true, max_tokens: 1000 };
      const stream = await streamChat(server, `Count from 1 to 10, request ${number}`, fields);
      return stream.collect();
    }));
    for (const stream of streams) {
      assert.equal(stream.finish, 'length');
      assert.ok(stream.pieces.length >= 20, `${stream.pieces.length} pieces`);
    }
    // In which order this process reads its sockets says little, how many steps it took says it all.
    const steps = (await server.metrics()).steps() - before.steps();
    assert.ok(steps < 2 * 1000, `${steps} steps: requests waited for others to end`);
  });

  it('and whole answers are the same together as alone', async () => {
    const questions = ['What is Chasqui?', 'How do I stream answers?', 'Who are you?', 'How do I see the metrics?'];
    const fields = { max_tokens: 24 };
    const alone = new Map();
    for (const question of questions) alone.set(question, (await answer(server, question, fields)).text);
    const jobs = Array.from({ length: 16 }, async (_, i) => {
      const question = questions[i % questions.length];
      if (i % 2 === 0) return [question, (await answer(server, question, fields)).text];
      return [question, (await (await streamChat(server, question, fields)).collect()).text];
    });
    for (const [question, text] of await Promise.all(jobs)) assert.equal(text, alone.get(question), question);
  });
});

describe('the batch', async () => {
  // Slow steps: answers that are asked for together meet, however late the second request comes.
  const server = await start(test, [...sim, '--sim-step', '2', '-np', '8', '-c', '32000']);

  it('holds a row of each running answer', async () => {
    const fields = { ignore_eos: true, max_tokens: 400 };
    const before = await server.metrics();
    await answer(server, 'one', fields);
    const one = await server.metrics();
    await Promise.all([answer(server, 'one', fields), answer(server, 'one', fields)]);
    const two = await server.metrics();
    const stepsOfOne = one.steps() - before.steps();
    const stepsOfTwo = two.steps() - one.steps();
    const rowsOfTwo = two.rows() - one.rows();
    assert.equal(stepsOfOne, 399, 'the first token is of the prefill');
    assert.equal(rowsOfTwo, 2 * 399);
    assert.ok(rowsOfTwo / stepsOfTwo > 1.5, `${rowsOfTwo} rows in ${stepsOfTwo} steps`);
    assert.ok(stepsOfTwo < 1.5 * stepsOfOne, `${stepsOfTwo} steps for two, ${stepsOfOne} for one`);
  });

  it('mixes nothing up: sixteen different answers of eight slots are those given alone', async () => {
    const prompts = Array.from({ length: 16 }, (_, i) => `${i} times ${'word '.repeat(i * 7)}`);
    const one = (prompt) => ask(server, '/generate', { prompt, stream: false, ignore_eos: true, max_tokens: 60 });
    const alone = [];
    for (const prompt of prompts) alone.push((await one(prompt)).text);
    assert.equal(new Set(alone).size, prompts.length, 'the answers differ');
    const together = await Promise.all(prompts.map(one));
    assert.deepEqual(together.map(({ text }) => text), alone);
  });

  it('is the same with the cells of all slots in one pool', async (t) => {
    const unified = await start(t, [...sim, '-np', '4', '-c', '8000', '--kv-unified']);
    const prompts = ['red', 'green', 'blue', 'white', 'black', 'yellow'];
    const fields = { stream: false, ignore_eos: true, max_tokens: 80 };
    const all = await Promise.all(prompts.map((prompt) => ask(unified, '/generate', { prompt, ...fields })));
    for (const [i, prompt] of prompts.entries()) {
      assert.equal(all[i].text, (await ask(server, '/generate', { prompt, ...fields })).text);
    }
    const props = await (await unified.fetch('/props')).json();
    assert.equal(props.kv.layout, 'unified');
  });

  it('of the demo model works in one pool, too', async (t) => {
    const unified = await start(t, [...demo, '-np', '4', '--kv-unified']);
    const questions = ['What is Chasqui?', 'Who are you?', 'What is Chasqui?', 'Who are you?', 'Who are you?'];
    const texts = await Promise.all(questions.map(async (q) => (await answer(unified, q, { max_tokens: 16 })).text));
    assert.equal(texts[0], texts[2]);
    assert.equal(texts[1], texts[3]);
    assert.equal(texts[1], texts[4]);
  });
});
