// Schemas as libraries write them (zod, pydantic, OpenAPI generators): each is taken in `response_format` without
// `strict`, in OpenAI's two routes, and its answer keeps to what the server does not name in X-Chasqui-Warning as dropped.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

import { post, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

const object = (properties, more = {}) => ({ type: 'object', properties, required: Object.keys(properties), additionalProperties: false, ...more });

// [what, schema, which keywords may be dropped]
const schemas = [
  ['minimum of a number', object({ price: { type: 'number', minimum: 0 } })],
  ['minimum and maximum of an integer', object({ age: { type: 'integer', minimum: 0, maximum: 150 } })],
  ['exclusive bounds', object({ share: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 } })],
  ['a record (propertyNames)', { type: 'object', propertyNames: { type: 'string', pattern: '^[a-z]{1,4}$' }, additionalProperties: { type: 'integer' }, maxProperties: 3 }],
  ['format uri', object({ link: { type: 'string', format: 'uri' } }), ['format']],
  ['multipleOf', object({ size: { type: 'integer', multipleOf: 5 } })],
  ['uniqueItems', object({ tags: { type: 'array', items: { enum: ['a', 'b', 'c'] }, uniqueItems: true, maxItems: 3 } }), ['uniqueItems']],
  ['not', object({ kind: { type: 'string', maxLength: 6, not: { const: 'none' } } }), ['not']],
  ['nullable of OpenAPI', object({ name: { type: 'string', nullable: true, maxLength: 8 } }), ['nullable']],
  ['a union with a discriminator', { discriminator: { propertyName: 'kind' }, oneOf: [object({ kind: { const: 'cat' }, lives: { type: 'integer', minimum: 0, maximum: 9 } }),
    object({ kind: { const: 'dog' }, good: { type: 'boolean' } })] }, ['discriminator']],
  ['patternProperties', { type: 'object', patternProperties: { '^x_[a-z]{1,3}$': { type: 'integer' } }, additionalProperties: false, maxProperties: 2 }],
  ['minProperties', { type: 'object', additionalProperties: { type: 'boolean' }, minProperties: 1, maxProperties: 2 }],
  ['strict inside a schema', { strict: true, ...object({ ok: { type: 'boolean' } }) }, ['strict']],
  ['type beside anyOf', object({ value: { type: ['string', 'integer'], anyOf: [{ type: 'integer', minimum: 1, maximum: 5 }, { const: 'all' }] } })],
  ['a pattern without anchors', object({ code: { type: 'string', pattern: '[A-Z]{2}[0-9]', maxLength: 12 } }), ['maxLength', 'pattern']],
  ["pydantic's decimal with a look-ahead", object({ amount: { anyOf: [{ type: 'number' }, { type: 'string', maxLength: 8, pattern: '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$' }] } }), ['pattern', 'maxLength']],
  ['$defs and $ref, default and title', { $defs: { Place: object({ city: { type: 'string', maxLength: 8, title: 'City', default: 'Lima' } }) }, title: 'Trip',
    ...object({ from: { $ref: '#/$defs/Place' }, to: { anyOf: [{ $ref: '#/$defs/Place' }, { type: 'null' }], default: null } }) }],
];

function without(value, keywords) {
  if (Array.isArray(value)) return value.map((one) => without(one, keywords));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keywords.includes(key)).map(([key, inner]) => [key, without(inner, keywords)]));
}

function validator(schema, dropped) {
  const ajv = new Ajv2020({ strict: false });
  addFormats(ajv);
  return ajv.compile(without(schema, dropped));
}

// The demo model would go on for long; it is led to where texts, lists and objects end.
const ends = { '"': 10, '}': 5, ']': 5, ',': -2, '{': -2, '[': -2, null: 4 };

describe('an ordinary schema', async () => {
  const server = await start(test, [...demo, '-np', '4']);
  assert.equal(schemas.length, 17);

  describe('is taken, and kept but for what is named:', { concurrency: 4 }, () => {
    for (const [what, schema, droppable = []] of schemas) {
      it(what, async () => {
        for (let seed = 0; seed < 3; ++seed) {
          const random = { temperature: 1.5, top_k: 0, min_p: 0, seed, logit_bias: ends };
          const format = { name: 'x', schema };
          for (const [route, body, textOf] of [
            ['/v1/chat/completions', { messages: user('Write something.'), max_tokens: 400, response_format: { type: 'json_schema', json_schema: format } },
              ({ choices: [{ message, finish_reason: finish }] }) => [message.content, finish === 'stop']],
            ['/v1/responses', { input: 'Write something.', max_output_tokens: 400, text: { format: { type: 'json_schema', ...format } } },
              ({ output, status }) => [output[0].content[0].text, status === 'completed']],
          ]) {
            const response = await post(server, route, { ...body, ...random });
            const answer = await response.json();
            assert.equal(response.status, 200, JSON.stringify(answer));
            const warning = response.headers.get('x-chasqui-warning') ?? '';
            const dropped = droppable.filter((keyword) => warning.includes(keyword));
            if (droppable.length === 0) assert.equal(warning, '', 'nothing is dropped');
            const [text, whole] = textOf(answer);
            if (!whole) continue; // the model went on and on
            const validate = validator(schema, [...dropped, ...droppable.filter((keyword) => ['nullable', 'discriminator', 'strict'].includes(keyword))]);
            const value = JSON.parse(text);
            if (what.startsWith('nullable') && value.name === null) continue; // ajv knows no such keyword
            assert.ok(validate(value), `${text}: ${JSON.stringify(validate.errors)} (${warning})`);
          }
        }
      });
    }
  });
});
