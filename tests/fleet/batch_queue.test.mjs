// --batch-queue: three nodes share the lines of batches through Redis and through NATS, and each line has one result,
// whichever of them die how often. CHASQUI_BATCH_LINES, _KILLS and _RESTARTS make the longest test longer.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { streamChat, user } from '../e2e/client.mjs';
import { hangAfter } from '../e2e/server.mjs';
import { Broker } from './brokers.mjs';
import { Node } from './nodes.mjs';
import { Redis } from './redis.mjs';

const { describe, it } = test;
const names = ['a', 'b', 'c'];
const ended = ['failed', 'completed', 'expired', 'cancelled'];
const number = (name, standard) => Number(process.env[name] ?? standard);

const says = (text) => ({ messages: user(`say: ${text}`), max_tokens: 32 });
const slow = { messages: user('go on'), max_tokens: 400, ignore_eos: true };
const lines = (count, body) => Array.from({ length: count }, (_, i) => ({
  custom_id: `line ${i}`, method: 'POST', url: '/v1/chat/completions', body: body(i) }));

function temporaryFolder(context) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-fleet-'));
  context.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}

const startNode = (context, name, broker, flags = []) =>
  Node.start(context, name, ['--batch-dir', temporaryFolder(context), '--batch-queue', broker.url, ...flags]);

async function startFleet(context, kind, flags) {
  const broker = await Broker.create(kind);
  await broker.begin();
  const nodes = await Promise.all(names.map((name) => startNode(context, name, broker, flags)));
  broker.endsWith(context);
  return { broker, nodes };
}

// A node may be away, or about to be: undefined.
async function request(node, target, options = {}) {
  try {
    const response = await node.server.fetch(target, options);
    return response.ok ? response : assert.fail(`${target}: ${response.status} ${await response.text()}`);
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return undefined;
  }
}

async function submit(node, all, { window = '24h', headers = {} } = {}) {
  const form = new FormData();
  form.append('purpose', 'batch');
  form.append('file', new Blob([all.map((one) => `${JSON.stringify(one)}\n`).join('')]), 'in.jsonl');
  const file = await (await request(node, '/v1/files', { method: 'POST', body: form, headers })).json();
  const body = JSON.stringify({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: window });
  return (await request(node, '/v1/batches', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })).json();
}

async function until(node, batch, wish, { headers = {}, time = 10 * hangAfter } = {}) {
  const late = Date.now() + time;
  for (;;) {
    const response = await request(node, `/v1/batches/${batch.id}`, { headers });
    const seen = await response?.json().catch(() => undefined);
    if (seen && wish(seen)) return seen;
    assert.ok(Date.now() < late, JSON.stringify(seen));
  }
}
const end = (node, batch, more) => until(node, batch, (seen) => ended.includes(seen.status), more);

async function results(node, file, headers = {}) {
  if (!file) return [];
  const text = await (await request(node, `/v1/files/${file}/content`, { headers })).text();
  return text.trimEnd().split('\n').map((one) => JSON.parse(one));
}

// Each line once, in one of both files.
async function once(node, batch, all, headers = {}) {
  const [output, errors] = [await results(node, batch.output_file_id, headers), await results(node, batch.error_file_id, headers)];
  assert.deepEqual([...output, ...errors].map((one) => one.custom_id).sort(), all.map((one) => one.custom_id).sort());
  return { output, errors };
}

// How many lines each node has run: its model has its name.
function linesOf(output) {
  const models = output.map((one) => one.response.body.model).sort();
  return Object.fromEntries([...new Set(models)].map((name) => [name, models.filter((one) => one === name).length]));
}

const metric = async (node, name, labels) => (await node.server.metrics()).value(name, labels);
const done = (node, event) => metric(node, 'chasqui_batch_queue_lines_total', { event });

