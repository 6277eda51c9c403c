// Answers that have to look like something: JSON Schema, GBNF, OpenAI's response_format. The demo model has no idea what
// is wanted of it, so what comes out is the grammar's doing; ajv judges.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';

import { answer, ask, post, refused, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

const ajv = new Ajv2020({ strict: false, validateFormats: false });

// What a random model may write of these is short enough to come to an end.
const schemas = {
  object: {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 8 }, age: { type: 'integer', minimum: 0, maximum: 150 } },
    required: ['name', 'age'],
    additionalProperties: false,
  },
  optional: {
    type: 'object',
    properties: { a: { type: 'boolean' }, b: { type: 'null' }, c: { enum: ['x', 'y'] } },
    required: ['b'],
  },
  array: { type: 'array', items: { type: 'integer', minimum: -5, maximum: 5 }, minItems: 2, maxItems: 4 },
  tuple: { type: 'array', prefixItems: [{ type: 'boolean' }, { const: 'k' }], items: false },
  pattern: { type: 'string', pattern: '^[A-Z]{2,3}-\\d{1,4}(\\.[a-z]{1,3}){0,2}$' },
  dot: { type: 'string', pattern: '^.{1,6}$' },
  negated: { type: 'string', pattern: '^[^a-z]{1,6}$' },
  date: { type: 'string', format: 'date' },
  uuid: { type: 'string', format: 'uuid' },
  email: { type: 'string', format: 'email' },
  ipv4: { type: 'string', format: 'ipv4' },
  union: { anyOf: [{ type: 'integer', minimum: 1, maximum: 3 }, { type: 'boolean' }] },
  one: { oneOf: [{ type: 'null' }, { enum: ['only'] }] },
  types: { type: ['boolean', 'null'] },
  exclusive: { type: 'integer', exclusiveMinimum: 6, exclusiveMaximum: 8 },
  reference: {
    type: 'object',
    properties: { at: { $ref: '#/$defs/Point' } },
    required: ['at'],
    $defs: { Point: { type: 'object', properties: { x: { enum: [1, 2] } }, required: ['x'], additionalProperties: false } },
  },
  merged: {
    allOf: [
      { type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'] },
      { type: 'object', properties: { b: { const: null } }, required: ['b'] },
    ],
  },
  values: { enum: [1, 'two', null, [3], { four: 4 }] },
  quoted: { const: 'say "it" \\ \n' },
  length: { type: 'string', minLength: 3, maxLength: 5 },
};

