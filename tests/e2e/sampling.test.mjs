// What a client can say about how an answer is made and where it ends.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, streamChat } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const question = 'What is Chasqui?';

// The answer streamed and whole, which must be the same.
async function bothWays(server, messages, fields) {
  const whole = await answer(server, messages, fields);
  const stream = await streamChat(server, messages, fields);
  await stream.collect();
  assert.equal(stream.text, whole.text);
  assert.equal(stream.finish, whole.finish);
  return whole;
}

describe('a stop string', async () => {
  const server = await start(test, sim);
  const say = (text, stop) => bothWays(server, `say: ${text}`, { stop });

  it('ends the answer before it, although it spans several tokens', async () => {
    assert.deepEqual(pick(await say('one two THREE four', 'THREE')), { text: 'one two ', finish: 'stop' });
  });
  it('cuts inside a token', async () => {
    assert.deepEqual(pick(await say('one two three four', 'hre')), { text: 'one two t', finish: 'stop' });
  });
  it('may begin the answer', async () => {
    assert.deepEqual(pick(await say('one two', 'one')), { text: '', finish: 'stop' });
  });
  it('may be one of several, and the first that is complete counts', async () => {
    assert.equal((await say('abcdefgh', ['xyz', 'fgh', 'def'])).text, 'abc');
    assert.equal((await say('abcdefgh', ['abcdefgh!', 'gh'])).text, 'abcdef');
  });
  it('that is only begun at the end of the answer is given out', async () => {
    assert.equal((await say('one two END', 'ENDING')).text, 'one two END');
  });
  it('that begins again and again is found', async () => {
    assert.equal((await say('ababababac!', 'ababac')).text, 'abab');
  });
  it('may hold characters of several bytes', async () => {
    assert.equal((await say('el ñandú corre', 'ñandú')).text, 'el ');
    assert.equal((await say('go 🚀 now', ['🚁', '🚀'])).text, 'go ');
  });
  it('is never sent in part before it is complete', async () => {
    const stream = await streamChat(server, 'say: keep STOP drop', { stop: ['STOP'] });
    let seen = '';
    await stream.collect((chunk) => {
      seen += chunk.choices[0]?.delta.content ?? '';
      assert.ok('keep '.startsWith(seen), JSON.stringify(seen));
    });
    assert.equal(seen, 'keep ');
  });
  it('may be one of sixteen', async () => {
    const stop = Array.from({ length: 15 }, (_, i) => `never ${i}`);
    assert.equal((await say('red green blue', [...stop, 'blue'])).text, 'red green ');
  });
});

const pick = ({ text, finish }) => ({ text, finish });

