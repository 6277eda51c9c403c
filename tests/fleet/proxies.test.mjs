// The configurations of deploy/haproxy and deploy/nginx, with the real programs and real nodes.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, endless, streamChat, user } from '../e2e/client.mjs';
import { Node } from './nodes.mjs';
import { names, startHaproxy, startNginx } from './proxies.mjs';

const { describe, it } = test;

const startNodes = (context, flags) => Promise.all(names.map((name) => Node.start(context, name, flags)));

// Which node has answered: its model has its name.
const nodeOf = async (proxy, headers, messages = user('say: x'), more = {}) =>
  (await ask(proxy, '/v1/chat/completions', { messages, ...more }, { headers })).model;

for (const [program, startIt] of [['HAProxy', startHaproxy], ['nginx', startNginx]]) {
  describe(program, async () => {
    const nodes = await startNodes(test);
    const proxy = await startIt(test, nodes);

    it('keeps each of 60 sessions on its node, and spreads them', async () => {
      const seen = new Map();
      for (let turn = 0; turn < 3; ++turn) {
        await Promise.all(Array.from({ length: 60 }, async (_, i) => {
          const node = await nodeOf(proxy, { 'x-session-id': `session-${i}` });
          assert.equal(seen.get(i) ?? node, node, `session ${i}, turn ${turn}`);
          seen.set(i, node);
        }));
      }
      assert.deepEqual([...new Set(seen.values())].sort(), names);
    });

    it('streams', async () => {
      const stream = await streamChat(proxy, 'go on', endless, { headers: { 'x-session-id': 'stream' } });
      await stream.nextText();
      await stream.nextText(); // long before its end
      stream.leave();
    });

    it('sends what a node refuses to another one, and back when it takes requests again', async () => {
      const headers = { 'x-session-id': 'moves' };
      const home = await nodeOf(proxy, headers);
      const node = nodes.find(({ name }) => name === home);
      await node.admin('POST', '/drain');
      const guests = new Set();
      for (let i = 0; i < 20; ++i) guests.add(await nodeOf(proxy, headers));
      assert.ok(!guests.has(home), `${[...guests]}`);
      await node.admin('DELETE', '/drain');
      while (await nodeOf(proxy, headers) !== home);
    });

    it('serves while all nodes are restarted one after another, without a failed request or a cut stream', async () => {
      let going = true;
      let answers = 0;
      const work = async (i) => {
        for (let n = 0; going; ++n) {
          const headers = { 'x-session-id': `worker-${i}-${n % 4}` };
          if (n % 2 === 0) {
            assert.equal((await answer(proxy, `say: ${i} ${n}`, {}, { headers })).text, `${i} ${n}`);
          } else {
            const stream = await streamChat(proxy, 'go on', { ignore_eos: true, max_tokens: 200 }, { headers });
            await stream.collect();
            assert.equal(stream.finish, 'length');
          }
          ++answers;
        }
      };
      const workers = Promise.all(Array.from({ length: 6 }, (_, i) => work(i)));
      workers.catch(() => (going = false));
      for (const node of nodes) {
        await node.drained();
        await node.stop();
        await node.begin();
        const before = answers;
        while (going && answers < before + 20) await proxy.fetch('/health').then((response) => response.arrayBuffer());
      }
      going = false;
      await workers;
      // Each node has work again.
      const seen = new Set();
      for (let i = 0; seen.size < names.length; ++i) seen.add(await nodeOf(proxy, { 'x-session-id': `again-${i}` }));
    });

    it('serves others when a node is killed', async () => {
      const home = await nodeOf(proxy, { 'x-session-id': 'lost' });
      const node = nodes.find(({ name }) => name === home);
      const cut = await streamChat(proxy, 'go on', endless, { headers: { 'x-session-id': 'lost' } });
      await cut.nextText();
      node.server.signal('SIGKILL');
      await assert.rejects(cut.collect(), 'a stream that is cut does not look complete');
      for (let i = 0; i < 30; ++i) assert.notEqual(await nodeOf(proxy, { 'x-session-id': `kept-${i}` }), home);
      await node.server.ended;
      await node.begin();
      while (await nodeOf(proxy, { 'x-session-id': 'lost' }) !== home);
    });
  });
}

describe('HAProxy without the name of a session', async () => {
  const nodes = await startNodes(test);
  const proxy = await startHaproxy(test, nodes);

  it('keeps a conversation on its node by how it begins', async () => {
    const homes = new Set();
    for (let i = 0; i < 12; ++i) {
      const first = user(`say: question ${i}`);
      const home = await nodeOf(proxy, {}, first, { temperature: 0 });
      const later = [...first, { role: 'assistant', content: `question ${i}` }, ...user('say: more')];
      assert.equal(await nodeOf(proxy, {}, later, { max_tokens: 8 }), home, `conversation ${i}`);
      assert.equal((await ask(proxy, '/v1/completions', { prompt: `text ${i}`, max_tokens: 1 })).model,
        (await ask(proxy, '/v1/completions', { max_tokens: 2, prompt: `text ${i}` })).model);
      homes.add(home);
    }
    assert.ok(homes.size > 1, 'and not all on one');
  });

  it('keeps prompts together that a client says share something', async () => {
    const homes = new Set();
    for (let i = 0; i < 10; ++i) homes.add(await nodeOf(proxy, { 'x-prompt-key': 'manual' }, user(`say: ${i}`)));
    assert.equal(homes.size, 1, `${[...homes]}`);
  });

  it('tells keys apart', async () => {
    const homes = new Set();
    for (let i = 0; i < 12; ++i) homes.add(await nodeOf(proxy, { authorization: `Bearer key-${i}` }, user('say: the same')));
    assert.ok(homes.size > 1);
  });
});

describe('a node that has more than its part', async () => {
  it('has help, with a lower factor, for prompts that begin alike', async (t) => {
    const nodes = await startNodes(t);
    const proxy = await startHaproxy(t, nodes, 150);
    const streams = [];
    for (let i = 0; i < 12; ++i) {
      streams.push(await streamChat(proxy, 'go on', endless));
      await streams[i].nextText();
    }
    const running = await Promise.all(nodes.map(async (node) => (await node.admin('GET', '/drain')).requests));
    assert.ok(Math.max(...running) <= 6, `${running}: 1.5 times 4`);
    for (const stream of streams) stream.leave();
  });
});

describe('a node that is full', async () => {
  it('is passed by HAProxy', async (t) => {
    const nodes = await startNodes(t, ['-np', '1', '--queue-requests', '0']);
    const proxy = await startHaproxy(t, nodes);
    const streams = [];
    for (let i = 0; i < 2; ++i) {
      streams.push(await streamChat(proxy, 'go on', endless, { headers: { 'x-session-id': 'one' } }));
      await streams[i].nextText();
    }
    const [home, next] = streams.map((stream) => stream.chunks[0].model);
    assert.notEqual(home, next, 'the second was refused at home, and served by another node');
    for (const stream of streams) stream.leave();
  });
});
