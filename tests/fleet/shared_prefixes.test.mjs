// Prefixes that nodes with --cache-disk share through --shared-store: what one node has computed another one reads,
// and whatever the store does costs time and nothing else.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';

import { ask, streamChat, user } from '../e2e/client.mjs';
import { random } from '../e2e/random.mjs';
import { demo, run, sim, start, testModel } from '../e2e/server.mjs';
import { credentials, startDav, startS3 } from './object_stores.mjs';
import { Redis } from './redis.mjs';
import { ToxicProxy } from './toxic.mjs';

const prompt = (name) => [{ role: 'system', content: `${name}. ` + 'The chasquis ran from post to post with knotted cords, and each of them knew his part of the road by heart. '.repeat(4) },
  { role: 'user', content: 'Who were they?' }];

function folder(t) {
  const name = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-prefixes-'));
  t.after(() => fs.rmSync(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

// A node with a disk cache of its own.
const begin = (t, flags, env) => start(t, [...flags, '--cache-disk', folder(t)], env);
const shares = (server, n) => server.until((metrics) => metrics.value('chasqui_shared_snapshots') >= n, `${n} prefixes`);
const reads = async (server, result) =>
  (await server.metrics()).value('chasqui_shared_snapshots_read_total', { result });

async function say(server, name, options) {
  const { choices, usage } = await ask(server, '/v1/chat/completions', { messages: prompt(name), temperature: 0, max_tokens: 16 }, options);
  return { text: choices[0].message.content, cached: usage.prompt_tokens_details.cached_tokens / usage.prompt_tokens };
}

async function shared(t, more = []) {
  const redis = await Redis.start(t);
  const store = folder(t);
  return { redis, store, flags: ['--shared-store', store, '--session-leases', redis.url, ...more] };
}

describe('nodes that share prefixes', () => {
  it('read what a node has computed that was killed', async (t) => {
    const { flags } = await shared(t);
    const [a, steady] = [await begin(t, [...demo, ...flags]), await start(t, demo)];
    assert.equal((await say(a, 'One')).cached, 0);
    await shares(a, 1);
    a.signal('SIGKILL');
    await a.ended;
    const b = await begin(t, [...demo, ...flags]);
    await shares(b, 1);
    const there = await say(b, 'One');
    assert.ok(there.cached >= 0.9, `${there.cached} of the prompt were cached`);
    assert.equal(there.text, (await say(steady, 'One')).text);
    assert.equal(await reads(b, 'read'), 1);
  });

  it('read checkpoints of a model whose states cannot be cut', async (t) => {
    const { flags } = await shared(t);
    const engine = ['-m', testModel('hybrid'), '-c', '4096', '-t', '1'];
    const [a, steady] = [await begin(t, [...engine, ...flags]), await start(t, engine)];
    await say(a, 'One');
    await shares(a, 1);
    const b = await begin(t, [...engine, ...flags]);
    await shares(b, 1);
    const there = await say(b, 'One');
    assert.ok(there.cached >= 0.8, `${there.cached} of the prompt were cached`);
    assert.equal(there.text, (await say(steady, 'One')).text);
  });

  it('do so by S3 and by WebDAV, encrypted, and not with another key', async (t) => {
    const redis = await Redis.start(t);
    const [endpoint, dav, keys] = [await startS3(t), await startDav(t), folder(t)];
    const key = (name, digit) => {
      const file = path.join(keys, name);
      fs.writeFileSync(file, digit.repeat(64), { mode: 0o600 });
      return ['--shared-store-key', file];
    };
    const steady = await say(await start(t, demo), 'One');
    for (const [url, env] of [['s3://bucket/prod', { ...credentials, AWS_ENDPOINT_URL: endpoint }], [dav.url(dav.port), {}]]) {
      const flags = [...demo, '--shared-store', url, '--session-leases', redis.url];
      const a = await begin(t, [...flags, ...key('ours', 'a')], env);
      await say(a, 'One');
      await shares(a, 1);
      const b = await begin(t, [...flags, ...key('ours', 'a')], env);
      await shares(b, 1);
      const there = await say(b, 'One');
      assert.ok(there.cached >= 0.9, `${there.cached} of the prompt were cached`);
      assert.equal(there.text, steady.text);
      const c = await begin(t, [...flags, ...key('another', 'b')], env);
      await c.until((metrics) => metrics.value('chasqui_shared_snapshot_bytes') > 0, 'a list');
      assert.deepEqual(await say(c, 'One'), { ...steady, cached: 0 });
      assert.equal((await (await a.metrics()).value('chasqui_shared_snapshots')), 1, 'another key removes nothing');
    }
  });

  it('believe no changed byte', async (t) => {
    const { flags, store } = await shared(t);
    const a = await begin(t, [...demo, ...flags]);
    const names = ['One', 'Two', 'Three', 'Four'];
    for (const [i, name] of names.entries()) {
      await say(a, name);
      await shares(a, i + 1);
    }
    a.signal('SIGKILL');
    await a.ended;
    const draw = random(3);
    for (const which of ['snapshots', 'snapshot_heads']) {
      for (const name of fs.readdirSync(path.join(store, which))) {
        const file = path.join(store, which, name);
        const bytes = fs.readFileSync(file);
        for (let i = 0; i < 20; ++i) bytes[draw.below(bytes.length)] ^= 1 << draw.below(8);
        fs.writeFileSync(file, bytes);
        break;
      }
    }
    const [b, steady] = [await begin(t, [...demo, ...flags]), await start(t, demo)];
    await shares(b, 1);
    for (const name of names) assert.equal((await say(b, name)).text, (await say(steady, name)).text);
  });

  it('wait for no store that refuses, hangs, answers half or wrong', async (t) => {
    const redis = await Redis.start(t);
    const dav = await startDav(t);
    const toxic = await ToxicProxy.start(t, { host: '127.0.0.1', port: dav.port });
    const flags = [...sim, '--shared-store', dav.url(toxic.port), '--session-leases', redis.url, '--shared-store-timeout', '1'];
    const [a, b, steady] = [await begin(t, flags), await begin(t, flags), await start(t, sim)];
    for (const [i, mode] of ToxicProxy.modes.entries()) {
      await say(a, `Story ${i}`);
      await shares(b, i + 1);
      toxic.mode = mode;
      const stream = streamChat(b, user('A story.'), { max_tokens: 50, ignore_eos: true });
      assert.equal((await say(b, `Story ${i}`)).text, (await say(steady, `Story ${i}`)).text, mode);
      assert.equal((await (await stream).collect()).finish, 'length');
      toxic.mode = 'pass';
    }
  });

  it('erase what the store has of a tenant, or say that they could not', async (t) => {
    const { flags, store } = await shared(t);
    const keys = path.join(folder(t), 'keys');
    fs.writeFileSync(keys, 'one name=one\ntwo name=two\n');
    const of = (key) => ({ headers: { authorization: `Bearer ${key}` } });
    const node = async () => Object.assign(await begin(t, [...demo, ...flags, '--api-key-file', keys]), { key: 'one' });
    const [a, b] = [await node(), await node()];
    await say(a, 'Mine', of('one'));
    await say(a, 'Theirs', of('two'));
    await shares(b, 2);
    await ask(b, '/slots/0?action=erase', {}, of('one'));
    for (const which of ['snapshots', 'snapshot_heads']) assert.equal(fs.readdirSync(path.join(store, which)).length, 1);
    const [c, d] = [await node(), await node()];
    for (const each of [c, d]) await shares(each, 1);
    assert.equal((await say(c, 'Mine', of('one'))).cached, 0);
    assert.ok((await say(d, 'Theirs', of('two'))).cached >= 0.9);
  });

  it('keep the store below --shared-cache-mib', async (t) => {
    const { flags, store } = await shared(t, ['--shared-cache-mib', '1']);
    const nodes = [await begin(t, [...demo, ...flags]), await begin(t, [...demo, ...flags])];
    const sent = async () => {
      let sum = 0;
      for (const node of nodes) sum += await (await node.metrics()).value('chasqui_shared_snapshots_sent_total');
      return sum;
    };
    for (let i = 0; i < 12; ++i) {
      await say(nodes[i % 2], `Story ${i}`);
      while ((await sent()) < i + 1);
    }
    const bytes = () => fs.readdirSync(path.join(store, 'snapshots'))
      .reduce((sum, name) => sum + (fs.statSync(path.join(store, 'snapshots', name), { throwIfNoEntry: false })?.size ?? 0), 0);
    // What both have sent at once goes when they look again.
    while (bytes() > 2 ** 20) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(bytes() > 0);
    assert.ok((await say(await begin(t, [...demo, ...flags]), 'Story 11')).text.length > 0);
  });

  it('are recorded, and plan the same in a replay', async (t) => {
    const { flags } = await shared(t);
    const a = await begin(t, [...demo, ...flags]);
    await say(a, 'One');
    await shares(a, 1);
    const file = path.join(folder(t), 'recording');
    const b = await begin(t, [...demo, ...flags, '--record', file]);
    await shares(b, 1);
    assert.ok((await say(b, 'One')).cached >= 0.9);
    await say(b, 'Two');
    b.signal('SIGTERM');
    await b.ended;
    const { code, stdout, stderr } = await run(['replay', file]);
    assert.equal(code, 0, stdout + stderr);
  });
});
