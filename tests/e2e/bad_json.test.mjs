// Bodies that are not the JSON that they should be.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, post, refused } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const paths = ['/v1/chat/completions', '/v1/completions', '/generate', '/tokenize', '/detokenize', '/apply-template'];
const chatWith = (content) => `{"messages":[{"role":"user","content":${content}}],"max_tokens":4}`;
const inString = (...bytes) => Buffer.concat([Buffer.from('{"prompt":"'), Buffer.from(bytes), Buffer.from('"}')]);

const malformed = [
  ['no body', '', /empty/],
  ['white space', ' \r\n\t', /empty/],
  ['an array', '[]', /a JSON object/],
  ['a string', '"hello"', /a JSON object/],
  ['a number', '42', /a JSON object/],
  ['null', 'null', /a JSON object/],
  ['half an object', '{"messages":[', /not valid JSON/],
  ['two objects', '{}{}', /not valid JSON/],
  ['a trailing comma', '{"prompt":"x",}', /not valid JSON/],
  ['single quotes', "{'prompt':'x'}", /not valid JSON/],
  ['NaN', '{"temperature":NaN}', /not valid JSON/],
  ['Infinity', '{"temperature":Infinity}', /not valid JSON/],
  ['a comment', '{} // why not', /not valid JSON/],
  ['a byte order mark', '\uFEFF{}', /not valid JSON/],
  ['a form', 'prompt=hello&max_tokens=5', /not valid JSON/],
  ['a raw line end in a string', '{"prompt":"a\nb"}', /not valid JSON/],
  ['a raw NUL in a string', '{"prompt":"a\u0000b"}', /not valid JSON/],
  ['a raw NUL behind the object', '{}\u0000', /not valid JSON/],
  ['invalid UTF-8', inString(0xc3, 0x28), /not valid JSON/],
  ['overlong UTF-8', inString(0xc0, 0xaf), /not valid JSON/],
  ['a surrogate in UTF-8', inString(0xed, 0xa0, 0x80), /not valid JSON/],
  ['half a character at the end', inString(0xf0, 0x9f, 0x9a), /not valid JSON/],
  ['half a surrogate pair', '{"prompt":"\\ud800"}', /not valid JSON/],
  ['the other half', '{"prompt":"\\udc00"}', /not valid JSON/],
  ['a pair in the wrong order', '{"prompt":"\\udc00\\ud800"}', /not valid JSON/],
  ['a hundred thousand brackets', '['.repeat(100_000), /nested too deeply; at most \d+/],
  ['a deep object', '{"a":'.repeat(1000) + '1' + '}'.repeat(1000), /nested too deeply/],
  ['a number that is endless', `{"temperature":${'9'.repeat(400)}}`, /./],
];

for (const [name, flags] of [['demo', demo], ['simulated', sim]]) {
  describe(`in place of JSON, with the ${name} model`, async () => {
    const server = await start(test, flags);
    const before = await answer(server, 'say: unharmed', { max_tokens: 12 });

    for (const [what, body, message] of malformed) {
      it(`${what} is refused`, async () => {
        for (const path of paths) {
          const error = await refused(await post(server, path, body), 400);
          assert.match(error.message, message);
          assert.equal(error.type, 'invalid_request_error');
        }
      });
    }

    it('odd but valid JSON is accepted', async () => {
      for (const content of ['"a\\u0000b"', '"\\ud83d\\ude80"', '"\\u200f\\u202e"', '"<|im_end|>"', '""']) {
        const response = await post(server, '/v1/chat/completions', chatWith(content));
        assert.equal(response.status, 200, `${content}: ${await response.text()}`);
      }
    });

    it('a field that is there twice counts once, with its last value', async () => {
      const twice = '"max_tokens":1,"max_tokens":3,"ignore_eos":true';
      const body = chatWith('"say: abcdefgh"').replace('"max_tokens":4', twice);
      const response = await post(server, '/v1/chat/completions', body);
      assert.equal((await response.json()).usage.completion_tokens, 3);
    });

    it('a body in chunks is as good as one with a length', async () => {
      async function* parts() {
        const body = Buffer.from(chatWith('"say: x"'));
        for (const byte of body) yield Buffer.of(byte);
      }
      const response = await server.fetch('/v1/chat/completions', { method: 'POST', body: parts(), duplex: 'half' });
      assert.equal(response.status, 200, await response.text());
    });

    it('has harmed no other client', async () => {
      assert.equal((await answer(server, 'say: unharmed', { max_tokens: 12 })).text, before.text);
    });
  });
}
