// An idle server unloads its model; clients notice only the time of the first answer after that.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, post, refused, user } from './client.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const question = 'What is a slot?';
const model = path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf');
// Long enough for the requests of one test, which follow each other at once; short enough to wait for.
const sleepy = ['--sleep-idle-seconds', '1'];
const asleep = (server) => server.until((metrics) => metrics.value('chasqui_sleeping') === 1, 'it sleeps');
const isSleeping = async (server) => (await (await server.fetch('/props')).json()).is_sleeping;

function residentKilobytes(server) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);
}

describe('a server that sleeps', async () => {
  const server = await start(test, [...demo, ...sleepy, '-np', '8', '-c', '65536']);

  it('gives its memory back and says so, and is healthy', async () => {
    await answer(server, question, { max_tokens: 16 });
    const before = residentKilobytes(server);
    assert.equal(await isSleeping(server), false);
    await asleep(server);
    assert.equal(await isSleeping(server), true);
    const after = residentKilobytes(server);
    assert.ok(after < before - 3000, `${before} kB, ${after} kB: at least the weights, 3.7 MB, are gone`);
    assert.equal((await server.fetch('/health')).status, 200);
    assert.equal((await server.fetch('/ready')).status, 200);
  });

  it('is not woken by those who only look', async () => {
    await asleep(server);
    const before = (await server.metrics()).value('chasqui_wakes_total');
    for (const path of ['/health', '/metrics', '/props', '/slots', '/v1/models', '/lora-adapters', '/v1/sessions']) {
      assert.equal((await server.fetch(path)).status, 200, path);
    }
    const { tokens } = await ask(server, '/tokenize', { content: question });
    assert.ok(tokens.length > 2, 'the vocabulary stays');
    await refused(await post(server, '/v1/completions', { prompt: question, max_tokens: 'x' }), 400);
    assert.equal((await server.metrics()).value('chasqui_wakes_total'), before);
    assert.equal(await isSleeping(server), true);
  });

  it('embeds without waking, and keeps no memory for that', async () => {
    await asleep(server);
    const embed = () => ask(server, '/v1/embeddings', { input: question });
    const { data } = await embed();
    const before = residentKilobytes(server);
    for (let i = 0; i < 30; ++i) assert.deepEqual((await embed()).data, data);
    assert.equal(await isSleeping(server), true);
    assert.ok(residentKilobytes(server) < before + 30_000, 'the weights, 3.7 MB, are freed each time');
  });

  it('answers as before, with what was cached', async () => {
    const first = await answer(server, question, { max_tokens: 24, cache_prompt: false });
    const { id } = await ask(server, '/v1/sessions', { messages: user(question) });
    await asleep(server);
    const again = await answer(server, question, { max_tokens: 24 });
    assert.equal(again.text, first.text);
    assert.ok(again.usage.prompt_tokens_details.cached_tokens > 0, 'snapshots outlive the sleep');
    await asleep(server);
    const said = await ask(server, `/v1/sessions/${id}/generate`, { temperature: 0, max_tokens: 24 });
    assert.equal(said.choices[0].message.content, first.text, 'a session keeps its tokens');
  });

  it('serves all who come while it wakes', async () => {
    const alone = await answer(server, question, { max_tokens: 8, cache_prompt: false });
    await asleep(server);
    const before = (await server.metrics()).value('chasqui_wakes_total');
    const answers = await Promise.all(Array.from({ length: 50 }, () => answer(server, question, { max_tokens: 8 })));
    for (const each of answers) assert.equal(each.text, alone.text);
    assert.equal((await server.metrics()).value('chasqui_wakes_total'), before + 1);
  });
});

describe('sleeping', () => {
  it('works for the simulated model, again and again', async (t) => {
    const server = await start(t, [...sim, '--sleep-idle-seconds', '0.2']);
    const first = await answer(server, 'Say something.', { max_tokens: 12 });
    const woken = (await server.metrics()).value('chasqui_wakes_total'); // it may have slept before that, too
    for (let i = 1; i <= 3; ++i) {
      await asleep(server);
      assert.equal((await answer(server, 'Say something.', { max_tokens: 12 })).text, first.text);
      assert.equal((await server.metrics()).value('chasqui_wakes_total'), woken + i);
    }
  });

  it('does not keep a server from stopping', async (t) => {
    const server = await start(t, [...sim, '--sleep-idle-seconds', '0.2']);
    await asleep(server);
    await server.stop();
  });

  it('has its limits', async () => {
    for (const value of ['0', '-2', 'soon', '0.01']) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--sleep-idle-seconds', value]);
      assert.equal(code, 2, value);
      assert.match(stderr, /sleep-idle-seconds/);
    }
  });

  it('refuses other weights under the old name, and takes a copy of the old ones', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-sleep-'));
    t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
    const file = path.join(folder, 'model.gguf');
    copyFileSync(model, file);
    const one = await start(t, ['-t', '1', '-m', file, ...sleepy, '-np', '2', '-c', '4096']);
    const before = await answer(one, question, { max_tokens: 8 });
    await asleep(one);
    const other = Buffer.from(readFileSync(model));
    other.fill(other.at(-1) ^ 1, other.length - 64);
    writeFileSync(`${file}.new`, other);
    renameSync(`${file}.new`, file);
    await refused(await post(one, '/v1/chat/completions', { messages: user(question), max_tokens: 8 }), 500);
    copyFileSync(model, `${file}.new`);
    renameSync(`${file}.new`, file);
    assert.equal((await answer(one, question, { max_tokens: 8 })).text, before.text);
    await one.stop();
    assert.match(one.stderr, /another one than this server has loaded/);
  });
});
