// Bodies that are valid JSON, within the limit of bytes, and were the end of a server: they recursed for every byte of a
// name, doubled the work with every bracket, or took fifty times their bytes of memory. After each of them the server is
// there, is well, and says what it said before.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import * as test from 'node:test';

import { answer, post, user } from './client.mjs';
import { startWithSocket } from './frames.mjs';
import { MiB, base, cases, chat, many, object, schemas, stringOf, tool } from './hostile_inputs.mjs';
import { demo, hangAfter, start } from './server.mjs';

const { describe, it } = test;

const resident = (server, name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) * 1024;

describe('hostile bodies', async () => {
  const server = await startWithSocket(test, [...demo, '-np', '2']);
  const canary = await answer(server, 'Tell me a story', { max_tokens: 12 });

  async function isWell() {
    assert.equal(server.exit, undefined);
    assert.equal((await server.fetch('/health')).status, 200);
    assert.equal((await answer(server, 'Tell me a story', { max_tokens: 12 })).text, canary.text);
  }

  for (const [name, path, body, about] of cases) {
    it(`${name}: ${about ? 'refused by name' : 'answered'}`, async () => {
      const response = await post(server, path, body);
      const text = await response.text();
      assert.equal(response.status, about ? 400 : 200, text.slice(0, 500));
      if (about) assert.match(text, about);
      if (about) assert.ok(text.length < 2000, `${text.length} bytes of refusal`);
      await isWell();
    });
  }

  it('the same in frames', async (t) => {
    const client = await server.client(t);
    for (const [what, schema] of Object.entries(schemas)) {
      const request = client.generate({ ...base, tools: [tool(schema)] });
      await assert.rejects(async () => { for await (const event of request) void event; }, /tools\[0\]/, what);
    }
    await isWell();
  });

  it('what a client writes into a grammar is no line of the log', async () => {
    for (const bad of ['missing', '"\\q"', '<nowhere>']) {
      const response = await post(server, chat, { ...base, grammar: `root ::= "\n2026-01-01T00:00:00 ERROR forged by a client\n" ${bad}` });
      await response.text();
      assert.ok([200, 400].includes(response.status));
    }
    await isWell();
    assert.doesNotMatch(server.stderr, /^2026-01-01T00:00:00 ERROR forged/m);
    assert.doesNotMatch(server.stderr, /error parsing grammar/);
  });

  it('what a client writes into a pattern is no line of the log', async () => {
    const forged = 'x\n2026-01-01T00:00:00 ERROR forged by a client\n';
    const body = { ...base, tools: [tool(stringOf(forged))], tool_choice: 'required' };
    const response = await post(server, chat, body);
    await response.text();
    assert.ok([200, 400].includes(response.status));
    await isWell();
    assert.doesNotMatch(server.stderr, /^2026-01-01T00:00:00 ERROR forged/m);
    assert.doesNotMatch(server.stderr, /WARNING: JSON schema conversion/);
  });
});

// With a server of their own: the kernel remembers the most that a process ever had.
describe('large bodies', async () => {
  const server = await start(test, [...demo, '-np', '2']);
  const canary = await answer(server, 'Tell me a story', { max_tokens: 12 });

  async function isWell() {
    assert.equal(server.exit, undefined);
    assert.equal((await server.fetch('/health')).status, 200);
    assert.equal((await answer(server, 'Tell me a story', { max_tokens: 12 })).text, canary.text);
  }

  const idle = resident(server, 'VmRSS');

  // Each turn waits for an answer, never for a clock.
  async function givesBack(before) {
    const end = Date.now() + hangAfter;
    while (resident(server, 'VmRSS') > before + 48 * MiB) {
      assert.ok(Date.now() < end, `${resident(server, 'VmRSS') / MiB} MiB stay`);
      assert.equal((await server.fetch('/health')).status, 200);
    }
  }

  for (const [name, unit, end] of [['arrays', '[],', '[]'], ['numbers', '1,', '1'], ['objects', '{"":{}},', '{}']]) {
    it(`32 MiB of ${name} are refused, and leave no memory behind`, async () => {
      await isWell();
      const before = resident(server, 'VmRSS');
      const text = `{"messages":[{"role":"user","content":"x"}],"a":[${unit.repeat(Math.floor((31 * MiB) / unit.length))}${end}]}`;
      const response = await post(server, chat, text);
      assert.equal(response.status, 400);
      assert.match(await response.text(), /too many values/);
      assert.ok(resident(server, 'VmHWM') < before + 8 * 32 * MiB, `${resident(server, 'VmHWM') / MiB} MiB at most`);
      await givesBack(before);
    });
  }

  const path = (levels, inner) => many(levels, (i) => `${i}`.padEnd(250, 'n')).reduce((made, name) => object({ [name]: made }), inner);
  const leaves = (count, type = 'string') => object(Object.fromEntries(many(count, (i) => [`${i}`.padEnd(220, 'p'), { type }])));
  const items = (count) => many(count, () => ({ role: 'user', content: 'x'.repeat(7000) }));
  for (const [name, route, body, about] of [
    ['tools with long paths', chat, { ...base, tools: many(9, (i) => tool(path(24, leaves(200)), `t${i}`)) }, /paths to all of their parts/],
    ['a schema with long paths', chat, { ...base, json_schema: path(24, leaves(199, 'text')) }, /type must be object, array/],
    ['4,096 items', '/v1/responses', { max_output_tokens: 1, input: items(4096) }, /exceeds the available context/],
    ['4,096 items that are not stored', '/v1/responses', { max_output_tokens: 1, store: false, input: items(4096) }, /exceeds the available context/],
    ['one long text', '/v1/responses', { max_output_tokens: 1, input: 'x'.repeat(28 * MiB) }, /exceeds the available context/],
    ['4,096 messages', chat, { ...base, messages: items(4096) }, /exceeds the available context/],
    ['one long message', chat, { ...base, messages: user('x'.repeat(28 * MiB)) }, /exceeds the available context/],
  ]) {
    it(`${name} take at most eight times their bytes of memory`, async () => {
      const text = JSON.stringify(body);
      await isWell();
      await givesBack(idle);
      writeFileSync(`/proc/${server.pid}/clear_refs`, '5'); // the most memory counts from here on
      const before = resident(server, 'VmRSS');
      const response = await post(server, route, text);
      assert.equal(response.status, 400);
      assert.match(await response.text(), about);
      const grown = resident(server, 'VmHWM') - before;
      assert.ok(grown < 8 * text.length + 16 * MiB, `${text.length} bytes of body, ${grown} of memory`);
    });
  }

  it('as many values as are allowed are read, and leave no memory behind', async () => {
    await isWell();
    const before = resident(server, 'VmRSS');
    const body = { ...base, a: many(200_000, (i) => ({ n: [i] })) };
    assert.equal((await post(server, chat, body)).status, 200);
    await givesBack(before);
    await isWell();
  });
});
