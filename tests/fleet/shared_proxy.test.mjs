// Three nodes that share sessions behind HAProxy, and behind nginx: when one is killed, its sessions go on at the others with what it had
// computed, and no other request notices. CHASQUI_FLEET_MODEL names a test model, such as 0.5b-q4_0, in place of the
// simulated one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { it } from 'node:test';

import { ask, streamChat, user } from '../e2e/client.mjs';
import { sim, testModel } from '../e2e/server.mjs';
import { Node } from './nodes.mjs';
import { names, startHaproxy, startNginx } from './proxies.mjs';
import { Redis } from './redis.mjs';

const model = process.env.CHASQUI_FLEET_MODEL;
const engine = model ? ['-m', testModel(model)] : sim;
const many = 'The runner of the Andes carries a knotted cord from one post to the next. '.repeat(70);

for (const startIt of [startHaproxy, startNginx]) {
  it(`sessions of a node that is killed go on at the others, with ${startIt.name}`, async (t) => {
    const redis = await Redis.start(t);
    const store = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-shared-'));
    t.after(() => fs.rmSync(store, { recursive: true, force: true, maxRetries: 20 }));
    const flags = ['--shared-store', store, '--session-leases', redis.url];
    const nodes = await Promise.all(names.map((name) => Node.start(t, name, flags, engine)));
    const proxy = await startIt(t, nodes);

    const turn = async (session) => {
      await ask(proxy, `/v1/sessions/${session.id}/append`, { message: { role: 'user', content: 'Go on.' } });
      const body = await ask(proxy, `/v1/sessions/${session.id}/generate`, { max_tokens: 16, ignore_eos: true, temperature: 0 });
      session.node = body.model;
      session.cached = body.usage.prompt_tokens_details.cached_tokens / body.usage.prompt_tokens;
    };
    const sessions = [];
    for (let i = 0; i < 12; ++i) {
      const { id } = await ask(proxy, '/v1/sessions', { messages: [{ role: 'system', content: `${i} ${many}` }] });
      sessions.push({ id });
      await turn(sessions[i]);
    }
    const homes = new Map(sessions.map(({ id, node }) => [id, node]));
    await Promise.all(sessions.map(turn));
    for (const { id, node } of sessions) assert.equal(node, homes.get(id), 'a session stays with its node');

    const has = ({ name }) => sessions.filter(({ node }) => node === name).length;
    const lost = nodes.reduce((most, node) => (has(node) > has(most) ? node : most));
    const saved = async () => (await lost.server.metrics()).value('chasqui_session_kv_total', { result: 'saved' });
    while (await saved() < has(lost)) /* another thread writes them */;
    const other = sessions.find(({ node }) => node !== lost.name);
    const going = await streamChat(proxy, user('A story.'), { max_tokens: 300, ignore_eos: true }, { headers: { 'x-session-id': other.id } });
    lost.server.signal('SIGKILL');
    // What a node has taken when it dies is lost with it: its clients ask again.
    const others = Promise.all(sessions.filter(({ node }) => node !== lost.name).map(turn));
    await lost.server.ended;
    await Promise.all(sessions.filter(({ node }) => node === lost.name).map(turn));
    await others;
    await going.collect();
    let moved = 0;
    for (const { id, node, cached } of sessions) {
      assert.ok(cached >= 0.9, `${cached} of the prompt were cached`);
      if (homes.get(id) !== lost.name) assert.equal(node, homes.get(id));
      else ++moved;
    }
    t.diagnostic(`${moved} of 12 sessions moved, at least ${Math.min(...sessions.map(({ cached }) => cached)).toFixed(3)} cached`);
    assert.ok(moved > 0);
    await lost.begin();
  });
}