describe('an answer of the demo model', async () => {
  const server = await start(test, demo);
  const full = await answer(server, question);

  it('is cut exactly at any stop string that occurs in it', async () => {
    for (const [from, length] of [[0, 5], [7, 3], [10, 12], [21, 1]]) {
      const stop = full.text.slice(from, from + length);
      const { text, finish } = await bothWays(server, question, { stop });
      assert.equal(text, full.text.slice(0, full.text.indexOf(stop)), JSON.stringify(stop));
      assert.equal(finish, 'stop');
    }
  });

  it('ends after max_tokens, and says so', async () => {
    const short = await bothWays(server, question, { max_tokens: 7 });
    assert.equal(short.finish, 'length');
    assert.equal(short.usage.completion_tokens, 7);
    assert.ok(full.text.startsWith(short.text));
  });

  it('may be of no tokens at all', async () => {
    const none = await bothWays(server, question, { max_tokens: 0 });
    assert.deepEqual([none.text, none.finish, none.usage.completion_tokens], ['', 'length', 0]);
  });

  it('knows max_tokens by the names of other servers', async () => {
    for (const name of ['max_completion_tokens', 'n_predict']) {
      const short = await answer(server, question, { [name]: 5 });
      assert.equal(short.usage.completion_tokens, 5, name);
    }
    const newest = await answer(server, question, { max_tokens: 9, max_completion_tokens: 4 });
    assert.equal(newest.usage.completion_tokens, 4, 'the newest name wins');
    assert.equal((await answer(server, question, { max_tokens: null })).text, full.text, 'null is as good as absent');
  });

  it('is the same for the same seed, and differs between seeds', async () => {
    // Hot enough that even a model which is sure of its answer has a choice.
    const wild = { temperature: 8, top_k: 0, top_p: 1, min_p: 0, max_tokens: 24 };
    const texts = [];
    for (const seed of [1, 2, 3, 4]) {
      const { text } = await answer(server, question, { ...wild, seed });
      assert.equal((await answer(server, question, { ...wild, seed })).text, text, `seed ${seed}`);
      texts.push(text);
    }
    assert.ok(new Set(texts).size > 1, texts[0]);
  });

  it('takes seeds of any integer size', async () => {
    for (const seed of [0, -1, 2 ** 40, 2 ** 52]) {
      await answer(server, question, { temperature: 1, seed, max_tokens: 2 });
    }
  });

  it('with top_k 1 is the greedy one at any temperature', async () => {
    const { text } = await answer(server, question, { temperature: 5, top_k: 1, seed: 7, max_tokens: 20 });
    assert.ok(full.text.startsWith(text));
  });

  it('does not begin with a token that logit_bias bans', async () => {
    const { tokens } = await ask(server, '/tokenize', { content: full.text });
    const first = tokens[0];
    const { text: before } = await answer(server, question, { max_tokens: 1 });
    for (const logit_bias of [{ [first]: -100 }, [[first, -100]], [[first, false]]]) {
      const { text } = await answer(server, question, { max_tokens: 1, logit_bias });
      assert.notEqual(text, before, JSON.stringify(logit_bias));
    }
  });

  it('consists of the token that logit_bias forces', async () => {
    const { tokens } = await ask(server, '/tokenize', { content: 'server', with_pieces: true });
    const { id, piece } = tokens[0];
    const { text } = await answer(server, question, { max_tokens: 4, logit_bias: { [id]: 1000 } });
    assert.equal(text, piece.repeat(4));
  });

  it('is made with the extremes of every parameter', async () => {
    const extremes = {
      temperature: [0, 1e-30, 100], top_k: [-1, 0, 1, 1e6], top_p: [0, 1], min_p: [0, 1], min_keep: [0, 1e6],
      repeat_penalty: [0.1, 100], repeat_last_n: [-1, 0, 1e6], frequency_penalty: [-100, 100],
      presence_penalty: [-100, 100],
      logit_bias: [{ 5: 3e38 }, { 5: -3e38 }, Array.from({ length: 1024 }, (_, i) => [i, false])],
    };
    for (const [name, values] of Object.entries(extremes)) {
      for (const value of values) {
        const fields = { temperature: 1, max_tokens: 6, ignore_eos: true, [name]: value };
        assert.equal((await answer(server, question, fields)).usage.completion_tokens, 6, `${name} ${value}`);
      }
    }
    assert.equal((await answer(server, question)).text, full.text);
  });

  it('repeats itself less with a penalty', async () => {
    const { tokens } = await ask(server, '/tokenize', { content: 'server' });
    const fields = { max_tokens: 6, logit_bias: { [tokens[0]]: 20 } };
    const plain = await answer(server, question, fields);
    const varied = await answer(server, question, { ...fields, presence_penalty: 100 });
    assert.notEqual(varied.text, plain.text);
  });
});

describe('an answer without an end', async () => {
  const server = await start(test, [...sim, '-np', '2', '-c', '1024']);

  it('fills the context with ignore_eos', async () => {
    const { usage, finish } = await answer(server, question, { ignore_eos: true });
    assert.equal(usage.total_tokens, 512);
    assert.equal(finish, 'length');
  });

  it('ends by itself without it', async () => {
    assert.equal((await answer(server, 'say: good bye', {})).finish, 'stop');
    const more = await answer(server, 'say: good bye', { ignore_eos: true, max_tokens: 100 });
    assert.equal(more.usage.completion_tokens, 100);
    assert.ok(more.text.startsWith('good bye'));
  });

  it('may be asked for with -1', async () => {
    const { usage } = await answer(server, question, { ignore_eos: true, max_tokens: -1 });
    assert.equal(usage.total_tokens, 512);
  });

  it('is cut by the flag --predict when the request does not say', async (t) => {
    const short = await start(t, [...sim, '-n', '11']);
    assert.equal((await answer(short, question, { ignore_eos: true })).usage.completion_tokens, 11);
    assert.equal((await answer(short, question, { ignore_eos: true, max_tokens: 30 })).usage.completion_tokens, 30);
  });
});
