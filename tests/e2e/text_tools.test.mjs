// Tokens, text and templates without an answer.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

const texts = [
  '', ' ', '\n\n', 'Hello, world', '  two  spaces  ', 'tab\tand\r\nline', 'ñandú naïve Ünïcödé', '日本語のテキスト',
  '👩‍👩‍👧 🚀 🇵🇪', '\u0000\u0001\u007f', 'x'.repeat(5000), '{"json": [1, 2.5, null]}', '<|im_start|>user\nhi<|im_end|>',
];

for (const [name, flags] of [['demo', demo], ['simulated', sim]]) {
  describe(`the tokenizer of the ${name} model`, async () => {
    const server = await start(test, flags);
    const tokenize = (content, fields = {}) => ask(server, '/tokenize', { content, ...fields });
    const detokenize = async (tokens) => (await ask(server, '/detokenize', { tokens })).content;

    for (const parse_special of [true, false]) {
      it(`gives every text back, with parse_special ${parse_special}`, async () => {
        for (const text of texts) {
          const { tokens } = await tokenize(text, { parse_special });
          assert.ok(tokens.every(Number.isInteger));
          assert.equal(await detokenize(tokens), text);
        }
      });
    }

    it('reads a special token only when asked', async () => {
      const special = await tokenize('<|im_end|>', { parse_special: true });
      assert.equal(special.tokens.length, 1);
      const spelt = await tokenize('<|im_end|>', { parse_special: false });
      assert.ok(spelt.tokens.length > 1);
      assert.deepEqual((await tokenize('<|im_end|>')).tokens, special.tokens, 'true is the default');
    });

    it('reads texts and token ids in one array', async () => {
      const [a, b] = [await tokenize('one'), await tokenize(' two')];
      const mixed = await tokenize(['one', 300, ' two']);
      assert.deepEqual(mixed.tokens, [...a.tokens, 300, ...b.tokens]);
    });

    it('shows the piece of each token', async () => {
      const { tokens } = await tokenize('stream of words <|im_end|>', { with_pieces: true });
      assert.equal(tokens.map(({ piece }) => piece).join(''), 'stream of words <|im_end|>');
      const plain = await tokenize('stream of words <|im_end|>');
      assert.deepEqual(tokens.map(({ id }) => id), plain.tokens);
    });

    it('shows a piece that is no character by itself as its bytes', async () => {
      const { tokens } = await tokenize('🚀', { with_pieces: true });
      const bytes = tokens.flatMap(({ piece }) => (Array.isArray(piece) ? piece : [...Buffer.from(piece)]));
      assert.deepEqual(Buffer.from(bytes), Buffer.from('🚀'));
    });

    it('makes valid UTF-8 of half a character', async () => {
      const { tokens } = await tokenize('🚀');
      if (tokens.length === 1) return;
      assert.match(await detokenize(tokens.slice(0, 1)), /^\uFFFD+$/);
    });

    it('shows tools, their calls and their results', async () => {
      const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Cusco"}' } };
      const messages = [
        { role: 'user', content: 'How is the weather?' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'cold and clear' },
      ];
      const parameters = { type: 'object', properties: { city: { type: 'string' } } };
      const tools = [{ type: 'function', function: { name: 'get_weather', description: 'looks out', parameters } }];
      const { prompt } = await ask(server, '/apply-template', { messages, tools });
      for (const part of ['get_weather', 'looks out', 'Cusco', 'cold and clear']) assert.ok(prompt.includes(part), part);
      // What the model may do with them changes nothing of the prompt, so that a prefix of it can be used again.
      const idle = await ask(server, '/apply-template', { messages, tools, tool_choice: 'none' });
      assert.equal(idle.prompt, prompt);
    });

    it('counts the tokens of a chat, in the shape of Responses', async () => {
      const messages = [{ role: 'user', content: 'Hi' }];
      const { prompt } = await ask(server, '/apply-template', { messages });
      const { tokens } = await ask(server, '/tokenize', { content: prompt, add_special: true });
      const counted = { object: 'response.input_tokens', input_tokens: tokens.length };
      for (const route of ['/chat/completions', '/v1/chat/completions']) assert.deepEqual(await ask(server, `${route}/input_tokens`, { messages }), counted);
      assert.deepEqual(await ask(server, '/v1/responses/input_tokens', { input: 'Hi' }), counted);
    });

    it('shows what a chat becomes', async () => {
      const messages = [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content: 'Bye' },
      ];
      const { prompt } = await ask(server, '/apply-template', { messages });
      let at = -1;
      for (const part of ['system', 'Be kind.', 'user', 'Hi', 'assistant', 'Hello', 'user', 'Bye', 'assistant']) {
        at = prompt.indexOf(part, at + 1);
        assert.ok(at >= 0, `${part} is missing in ${prompt}`);
      }
      const closed = await ask(server, '/apply-template', { messages, add_generation_prompt: false });
      assert.ok(prompt.startsWith(closed.prompt) && closed.prompt.length < prompt.length);
    });
  });
}
