// Every keyword of JSON Schema's draft 2020-12, in the schemas of schemas.json: an answer either keeps to its schema,
// whatever the model likes, as ajv judges it, or the schema is refused by the keyword. To try another one, add it there.
// SCHEMAS_MODEL=FILE tries another model than the built-in one, as of random weights.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import * as test from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

import { answer, post, refused, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

const { kept, refused: notKept } = JSON.parse(readFileSync(new URL('schemas.json', import.meta.url)));
// The demo model would go on for long; it is led to where texts, lists and objects end.
const ends = (much) => ({ '"': much, '}': much - 5, ']': much - 5, ',': -2, '{': -2, '[': -2, null: 4 });
const wild = { temperature: 1.5, top_k: 0, min_p: 0, max_tokens: 500 };
const tries = [10, 12, 14].map((much, seed) => ({ ...wild, logit_bias: ends(much), seed }));
tries.push({ ...tries[1], schema_order: 'any' });
// At other temperatures an answer may be as long as it may be, but nothing else cuts it.
const others = [{ ...tries[2], temperature: 0 }, { ...tries[0], temperature: 20, logit_bias: ends(240) },
  { ...tries[0], temperature: 100, logit_bias: ends(1200) }];
const model = process.env.SCHEMAS_MODEL ? ['-m', process.env.SCHEMAS_MODEL, '-c', '4096'] : demo;

const formatOf = (schema) => ({ type: 'json_schema', json_schema: { name: 'x', strict: true, schema } });

function validatorOf(schema) {
  const ajv = new Ajv2020({ strict: false });
  addFormats(ajv);
  const validate = ajv.compile(schema);
  return (value) => (validate(value) ? null : ajv.errorsText(validate.errors));
}

function keysIn(value, out = new Set()) {
  if (value && typeof value === 'object') {
    for (const [key, inner] of Object.entries(value)) {
      if (!Array.isArray(value)) out.add(key);
      keysIn(inner, out);
    }
  }
  return out;
}

describe('a JSON schema', async () => {
  const server = await start(test, [...model, '-np', '4']);

  it('is tried with every keyword of the draft', () => {
    const require = createRequire(import.meta.url);
    const folder = path.join(path.dirname(require.resolve('ajv/package.json')), 'dist/refs/json-schema-2020-12/meta');
    const tried = keysIn([Object.values(kept), notKept]);
    const keywords = readdirSync(folder).flatMap((file) => Object.keys(JSON.parse(readFileSync(path.join(folder, file))).properties));
    assert.ok(keywords.length > 50, `${keywords}`);
    for (const keyword of keywords) assert.ok(tried.has(keyword), `no schema with ${keyword}`);
    assert.ok(Object.keys(kept).length + notKept.length >= 150);
  });

  let whole = 0; // answers
  describe('is kept, whatever the model likes:', { concurrency: 4 }, () => {
    for (const [name, schema] of Object.entries(kept)) {
      it(name, async () => {
        const mistakes = validatorOf(schema);
        for (const random of [...tries, ...others]) {
          const fields = { response_format: formatOf(schema), ...random };
          const { text, finish, usage } = await answer(server, 'Write something.', fields);
          if (others.includes(random) && usage.completion_tokens === wild.max_tokens) continue;
          assert.equal(finish, 'stop', text);
          ++whole;
          assert.equal(mistakes(JSON.parse(text)), null, text);
        }
      });
    }
  });

  it('has come to its end in nearly all answers', () => {
    assert.ok(whole >= 0.97 * (tries.length + others.length) * Object.keys(kept).length, `${whole} answers`);
  });

  it('has its properties in its own order, or in any', async () => {
    const schema = { properties: { left: { const: 1 }, right: { const: 2 } }, required: ['left', 'right'] };
    const seen = async (which, more) => {
      const orders = new Set();
      for (let seed = 0; seed < 40; ++seed) {
        const { text } = await answer(which, 'x', { ...wild, response_format: formatOf(schema), temperature: 100, seed, ...more });
        const said = JSON.parse(text);
        assert.deepEqual({ ...said }, { left: 1, right: 2 }, text);
        orders.add(Object.keys(said).join());
      }
      return [...orders].sort();
    };
    const told = await start(test, [...demo, '-np', '4', '--schema-order', 'any']);
    const [written, any] = [['left,right'], ['left,right', 'right,left']];
    assert.deepEqual(await seen(server), written);
    assert.deepEqual(await seen(server, { schema_order: 'any' }), any);
    assert.deepEqual(await seen(told), any);
    assert.deepEqual(await seen(told, { schema_order: 'written' }), written);
    const error = await refused(await post(server, '/v1/chat/completions', { messages: user('x'), schema_order: 'up' }), 400);
    assert.equal(error.param, 'schema_order');
    assert.match(error.message, /written or any/);
  });

  it('that cannot be kept is refused by the keyword', async () => {
    for (const [schema, keyword] of notKept) {
      const body = { messages: user('x'), response_format: formatOf(schema), max_tokens: 1 };
      const said = JSON.stringify(schema);
      const response = await post(server, '/v1/chat/completions', body);
      assert.equal(response.status, 400, said);
      const error = await refused(response, 400);
      assert.ok(error.param.startsWith('response_format.json_schema.schema'), `${said}: ${error.param}`);
      if (keyword) assert.equal(error.param.split('.').at(-1), keyword, `${said}: ${error.message}`);
      assert.ok(error.message.includes(keyword), `${said}: ${error.message}`);
    }
  });
});
