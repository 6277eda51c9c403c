// What a node tells routers of its prefix cache is what a request then finds there. CHASQUI_KV_CHANGES says after how
// many changes of blocks a router that loses messages is compared with the node (10,000).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { ask, endless, stream } from './client.mjs';
import { Peer, Router, numbered } from './kv_router.mjs';
import { random } from './random.mjs';
import { binary, demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const anyPort = 'tcp://127.0.0.1:*';
const flags = ['--kv-events', anyPort, '--kv-events-replay', anyPort, '--kv-events-topic', 'kv@node@{model}'];

const tried = await run(['serve', '--port', '0', ...sim, '--kv-events', anyPort]);
const noZmq = tried.stderr.includes('there is no ZeroMQ') ? 'libzmq is not installed' : false;

async function startNode(t, more = [], model = demo) {
  const server = await start(t, [...model, '-np', '4', '-c', '8192', ...flags, ...more]);
  const line = /KV events.* (?:listens|connects)=(\S+) replay=(\S+) /;
  await server.says(line);
  const [, events, replay] = line.exec(server.stderr);
  return { server, events, replay };
}

// Batches of all that has happened until now.
async function told(server) {
  await server.idle();
  const metrics = await server.until((now) => now.value('chasqui_kv_event_changes_waiting') === 0);
  return metrics.value('chasqui_kv_event_batches_total');
}

async function readAll(router, server) {
  const end = await told(server);
  while (router.next < end) await router.read();
}

const tokensOf = (first, length) => Array.from({ length }, (_, i) => 10 + (first * 31 + i * 7) % 200);
const complete = (server, prompt, fields = {}) =>
  ask(server, '/v1/completions', { prompt, max_tokens: 2, temperature: 0, ...fields });
const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;

describe('flags of KV events', () => {
  it('are refused where they cannot be meant', async () => {
    for (const [args, words] of [
      [['--kv-events', 'http://x:1'], '--kv-events http://x:1: give tcp://'],
      [['--kv-events', 'tcp://127.0.0.1'], '--kv-events tcp://127.0.0.1: give tcp://'],
      [['--kv-events-replay', anyPort], '--kv-events-replay is of no use without --kv-events'],
      [['--kv-events-topic', 'kv'], '--kv-events-topic is of no use without --kv-events'],
      [['--kv-events', anyPort, '--api-key', 'a,b'], '--cache-shared'],
      [['--kv-events', 'tcp://*:5557'], '--kv-events tcp://*:5557 may be reached from other networks'],
      [['--kv-events', 'tcp://203.0.113.1:5557'], 'say --kv-events-public'],
      [['--kv-events', 'tcp://[2001:db8::1]:5557'], 'say --kv-events-public'],
      [['--kv-events', anyPort, '--kv-events-replay', 'tcp://0.0.0.0:*'], '--kv-events-replay tcp://0.0.0.0:*'],
    ]) {
      const { code, stderr } = await run(['serve', '--port', '0', ...sim, ...args]);
      assert.equal(code, 2);
      assert.ok(stderr.includes(words), stderr);
    }
  });
});

it('has libzmq where it has to', { skip: !process.env.CI && !process.env.CHASQUI_NEEDS_ZMQ }, () => {
  assert.equal(noZmq, false);
});

// Sends the same subscription again and again, as fast as it is read.
async function flood(t, endpoint) {
  const peer = await Peer.open(endpoint, 'SUB');
  t.after(() => peer.close());
  const again = Buffer.concat(Array(20_000).fill(Buffer.from('\x00\x04\x01kv@')));
  const write = () => {
    while (!peer.socket.destroyed && peer.socket.write(again));
  };
  peer.socket.on('drain', write);
  peer.socket.pause();
  write();
  return peer;
}

// What a client of the replay endpoint gets for its first whole request.
async function answerTo(peer) {
  const numbers = [];
  for (;;) {
    const [, number, payload] = await peer.next();
    if (payload.length === 0) return numbers;
    numbers.push(Number(number.readBigUInt64BE()));
  }
}

it('listens at every address where that is meant', { skip: noZmq }, async (t) => {
  const server = await start(t, [...sim, '--kv-events', 'tcp://*:*', '--kv-events-public']);
  await server.says(/KV events.* listens=tcp:\/\/0\.0\.0\.0:\d+ replay=off/);
});

describe('peers that mean no good', { skip: noZmq }, () => {
  it('are cut off with frames that are too large, and ignored with others', async (t) => {
    const { server, events, replay } = await startNode(t);
    for (const [endpoint, kind] of [[events, 'SUB'], [replay, 'DEALER']]) {
      for (const size of [1025, 10 << 20]) {
        const peer = await Peer.open(endpoint, kind);
        peer.send(Buffer.alloc(size, 1));
        await peer.closed;
      }
    }
    const odd = [[Buffer.alloc(0)], [Buffer.from('\x02')], [Buffer.from('\x01kv@'), Buffer.from('x')],
      Array(100).fill(Buffer.from('x')), [Buffer.alloc(0), Buffer.alloc(7)]];
    const subscriber = await Peer.open(events, 'SUB');
    const client = await Peer.open(replay, 'DEALER');
    for (const frames of odd) {
      subscriber.send(...frames);
      client.send(...frames);
    }
    client.send(Buffer.alloc(0), numbered(0));
    const router = new Router(t);
    await router.subscribe(events);
    await complete(server, tokensOf(1, 300));
    await readAll(router, server);
    assert.equal(router.count(), 4);
    assert.equal((await answerTo(client))[0], 0);
    assert.equal(server.stderr.match(/--kv-events-replay is not as it should be/g).length, 1);
    subscriber.close();
    client.close();
  });

  it('do not keep others from being told, nor the server from ending', async (t) => {
    const { server, events, replay } = await startNode(t);
    const peer = await flood(t, events);
    const router = new Router(t);
    await router.subscribe(events);
    await complete(server, tokensOf(1, 300));
    while (router.count() < 4) await router.read();
    assert.ok(await new Router().replay(replay, 0) > 0);
    server.signal('SIGTERM');
    await server.ended;
    peer.close();
  });

  it('do not keep the server from ending when they do not read', async (t) => {
    const { server, events, replay } = await startNode(t);
    const subscriber = await Peer.open(events, 'SUB');
    const client = await Peer.open(replay, 'DEALER');
    t.after(() => [subscriber, client].forEach((peer) => peer.close()));
    subscriber.send(Buffer.from('\x01kv@'));
    [subscriber, client].forEach((peer) => peer.socket.pause());
    for (let i = 0; i < 5; i++) await complete(server, tokensOf(i, 400));
    for (let i = 0; i < 10_000; i++) client.send(Buffer.alloc(0), numbered(0));
    await server.until((now) => now.value('chasqui_kv_event_replays_total') > 1000);
    assert.ok(await new Router().replay(replay, 0) > 0, 'another client is answered');
    server.signal('SIGTERM');
    await server.ended;
  });
});

describe('a router that reads KV events', { skip: noZmq }, () => {
  it('knows what a request finds', async (t) => {
    const { server, events } = await startNode(t, ['--cache-ram', '6']);
    const router = new Router(t);
    await router.subscribe(events);
    assert.equal(router.cleared, 1);
    assert.match(router.topic, /^kv@node@./);
    let found = 0;
    let compared = 0;
    for (let i = 0; compared < 20 || found < 40; i++) {
      assert.ok(i < 1000, `${compared} requests found ${found} blocks`);
      // Of four beginnings; some of these prompts share more than that.
      const prompt = [...tokensOf(i % 4, 200 + 64 * (i % 3)), ...tokensOf(50 + i % 7, 100 + 10 * (i % 5))];
      const said = Math.min(router.blocksOf(prompt), Math.floor((prompt.length - 1) / 64));
      const answer = await complete(server, prompt, { return_cache: true });
      const { known_tokens: known } = answer.timings.cache;
      assert.ok(cachedOf(answer) <= known);
      const { removed } = router;
      await readAll(router, server);
      if (router.removed > removed) continue; // while it was on its way, perhaps
      assert.equal(said, Math.floor(known / 64), `request ${i}`);
      found += Math.floor(cachedOf(answer) / 64);
      compared += 1;
    }
    // Slots are copied out for some steps more.
    const metrics = await server.until(async (now) => {
      while (router.next < now.value('chasqui_kv_event_batches_total')) await router.read();
      return now.value('chasqui_kv_event_blocks_held') === router.count();
    });
    assert.ok(metrics.value('chasqui_kv_event_blocks_total', { event: 'removed' }) > 0, 'nothing had to leave');
  });

  it('gets what it has missed, and everything where that is too much', async (t) => {
    const { server, events, replay } = await startNode(t);
    const router = new Router(t);
    await router.subscribe(events);
    await complete(server, tokensOf(1, 300));
    await readAll(router, server);
    router.leave();
    const before = router.next;
    for (let i = 2; i < 8; i++) await complete(server, tokensOf(i, 200 + 50 * i));
    const end = await told(server);
    assert.equal(await router.replay(replay), end - before);
    assert.equal(router.cleared, 1);
    assert.equal(router.next, end);

    const late = new Router();
    assert.equal(await late.replay(replay, 0), end);
    assert.deepEqual(late.state(), router.state());
    assert.equal(await late.replay(replay), 0, 'it has all');
    const foreign = new Router(); // of a node that was started again
    await foreign.replay(replay, 1_000_000);
    assert.deepEqual(foreign.state(), router.state());

    const fresh = new Router(t);
    await fresh.subscribe(events);
    await readAll(fresh, server);
    assert.deepEqual(fresh.state(), router.state());
    const prompt = [...tokensOf(5, 450), 9];
    assert.equal(Math.floor(cachedOf(await complete(server, prompt)) / 64), fresh.blocksOf(prompt));
  });

  it('has the same index after many changes, whatever it has missed', async (t) => {
    const wanted = Number(process.env.CHASQUI_KV_CHANGES ?? 10_000);
    const { server, events, replay } = await startNode(t, ['-c', '65536', '--cache-ram', '2'], sim);
    const router = new Router(t);
    await router.subscribe(events);
    const { below, of } = random(1);
    let lost = 0;
    let asked = 0;
    for (let i = 0, done = false; !done; i++) {
      const lengths = [200, 900, 2500, 9000];
      await Promise.all([0, 1, 2].map(() => complete(server, tokensOf(below(400), of(lengths)), { max_tokens: 1 })));
      const end = await told(server);
      // It misses some, sees the gap by the next number, and asks for them.
      const away = below(3) === 0;
      if (away) lost += end - router.next;
      while (router.arrived < end) await (away ? router.lose() : router.read());
      if (away && router.next < end) {
        await router.replay(replay);
        asked += 1;
        while (router.arrived < router.next) await router.lose(); // that it has by now
      }
      const metrics = await server.metrics();
      done = metrics.sum('chasqui_kv_event_blocks_total') >= wanted;
    }
    const metrics = await server.until(async (now) => {
      while (router.next < now.value('chasqui_kv_event_batches_total')) await router.read();
      return now.value('chasqui_kv_event_blocks_held') === router.count();
    });
    assert.ok(asked > 3 && lost > 20, `${lost} batches were lost, and asked for ${asked} times`);
    assert.ok(metrics.value('chasqui_kv_event_blocks_total', { event: 'removed' }) > wanted / 4, 'few had to leave');
    const fresh = new Router(t); // is told all that the node holds
    await fresh.subscribe(events);
    while (router.cleared < fresh.cleared + 1) await router.read();
    await readAll(router, server);
    await readAll(fresh, server);
    assert.deepEqual(router.state(), fresh.state());
    assert.equal(fresh.count(), (await server.metrics()).value('chasqui_kv_event_blocks_held'));
  });

  it('hears when a tenant has its cache erased, and when the node ends', async (t) => {
    const { server, events } = await startNode(t);
    const router = new Router(t);
    await router.subscribe(events);
    await complete(server, tokensOf(1, 300));
    await readAll(router, server);
    assert.equal(router.blocksOf(tokensOf(1, 300)), 4);
    await ask(server, '/slots/0?action=erase', {});
    await readAll(router, server);
    assert.equal(router.count(), 0);
    assert.equal(cachedOf(await complete(server, tokensOf(1, 300))), 0);
    await readAll(router, server);
    assert.equal(router.count(), 4);
    server.signal('SIGTERM');
    while (router.cleared < 2) await router.read();
    assert.equal(router.count(), 0);
    router.leave();
    await server.ended;
  });

  it('knows the prompt of a request that still runs', async (t) => {
    const { server, events } = await startNode(t);
    const router = new Router(t);
    await router.subscribe(events);
    const running = await stream(server, '/v1/completions', { prompt: tokensOf(1, 400), ...endless });
    while (router.blocksOf(tokensOf(1, 400)) < 6) await router.read();
    const other = await complete(server, [...tokensOf(1, 390), 8, 9]);
    assert.ok(cachedOf(other) >= 384, `${cachedOf(other)} tokens`);
    running.leave();
    await readAll(router, server);
  });

  it('sees nothing of requests that leave nothing in the cache', async (t) => {
    const { server, events } = await startNode(t);
    const router = new Router(t);
    await router.subscribe(events);
    await complete(server, tokensOf(1, 300), { cache_prompt: false });
    await readAll(router, server);
    assert.equal(router.count(), 0);
  });

  it('tells files apart, also those of an earlier process', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
    t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
    const first = await startNode(t, ['--cache-disk', folder]);
    const router = new Router(t);
    await router.subscribe(first.events);
    await complete(first.server, tokensOf(1, 300));
    while (router.blocksOf(tokensOf(1, 300), 'DISK') < 4) await router.read(); // an idle server writes
    assert.equal(router.blocksOf(tokensOf(1, 300)), 4, 'it is in memory still');
    router.leave();
    await first.server.stop();

    const second = await startNode(t, ['--cache-disk', folder]);
    const again = new Router(t);
    await again.subscribe(second.events);
    while (again.blocksOf(tokensOf(1, 300), 'DISK') < 4) await again.read();
    assert.equal(again.blocksOf(tokensOf(1, 300)), 0);
    assert.ok(cachedOf(await complete(second.server, tokensOf(1, 300))) >= 256);
    while (again.blocksOf(tokensOf(1, 300)) < 4) await again.read();
    await ask(second.server, '/slots/0?action=erase', {});
    while (again.count() > 0) await again.read();
  });

  it('names adapters as requests do', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
    t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
    const file = path.join(folder, 'style.gguf');
    const model = fileURLToPath(new URL('../../models/demo/chasqui-demo.gguf', import.meta.url));
    execFileSync(path.join(path.dirname(binary), 'mkmodel'), ['--adapter', model, file, '--seed', '1']);
    const { server, events } = await startNode(t, ['--lora', file, '--lora-init-without-apply']);
    const router = new Router(t);
    await router.subscribe(events);
    const prompt = tokensOf(1, 300);
    await complete(server, prompt, { lora: 'style' });
    await readAll(router, server);
    assert.deepEqual([router.blocksOf(prompt), router.blocksOf(prompt, 'GPU', 'style')], [0, 4]);
    await complete(server, prompt, { lora: [{ id: 0, scale: 0.5 }] }); // routers have no name for it
    await readAll(router, server);
    assert.equal(router.count(), 4);
    // From now on all get the adapter that name none.
    await ask(server, '/lora-adapters', [{ id: 0, scale: 1 }]);
    while (router.blocksOf(prompt) < 4) await router.read();
    assert.equal(Math.floor(cachedOf(await complete(server, prompt)) / 64), 4);
  });
});