// One that takes a line between a look at it and its end would lose the line.
it('looks at consumers of Redis and deletes those that are gone in one script', async (t) => {
  const redis = await Redis.start(t);
  const seen = redis.watch(t);
  await seen.until(/OK/);
  const node = await startNode(t, 'a', redis);
  await node.server.until((metrics) => metrics.value('chasqui_batch_queue_up') === 1, 'the broker answers');
  const text = await seen.until(/"XREADGROUP"/);
  assert.doesNotMatch(text, /\[0 \d[^\]]*\] "(XINFO|XGROUP)"/, 'only from scripts');
  await node.stop();

  // The same again, for consumers that have done nothing for no time.
  const stream = '{chasqui}:batch:lines';
  const script = text.split('\n').find((one) => /\] "EVAL" .*DELCONSUMER/.test(one)).match(/\] (.*?)\r?$/)[1];
  const [, own] = script.match(/"(node_\w+)" "86400000"$/);
  for (const name of ['gone', 'busy', own]) await redis.command('XGROUP', 'CREATECONSUMER', stream, 'nodes', name);
  await redis.command('XADD', stream, '*', 'm', 'x');
  await redis.command('XREADGROUP', 'GROUP', 'nodes', 'busy', 'STREAMS', stream, '>');
  await redis.command(script.replace(/"86400000"$/, '"0"'));
  const left = await redis.command('XINFO', 'CONSUMERS', stream, 'nodes');
  assert.deepEqual(left.match(/^(gone|busy|node_)/gm), ['busy', 'node_']);
});

