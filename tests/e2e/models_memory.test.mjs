// --models-memory: which models are loaded is decided by what they need, as predicted from their files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, stream } from './client.mjs';
import { folder } from './frames.mjs';
import { models } from './gguf.mjs';
import { demo, run, start } from './server.mjs';

const { describe, it } = test;
const file = path.join(models, 'chasqui-demo.gguf');
const small = [...demo, '-np', '2', '-c', '1024', '--models-max', '0', '--no-models-trial'];
const chat = (server, model, more = {}) =>
  ask(server, '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'What is Chasqui?' }], max_tokens: 4, ...more });

async function three(context) {
  const made = fs.realpathSync(await folder(context));
  for (const name of ['a', 'b', 'c']) fs.symlinkSync(file, path.join(made, `${name}.gguf`));
  return made;
}

const listed = async (server) => (await (await server.fetch('/v1/models')).json()).data;
const states = async (server) => Object.fromEntries((await listed(server)).map(({ id, status }) => [id, status.value]));
const becomes = (server, wanted) => server.until(async () => {
  const now = await states(server);
  return Object.entries(wanted).every(([id, value]) => now[id] === value);
}, JSON.stringify(wanted));

// With room for so many of three equal models; what each of them needs.
async function startWithRoomFor(context, count) {
  const dir = await three(context);
  const first = await start(context, [...small, '--models-dir', dir]);
  const needs = (await listed(first)).map(({ memory_bytes: bytes }) => bytes);
  assert.ok(needs[0] > fs.statSync(file).size, 'more than the file');
  assert.deepEqual(needs, [needs[0], needs[0], needs[0]]);
  const limit = Math.round(needs[0] * count);
  return [await start(context, [...small, '--models-memory', String(limit), '--models-dir', dir]), needs[0], limit];
}

describe('--models-memory', () => {
  it('lets the model go that was not used for the longest time', async (t) => {
    const [server, needs, limit] = await startWithRoomFor(t, 2.5);
    for (const model of ['a', 'b', 'a', 'c']) await chat(server, model);
    const metrics = await becomes(server, { a: 'loaded', b: 'unloaded', c: 'loaded' });
    assert.equal(metrics.sum('chasqui_model_unloads_total'), 1);
    assert.equal(metrics.sum('chasqui_models_memory_limit_bytes'), limit);
    await server.until((now) => now.sum('chasqui_models_memory_bytes') === 2 * needs);
  });

  it('never lets one go that has work, and loses no request', async (t) => {
    const [server] = await startWithRoomFor(t, 1.5);
    const busy = await stream(server, '/v1/completions', { model: 'a', prompt: 'x', max_tokens: 300, ignore_eos: true });
    await busy.nextText();
    const waiting = ['b', 'c'].map((model) => chat(server, model));
    assert.equal((await busy.collect()).finish, 'length');
    assert.deepEqual((await Promise.all(waiting)).map(({ model }) => model), ['b', 'c']);
    const names = ['a', 'b', 'c'];
    const many = await Promise.all(Array.from({ length: 12 }, (_, i) => chat(server, names[i % 3])));
    assert.deepEqual(many.map(({ model }) => model), many.map((_, i) => names[i % 3]));
  });

  it('refuses at once what can never fit, with the figures', async (t) => {
    const preset = path.join(await folder(t), 'models.ini');
    fs.writeFileSync(preset, `[fits]\nmodel = ${file}\nctx-size = 1024\n[big]\nmodel = ${file}\nctx-size = 1000000\nparallel = 1\n`);
    const server = await start(t, [...demo, '-np', '1', '--no-models-trial', '--models-memory', '0.1G', '--models-preset', preset]);
    const figures = /the model big needs [\d.]+ [MG]iB of memory, and --models-memory allows 102 MiB: give it more/;
    for (const [route, body] of [['/v1/chat/completions', { model: 'big', messages: [] }], ['/models/load', { model: 'big' }]]) {
      const response = await post(server, route, body);
      assert.equal(response.status, 501, route);
      assert.match((await response.json()).error.message, figures);
    }
    assert.equal((await chat(server, 'fits')).model, 'fits');
    assert.equal((await server.metrics()).sum('chasqui_model_load_failures_total'), 0);
  });

  it('takes a number of bytes', async () => {
    const { code, stderr } = await run(['serve', '--models-memory', '5 apples']);
    assert.equal(code, 2);
    assert.match(stderr, /--models-memory: must be a number of bytes, which may end in K, M, G or T/);
  });
});
