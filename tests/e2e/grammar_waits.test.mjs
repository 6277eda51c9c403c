// A grammar whose masks take longer than there is time for after one step: its answers are those that masks found before
// give, and the streams beside it go on.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, streamChat, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

// Any character leads out of each of a hundred rules in several ways. With another number they lead elsewhere, so that
// nothing is known from before.
function ambiguous(number) {
  const rule = (n) => `r${n % 100}`;
  const rules = Array.from({ length: 100 }, (_, i) =>
    `${rule(i)} ::= . ${rule(i + 1)} | . ${rule(i * (5 + 2 * number) + 3)} ${rule(i * 7 + number)} | .`);
  return ['root ::= r0', ...rules].join('\n');
}
const wild = { temperature: 50, top_k: 0, top_p: 1, min_p: 0, max_tokens: 20, messages: user('go on'), cache_prompt: false };

describe('a grammar whose masks take long', async () => {
  const server = await start(test, [...demo, '-np', '4']);
  const putOff = async () => (await server.metrics()).value('chasqui_grammar_masks_put_off_total');
  const said = async (number) => {
    const body = { ...wild, seed: number, grammar: ambiguous(number) };
    const { choices: [{ message, finish_reason: finish }] } = await ask(server, '/v1/chat/completions', body);
    assert.equal(finish, 'length');
    return message.content;
  };

  it('makes its tokens wait, and changes none', async () => {
    const before = await putOff();
    const first = [await said(1), await said(2), await said(3)];
    const waited = await putOff();
    assert.ok(waited > before, 'tokens were put off');
    assert.deepEqual([await said(1), await said(2), await said(3)], first);
    assert.equal(await putOff(), waited, 'all masks were found');
  });

  it('holds up no stream beside it', async () => {
    const stream = await streamChat(server, 'a story', { ignore_eos: true, max_tokens: 300, temperature: 0 });
    const others = Promise.all([4, 5, 6].map(said));
    await stream.collect();
    assert.equal(stream.finish, 'length');
    await others;
  });
});