for (const kind of ['redis', 'nats']) {
  describe(`a batch queue in ${kind}`, () => {
    it('spreads the lines of one node over all', async (t) => {
      const { nodes } = await startFleet(t, kind);
      const all = lines(240, () => ({ ...slow, max_tokens: 40 }));
      const batch = await end(nodes[0], await submit(nodes[0], all));
      assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: 240, completed: 240, failed: 0 }]);
      const { output } = await once(nodes[0], batch, all);
      const ran = linesOf(output);
      assert.deepEqual(Object.keys(ran), names);
      for (const name of names) assert.ok(ran[name] >= 24, `${name} ran ${ran[name]}`);
      const taken = await Promise.all(nodes.map((node) => done(node, 'answered')));
      assert.equal(taken.reduce((sum, one) => sum + one), 240);
      await nodes[0].server.until((metrics) => metrics.sum('chasqui_batch_queue_lines_away') === 0, 'nothing is away');
    });

    // How long a stream waits for its tokens is shown, not judged: the machine may be busy.
    it('lets streams go on beside its lines', async (t) => {
      const { nodes } = await startFleet(t, kind, ['--sim-step', '5']);
      const gaps = async () => {
        const all = [];
        for (let i = 0; i < 4; ++i) {
          const stream = await streamChat(nodes[1].server, user('go on'), { max_tokens: 150, ignore_eos: true });
          let last = performance.now();
          await stream.collect(() => {
            all.push(performance.now() - last);
            last = performance.now();
          });
          assert.equal(stream.finish, 'length');
        }
        all.sort((x, y) => x - y);
        return [0.5, 0.99].map((part) => all[Math.floor(part * all.length)]);
      };
      const alone = await gaps();
      const all = lines(600, () => ({ ...slow, max_tokens: 60 }));
      const made = await submit(nodes[0], all);
      await until(nodes[0], made, ({ request_counts: counts }) => counts.completed > 0);
      const beside = await gaps();
      const batch = await end(nodes[0], made);
      assert.equal(batch.request_counts.completed, 600);
      const shown = [alone, beside].map((two) => two.map((ms) => ms.toFixed(1)).join(' and '));
      t.diagnostic(`a token after ${shown[0]} ms (median, 99th percentile) alone, ${shown[1]} beside 600 lines`);
    });

    it('gives each line one result, whatever dies', async (t) => {
      const count = number('CHASQUI_BATCH_LINES', 600);
      const [kills, restarts] = [number('CHASQUI_BATCH_KILLS', 4), number('CHASQUI_BATCH_RESTARTS', 1)];
      const { broker, nodes } = await startFleet(t, kind);
      const all = lines(count, (i) => (i % 50 === 7 ? { ...says('x'), temperature: 'hot' } : { ...slow, max_tokens: 20 + i % 60 }));
      const began = Date.now();
      const made = await submit(nodes[0], all);
      const events = [...Array.from({ length: kills }, (_, i) => ({ at: (i + 1) / (kills + 1), node: nodes[i % 3] })),
        ...Array.from({ length: restarts }, (_, i) => ({ at: (i + 0.7) / (restarts + 0.5), broker }))].sort((x, y) => x.at - y.at);
      const time = 20 * hangAfter;
      for (const event of events) {
        await until(nodes[0], made, ({ request_counts: counts, status }) =>
          ended.includes(status) || counts.completed + counts.failed >= count * event.at, { time });
        const victim = event.broker ?? event.node;
        await victim.kill();
        await victim.begin();
      }
      const batch = await end(nodes[0], made, { time });
      assert.equal(batch.status, 'completed');
      assert.equal(batch.request_counts.completed + batch.request_counts.failed, count);
      const { output, errors } = await once(nodes[0], batch, all);
      const faulty = all.filter((_, i) => i % 50 === 7).map((one) => one.custom_id);
      assert.deepEqual(errors.map((one) => one.custom_id).sort(), faulty.sort());
      t.diagnostic(`${count} lines, ${kills} kills, ${restarts} restarts of the broker: ${((Date.now() - began) / 1000).toFixed(1)} s; ` +
        JSON.stringify(linesOf(output)));
    });

    it('leaves lines that are too large for the broker to their home', async (t) => {
      const { nodes } = await startFleet(t, kind);
      const all = lines(12, (i) => (i % 4 === 1 ? { messages: user(`say: ${'word '.repeat(400_000)}`), max_tokens: 4 } : says('x')));
      const batch = await end(nodes[0], await submit(nodes[0], all));
      assert.deepEqual([batch.status, batch.request_counts.completed], ['completed', 9]);
      const { errors } = await once(nodes[0], batch, all);
      assert.ok(errors.every((one) => one.response.status_code === 400), JSON.stringify(errors).slice(0, 500));
    });

    it('is not needed: its home runs a batch while the broker is away, and sends lines when it is there', async (t) => {
      const broker = await Broker.create(kind);
      const nodes = await Promise.all(['a', 'b'].map((name) => startNode(t, name, broker)));
      broker.endsWith(t);
      const few = lines(40, () => ({ ...slow, max_tokens: 40 }));
      const first = await end(nodes[0], await submit(nodes[0], few));
      const alone = (await once(nodes[0], first, few)).output;
      assert.deepEqual(linesOf(alone), { a: 40 });
      assert.equal(await metric(nodes[0], 'chasqui_batch_queue_up'), 0);

      await broker.begin();
      await nodes[0].server.until((metrics) => metrics.value('chasqui_batch_queue_up') === 1, 'the broker answers');
      await nodes[1].server.until((metrics) => metrics.value('chasqui_batch_queue_up') === 1, 'the broker answers');
      const many = lines(200, () => ({ ...slow, max_tokens: 40 }));
      const made = await submit(nodes[0], many);
      await until(nodes[0], made, (seen) => seen.request_counts.completed >= 30);
      assert.ok(await done(nodes[1], 'answered') > 0);
      await broker.kill(); // and it is not started again until the batch has ended
      const second = await end(nodes[0], made);
      assert.equal(second.status, 'completed');
      await once(nodes[0], second, many);

      broker.forget();
      await broker.begin(); // without what it had
      await nodes[0].server.until((metrics) => metrics.value('chasqui_batch_queue_up') === 1, 'the broker answers again');
      const third = await end(nodes[0], await submit(nodes[0], few));
      await once(nodes[0], third, few);
      const answered = (/the batch queue answers/g);
      assert.equal(nodes[0].server.stderr.match(answered).length, 2, 'one line for each change of state');
    });

    it('is not needed: its home runs a batch while the broker takes no lines, and sends them when it does', async (t) => {
      const { broker, nodes } = await startFleet(t, kind);
      await nodes[0].server.until((metrics) => metrics.value('chasqui_batch_queue_up') === 1, 'the broker answers');
      await broker.refuse(true);
      const few = lines(60, () => says('x'));
      const first = await end(nodes[0], await submit(nodes[0], few));
      assert.deepEqual(linesOf((await once(nodes[0], first, few)).output), { a: 60 });
      assert.equal(await metric(nodes[0], 'chasqui_batch_queue_up'), 1);
      await broker.refuse(false);
      const many = lines(800, () => ({ ...slow, max_tokens: 40 }));
      const second = await end(nodes[0], await submit(nodes[0], many));
      assert.ok(Object.keys(linesOf((await once(nodes[0], second, many)).output)).length > 1, 'it shares lines again');
      const said = nodes[0].server.stderr.match(/the batch queue (answers|does not answer|takes no lines|takes lines again)/g);
      assert.deepEqual(said, ['answers', 'takes no lines', 'takes lines again'].map((each) => `the batch queue ${each}`));
    });

    it('goes on beside a broker that hangs', async (t) => {
      const { broker, nodes } = await startFleet(t, kind);
      const all = lines(300, () => ({ ...slow, max_tokens: 40 }));
      const made = await submit(nodes[0], all);
      await until(nodes[0], made, (seen) => seen.request_counts.completed >= 30);
      broker.child.kill('SIGSTOP');
      const batch = await end(nodes[0], made);
      await once(nodes[0], batch, all);
      broker.child.kill('SIGCONT');
      for (const node of nodes) await node.server.until((metrics) => metrics.value('chasqui_batch_queue_lines_held') === 0, 'nothing is left of it');
      const later = await end(nodes[0], await submit(nodes[0], all));
      assert.ok(Object.keys(linesOf((await once(nodes[0], later, all)).output)).length > 1);
    });

    it('hears of cancelled and expired batches, wherever their lines are', async (t) => {
      const { nodes } = await startFleet(t, kind);
      const all = lines(200, () => ({ ...slow, max_tokens: 3000 }));
      const cancelled = await submit(nodes[0], all);
      await nodes[1].server.until((metrics) => metrics.value('chasqui_batch_queue_lines_held') === 8, 'it runs lines of the other');
      await request(nodes[0], `/v1/batches/${cancelled.id}/cancel`, { method: 'POST' });
      const batch = await end(nodes[0], cancelled);
      assert.equal(batch.status, 'cancelled');
      const { errors } = await once(nodes[0], batch, all);
      assert.ok(errors.filter((one) => one.error?.code === 'batch_cancelled').length >= 150);
      for (const node of nodes) await node.server.until((metrics) => metrics.value('chasqui_batch_queue_lines_held') === 0, 'nothing is left of it');

      const expired = await end(nodes[0], await submit(nodes[0], all, { window: '2s' }));
      assert.equal(expired.status, 'expired');
      await once(nodes[0], expired, all);
      for (const node of nodes) await node.server.until((metrics) => metrics.value('chasqui_batch_queue_lines_held') === 0, 'nothing is left of it');
    });

    it('leaves lines to nodes that know their tenant, and that do not drain', async (t) => {
      const broker = await Broker.create(kind);
      await broker.begin();
      const keys = path.join(temporaryFolder(t), 'keys');
      writeFileSync(keys, 'key-one name=one in_flight=8\n');
      const others = path.join(temporaryFolder(t), 'keys');
      writeFileSync(others, 'key-two name=two\n');
      const nodes = await Promise.all([['a', keys], ['b', keys], ['c', others]].map(([name, file]) =>
        startNode(t, name, broker, ['--api-key-file', file])));
      broker.endsWith(t);
      for (const node of nodes) node.server.key = node.name === 'c' ? 'key-two' : 'key-one';
      const headers = { authorization: 'Bearer key-one' };
      const all = lines(100, () => ({ ...slow, max_tokens: 40 }));
      const batch = await end(nodes[0], await submit(nodes[0], all, { headers }), { headers });
      const { output } = await once(nodes[0], batch, all, headers);
      assert.deepEqual(Object.keys(linesOf(output)), ['a', 'b']);
      assert.ok(await done(nodes[2], 'given_back') > 0);

      await nodes[1].admin('POST', '/drain');
      const later = await end(nodes[0], await submit(nodes[0], all, { headers }), { headers });
      const { output: alone } = await once(nodes[0], later, all, headers);
      assert.deepEqual(linesOf(alone), { a: 100 });
    });
  });
}
