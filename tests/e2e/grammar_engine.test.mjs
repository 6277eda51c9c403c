// --grammar-engine: both engines keep answers to the same grammars, and tell faults of a grammar by the field.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, post, user } from './client.mjs';
import { demo, run, start } from './server.mjs';

const { describe, it } = test;
const chat = '/v1/chat/completions';
const base = { messages: user('x'), temperature: 3, max_tokens: 60 };

for (const engine of ['chasqui', 'llama']) {
  describe(`--grammar-engine ${engine}`, async () => {
    const server = await start(test, [...demo, '-np', '2', '--grammar-engine', engine]);

    it('keeps answers to a grammar, whatever the model likes', async () => {
      for (let seed = 0; seed < 6; ++seed) {
        const grammar = 'root ::= "{" ("yes" | "no") ", " [0-9]{2,5} "}"';
        const { choices } = await ask(server, chat, { ...base, seed, grammar });
        assert.match(choices[0].message.content, /^\{(yes|no), \d{2,5}\}$/);
        assert.equal(choices[0].finish_reason, 'stop');
      }
    });

    it('keeps several answers at once apart', async () => {
      const { choices } = await ask(server, chat, { ...base, n: 2, grammar: 'root ::= [a-z]{3} "."' });
      for (const choice of choices) assert.match(choice.message.content, /^[a-z]{3}\.$/);
    });

    it('refuses a grammar that begins with itself', async () => {
      const response = await post(server, chat, { ...base, grammar: 'root ::= item\nitem ::= item "x" | "y"' });
      const { error } = await response.json();
      assert.equal(response.status, 400);
      assert.match(error.message, /grammar/);
      if (engine === 'chasqui') assert.match(error.message, /left-recursive: rule item can begin with itself/);
    });
  });
}

describe('--grammar-engine', () => {
  it('refuses what is no engine, and says which there are', async () => {
    const { code, stderr } = await run(['serve', '--port', '0', '--grammar-engine', 'regex']);
    assert.notEqual(code, 0);
    assert.match(stderr, /grammar-engine.*chasqui.*llama/s);
  });
});

describe('our own engine', async () => {
  const server = await start(test, [...demo, '-np', '1']);

  it('names line and rule of a fault, and refuses what never ends', async () => {
    for (const [grammar, about] of [
      ['root ::= item', /line 1.*rule item is used but not defined/],
      ['root ::= "a"\nitem ::= ("b"', /line 2, rule item: a group is not closed/],
      ['root ::= "a" root', /matches no text: rule root never comes to an end/],
    ]) {
      const response = await post(server, chat, { ...base, grammar });
      const { error } = await response.json();
      assert.equal(response.status, 400);
      assert.match(error.message, about);
    }
  });
});
