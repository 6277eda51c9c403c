// --record and `chasqui replay`: what was scheduled is planned again from the file alone, whatever became of the server
// that wrote it; the file says nothing of what clients ask.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, user } from './client.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-record-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const file = (name) => path.join(folder, name);
const replay = (name, ...flags) => run(['replay', file(name), ...flags]);
const secret = 'the elephants sing at midnight ';

// Twenty requests of several kinds at once: long and short, plain and with a schema, that go on from one another, some
// of which are cancelled.
async function mixedLoad(server) {
  const system = { role: 'system', content: `You answer in few words. ${secret.repeat(12)}` };
  const one = async (i) => {
    const messages = [system, ...user(`Question ${i}: ${secret.repeat(i % 4)}`)];
    const body = { messages, max_tokens: 8 + 6 * (i % 5), temperature: i % 2, seed: i, ignore_eos: true };
    if (i % 7 === 3) body.response_format = { type: 'json_object' };
    if (i % 5 === 4) {
      const controller = new AbortController();
      const response = await post(server, '/v1/chat/completions', { ...body, max_tokens: 500, stream: true }, { signal: controller.signal });
      await response.body.getReader().read();
      controller.abort();
      return;
    }
    const { choices } = await ask(server, '/v1/chat/completions', body);
    if (i % 3 === 0) {
      messages.push(choices[0].message, ...user('And then?'));
      await ask(server, '/v1/chat/completions', { messages, max_tokens: 8 });
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, i) => one(i)));
}

describe('--record', () => {
  it('is replayed with the same plans, and says nothing of texts', async () => {
    const server = await start(test, [...demo, '-np', '4', '--record', file('mixed')]);
    await mixedLoad(server);
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_recording'), 1);
    await server.stop();
    const { code, stdout, stderr } = await replay('mixed');
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /worker 0: \d+ requests, \d+ steps in [\d.]+ s: all \d+ plans are the same/);
    assert.ok(Number(/(\d+) requests/.exec(stdout)[1]) >= 20, stdout);
    const bytes = readFileSync(file('mixed'));
    for (const word of ['elephants', 'midnight', 'Question', 'few words']) assert.ok(!bytes.includes(word), word);
    const traced = await replay('mixed', '--trace', file('load.jsonl'));
    assert.equal(traced.code, 0, traced.stderr);
    const load = readFileSync(file('load.jsonl'), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
    assert.equal(load.length, Number(/(\d+) requests/.exec(stdout)[1]));
    assert.equal(traced.stdout, `${load.length} requests\n`);
    for (const [i, one] of load.entries()) {
      assert.deepEqual(Object.keys(one), ['at_ms', 'prompt_words', 'max_tokens', 'class']);
      assert.ok(one.at_ms >= (i > 0 ? load[i - 1].at_ms : 0) && one.prompt_words > 20 && one.max_tokens >= 1, JSON.stringify(one));
    }
    const both = await replay('mixed', '--trace', file('load.jsonl'), '--steps', file('steps.json'));
    assert.notEqual(both.code, 0, 'one or the other');
    const about = await replay('mixed', '--about');
    assert.match(about.stdout, /recorded by chasqui \d/);
    assert.match(about.stdout, /slots: 4/);
  });

  it('has a stream for each worker, one of which can be chosen; --steps is what the page opens', async () => {
    const server = await start(test, [...demo, '-np', '4', '--workers', '2'], { CHASQUI_RECORD: file('workers') });
    await mixedLoad(server);
    await server.stop();
    const both = await replay('workers', '--steps', file('steps.json'));
    assert.equal(both.code, 0, both.stdout + both.stderr);
    assert.match(both.stdout, /worker 0: .*\n.*worker 1: /);
    const { promise, steps } = JSON.parse(readFileSync(file('steps.json'), 'utf8'));
    assert.equal(promise.workers, 2);
    assert.equal(promise.slots, 4);
    assert.ok(promise.targets.standard.next_token_ms > 0);
    const counted = [...both.stdout.matchAll(/(\d+) steps/g)].reduce((sum, [, n]) => sum + Number(n), 0);
    assert.equal(steps.length, counted);
    assert.ok(steps.some(({ kind, worker }) => kind === 'prefill' && worker === 1));
    const one = await replay('workers', '--worker', '1');
    assert.match(one.stdout, /worker 1: /);
    assert.doesNotMatch(one.stdout, /worker 0: /);
    assert.equal((await replay('workers', '--worker', '7')).code, 2);
  });

  it('is whole up to a kill', async () => {
    const server = await start(test, [...demo, '-np', '2', '--record', file('killed')]);
    const messages = user(secret);
    const open = Array.from({ length: 4 }, (_, i) =>
      post(server, '/v1/chat/completions', { messages, max_tokens: 2000, stream: true, seed: i, ignore_eos: true }));
    const readers = (await Promise.all(open)).map(({ body }) => body.getReader());
    for (let i = 0; i < 20; ++i) await readers[0].read();
    server.signal('SIGKILL');
    await server.ended;
    await Promise.allSettled(readers.map((reader) => reader.cancel()));
    const { code, stdout, stderr } = await replay('killed');
    assert.equal(code, 0, stdout + stderr);
    assert.ok(Number(/(\d+) steps/.exec(stdout)[1]) > 0, stdout);
  });

  it('that was cut is replayed up to there; one that was changed, or is none, is refused', async () => {
    const server = await start(test, [...sim, '-np', '4', '--record', file('cut')]);
    await Promise.all(Array.from({ length: 8 }, (_, i) => ask(server, '/v1/chat/completions', { messages: user(`x ${i}`), max_tokens: 20 })));
    await server.stop();
    const bytes = readFileSync(file('cut'));
    truncateSync(file('cut'), bytes.length - 5);
    const cut = await replay('cut');
    assert.equal(cut.code, 0, cut.stdout + cut.stderr);
    assert.match(cut.stderr, /not whole, and were left out/);
    bytes[bytes.length - 5] ^= 1;
    writeFileSync(file('changed'), bytes);
    const changed = await replay('changed');
    assert.equal(changed.code, 2);
    assert.match(changed.stderr, /damaged at byte \d+/);
    writeFileSync(file('other'), 'GGUF');
    const other = await replay('other');
    assert.equal(other.code, 2);
    assert.match(other.stderr, /is no recording/);
    assert.equal((await replay('nowhere')).code, 2);
  });

  it('keeps the recording before it', async () => {
    for (let i = 0; i < 2; ++i) {
      const server = await start(test, [...sim, '--record', file('twice')]);
      await ask(server, '/v1/chat/completions', { messages: user('x'), max_tokens: 3 });
      await server.stop();
    }
    assert.ok(existsSync(file('twice.old')));
    assert.equal((await replay('twice')).code, 0);
    assert.equal((await replay('twice.old')).code, 0);
  });

  it('with a path that cannot be is refused before a model is read', async () => {
    writeFileSync(file('text'), 'some text');
    const model = ['--model', file('no-model.gguf')];
    for (const [where, why] of [[file('no/such'), /there is no folder/], [folder, /no file/], [file('text'), /is no recording/]]) {
      const { code, stderr } = await run(['serve', '--port', '0', ...model, '--record', where]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--record/);
      assert.match(stderr, why);
    }
    assert.equal(readFileSync(file('text'), 'utf8'), 'some text');
  });
});
