// A grammar whose masks take longer than there is time for after one step: its answers are those that masks found before
// give, and the streams beside it go on.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, streamChat, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

// Each alternative takes other letters, so that each text leads to other places.
const dice = (seed) => () => (seed = (seed * 48271) % 2147483647) / 2147483647;
function classes(alternatives, end) {
  const next = dice(7);
  const letters = () => [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'].filter(() => next() < 0.5).join('');
  return `root ::= (${Array.from({ length: alternatives }, (_, i) => `[${letters()} ]{2,30} "${i}"`).join(' | ')}) ".${end}"`;
}
const wild = { temperature: 50, top_k: 0, top_p: 1, min_p: 0, max_tokens: 400, messages: user('go on'), cache_prompt: false };

describe('a grammar whose masks take long', async () => {
  const server = await start(test, [...demo, '-np', '4']);
  const putOff = async () => (await server.metrics()).value('chasqui_grammar_masks_put_off_total');
  const said = async (fields) => {
    const { choices: [{ message, finish_reason: finish }] } = await ask(server, '/v1/chat/completions', { ...wild, ...fields });
    assert.equal(finish, 'stop', message.content);
    assert.match(message.content, /^[a-zA-Z ]{2,30}\d+\.\d$/);
    return message.content;
  };

  it('makes its token wait, and changes none', async () => {
    for (const seed of [1, 2, 3]) {
      const fields = { seed, grammar: classes(20, seed) }; // another grammar each time, so that nothing is known of it
      const before = await putOff();
      const first = await said(fields);
      const waited = await putOff();
      assert.ok(waited > before, 'tokens were put off');
      assert.equal(await said(fields), first);
      assert.equal(await putOff(), waited, 'all masks were found');
    }
  });

  it('holds up no stream beside it', async () => {
    const stream = await streamChat(server, 'a story', { ignore_eos: true, max_tokens: 300, temperature: 0 });
    const others = Promise.all([4, 5, 6].map((seed) => said({ seed, grammar: classes(30, seed) })));
    await stream.collect();
    assert.equal(stream.finish, 'length');
    await others;
  });
});