describe('a JSON schema', async () => {
  const server = await start(test, demo);
  for (const [name, schema] of Object.entries(schemas)) {
    it(`is kept, whatever the model likes: ${name}`, async () => {
      const validate = ajv.compile(schema);
      for (const seed of [1, 2, 3]) {
        const format = { type: 'json_schema', json_schema: { name, strict: true, schema } };
        const fields = { response_format: format, temperature: 1.5, top_k: 0, min_p: 0, seed, max_tokens: 400 };
        const { text, finish } = await answer(server, 'Write something.', fields);
        assert.equal(finish, 'stop', text);
        const value = JSON.parse(text);
        assert.ok(validate(value), `${text}: ${ajv.errorsText(validate.errors)}`);
      }
    });
  }
  it('may be said as json_schema, to any route', async () => {
    const fields = { prompt: 'x', json_schema: schemas.object, max_tokens: 200, seed: 1 };
    for (const [path, text] of [
      ['/v1/completions', (body) => body.choices[0].text],
      ['/completion', (body) => body.content],
      ['/generate', null],
    ]) {
      if (text === null) continue;
      assert.ok(ajv.validate(schemas.object, JSON.parse(text(await ask(server, path, fields)))));
    }
  });
  it('comes the same way in a stream', async () => {
    const stream = await streamChat(server, 'x', { json_schema: schemas.object, temperature: 1, seed: 5, max_tokens: 200 });
    await stream.collect();
    assert.ok(ajv.validate(schemas.object, JSON.parse(stream.text)), stream.text);
  });
  it('of any object is what json_object means', async () => {
    const format = { response_format: { type: 'json_object' }, seed: 3, max_tokens: 300 };
    const { text, finish } = await answer(server, 'x', format);
    if (finish === 'stop') assert.equal(typeof JSON.parse(text), 'object');
    assert.match(text, /^\{/);
  });
  const unsupported = { type: 'object', properties: { a: { type: 'array', uniqueItems: true } } };
  it('that says nothing means any object, as in llama-server', async () => {
    for (const fields of [{ json_schema: {} }, { response_format: { type: 'json_schema', json_schema: { name: 'any', schema: {} } } }]) {
      const { text } = await answer(server, 'Write.', { temperature: 1.5, seed: 2, max_tokens: 300, logit_bias: { '}': 5 }, ...fields });
      assert.match(text, /^\{/);
    }
  });

  it('may stand beside the type of response_format, as llama-server\'s README has it', async () => {
    const format = { type: 'json_schema', schema: schemas.object };
    const { text } = await answer(server, 'Write.', { temperature: 1.5, seed: 2, max_tokens: 300, response_format: format });
    assert.ok(ajv.compile(schemas.object)(JSON.parse(text)), text);
    const wrong = { response_format: { type: 'json_schema', schema: { type: 'nosuch' } } };
    const error = await refused(await post(server, '/v1/chat/completions', { messages: user('x'), ...wrong }), 400);
    assert.match(error.param, /^response_format\.schema/);
  });

  it('that says strict and uses what is not supported is refused by the keyword', async () => {
    const format = { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: unsupported } };
    const body = { messages: user('x'), response_format: format };
    const error = await refused(await post(server, '/v1/chat/completions', body), 400);
    assert.equal(error.param, 'response_format.json_schema.schema.properties.a.uniqueItems');
    assert.match(error.message, /uniqueItems at #\/properties\/a/);
  });
  it('that does not say strict is kept but for what is not supported, and the answer names that', async () => {
    const format = { type: 'json_schema', json_schema: { name: 'a', schema: unsupported } };
    const bodies = [
      ['/v1/chat/completions', { messages: user('x'), response_format: format, max_tokens: 8 }],
      ['/v1/chat/completions', { messages: user('x'), response_format: format, max_tokens: 8, stream: true }],
      ['/completion', { prompt: 'x', json_schema: unsupported, n_predict: 8 }],
      ['/api/generate', { prompt: 'x', format: unsupported, stream: false, options: { num_predict: 8 } }],
      ['/v1/messages', { messages: user('x'), max_tokens: 8, output_config: { format: { type: 'json_schema', schema: unsupported } } }],
      ['/v1/responses', { input: 'x', max_output_tokens: 16, text: { format: { type: 'json_schema', name: 'a', schema: unsupported } } }],
    ];
    for (const [path, body] of bodies) {
      const response = await post(server, path, body);
      assert.equal(response.status, 200, path);
      assert.match(response.headers.get('x-chasqui-warning'), /#\/properties\/a uniqueItems$/, path);
      await response.text();
    }
    const plain = await post(server, '/completion', { prompt: 'x', json_schema: schemas.object, n_predict: 8 });
    assert.equal(plain.headers.get('x-chasqui-warning'), null);
  });
  it('that was sent before is not written as a grammar again', async () => {
    const count = async () => {
      const metrics = await server.metrics();
      return ['kept', 'written'].map((from) => metrics.value('chasqui_schema_grammars_total', { from }));
    };
    const schema = { type: 'object', properties: { once: { type: 'string', pattern: '^[a-f]{1,9}$' } }, required: ['once'] };
    const fields = { json_schema: schema, temperature: 0, max_tokens: 60 };
    const [kept, written] = await count();
    const { text } = await answer(server, 'x', fields);
    for (let i = 0; i < 9; ++i) assert.equal((await answer(server, 'x', fields)).text, text);
    const [keptNow, writtenNow] = await count();
    assert.equal(keptNow - kept + writtenNow - written, 10);
    assert.ok(writtenNow - written >= 1 && writtenNow - written <= 2, 'once by each thread of the pool');
  });
});

describe('a grammar', async () => {
  const server = await start(test, demo);
  it('decides what is said', async () => {
    const { text, finish } = await answer(server, 'x', { grammar: 'root ::= "It is " ("hot" | "cold") "."' });
    assert.match(text, /^It is (hot|cold)\.$/);
    assert.equal(finish, 'stop');
  });
  it('goes together with other samplers', async () => {
    for (const fields of [{ mirostat: 2 }, { typical_p: 0.9 }, { samplers: 'kt' }, { samplers: ['infill'] }, { dry_multiplier: 1 }]) {
      const { text } = await answer(server, 'x', { grammar: 'root ::= [0-9]{5}', temperature: 1, ...fields });
      assert.match(text, /^[0-9]{5}$/, JSON.stringify(fields));
    }
  });
  it('reproduces with a seed', async () => {
    const fields = { grammar: 'root ::= [a-z]{20}', temperature: 2, top_k: 0, min_p: 0, seed: 9 };
    assert.equal((await answer(server, 'x', fields)).text, (await answer(server, 'x', fields)).text);
  });
  it('is compiled once: later answers find its masks', async () => {
    const masks = async () => {
      const metrics = await server.metrics();
      return ['kept', 'computed'].map((from) => metrics.value('chasqui_grammar_masks_total', { from }));
    };
    const wish = { prompt: 'Numbers:', grammar: 'root ::= ("x" [0-9]{9}){3} "."', temperature: 0, max_tokens: 40 };
    const before = await masks();
    const { content } = await ask(server, '/completion', wish);
    const first = await masks();
    assert.ok(first[1] > before[1], 'the first answer computes masks');
    assert.equal((await ask(server, '/completion', wish)).content, content);
    const second = await masks();
    assert.equal(second[1], first[1], 'the second one finds them all');
    assert.ok(second[0] > first[0]);
  });
  it('that is wrong, too deep or too large is a 400', async () => {
    for (const grammar of ['root := "a"', 'x ::= "a"', 'root ::= ' + '('.repeat(200), 'root ::= "' + 'a'.repeat(70_000) + '"']) {
      const error = await refused(await post(server, '/v1/chat/completions', { messages: user('x'), grammar }), 400);
      assert.equal(error.param, 'grammar');
    }
  });
  it('does not hold up streams beside it', async () => {
    const beside = streamChat(server, 'Tell me a story.', { max_tokens: 60, ignore_eos: true });
    const texts = await Promise.all(
      [1, 2, 3].map((seed) => answer(server, 'x', { grammar: 'root ::= [a-z ]{40}', temperature: 1, seed })),
    );
    for (const { text } of texts) assert.match(text, /^[a-z ]{40}$/);
    const stream = await beside;
    await stream.collect();
    assert.equal(stream.finish, 'length');
  });
});

describe('the simulated engine', async () => {
  const server = await start(test, sim);
  it('says that it cannot keep to a grammar', async () => {
    const body = { messages: user('x'), grammar: 'root ::= "a"' };
    assert.equal((await refused(await post(server, '/v1/chat/completions', body), 400)).param, 'grammar');
  });
});
