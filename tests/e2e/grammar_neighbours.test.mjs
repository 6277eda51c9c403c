// What a grammar costs those who have none: a stream beside eight clients with large grammars is compared with the same
// stream beside eight clients without, in turns, so that what else the machine does hits both.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, pieceOf, streamChat, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const values = many(1000, (i) => `value ${(i * 7919) % 100_003} of the list`);
const constraints = [
  ['a schema of 1,000 values', { json_schema: { type: 'object', properties: { k: { enum: values } }, required: ['k'] } },
    (text) => assert.ok(values.includes(JSON.parse(text).k), text)],
  ['a grammar of 1,300 alternatives', { grammar: `root ::= (${many(1300, () => '[ऀ-ॿ]').join(' | ')}){1,12}` },
    (text) => assert.match(text, /^[\u0900-\u097f]{1,12}$/u)],
];

// Every token that the model likes is refused: it is as likely as any other.
const wild = { temperature: 50, top_k: 0, top_p: 1, min_p: 0, max_tokens: 200 };

async function clients(server, fields, check, state) {
  await Promise.all(many(8, async (i) => {
    while (!state.done) {
      const answer = await ask(server, '/v1/chat/completions', { messages: user('go on'), ...wild, ...fields, seed: i });
      const [{ message, finish_reason: finish }] = answer.choices;
      if (fields.ignore_eos) continue;
      assert.equal(finish, 'stop', message.content);
      check(message.content);
      ++state.answers;
    }
  }));
}

// How long each token takes, in ms. One gap says little: a read of this process often has several pieces.
async function timePerToken(server, fields, check, state) {
  const crowd = clients(server, fields, check, state);
  const stream = await streamChat(server, 'a story', { ignore_eos: true, max_tokens: 600, temperature: 0 });
  const times = [];
  await stream.collect((chunk) => {
    if (pieceOf(chunk)) times.push(performance.now());
  });
  state.done = true;
  await crowd;
  return (times.at(-1) - times[0]) / (times.length - 1);
}

for (const [name, fields, check] of constraints) {
  describe(`beside eight clients with ${name}`, async () => {
    const server = await start(test, [...demo, '-np', '9', '-c', '9216']);

    it('a stream has its tokens as beside eight without, and no answer is cut', async () => {
      const times = { plain: [], constrained: [] };
      let answers = 0;
      for (let round = 0; round < 5; ++round) {
        const free = { ignore_eos: true, max_tokens: 40 };
        times.plain.push(await timePerToken(server, free, check, { done: false, answers: 0 }));
        const state = { done: false, answers: 0 };
        times.constrained.push(await timePerToken(server, fields, check, state));
        answers += state.answers;
      }
      assert.ok(answers >= 40, `${answers} answers`);
      const middle = (of) => [...of].sort((a, b) => a - b)[2];  // what a busy machine does to one round says nothing
      const ratio = middle(times.constrained) / middle(times.plain);
      assert.ok(ratio < 2, `${ratio.toFixed(2)} times as long: ${JSON.stringify(times)}`);
    });
  });
}
