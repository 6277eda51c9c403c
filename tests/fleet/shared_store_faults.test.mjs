// Shared sessions where the store or Redis refuses, hangs, answers half, answers wrong bits, or has other clocks: slower,
// never wrong, and what needs neither goes on.
import assert from 'node:assert/strict';
import { it } from 'node:test';

import { ask, post, refused, streamChat, user } from '../e2e/client.mjs';
import { random } from '../e2e/random.mjs';
import { demo, sim, start } from '../e2e/server.mjs';
import { credentials, startDav, startS3 } from './object_stores.mjs';
import { Redis } from './redis.mjs';
import { ToxicProxy } from './toxic.mjs';

const greedy = { temperature: 0, max_tokens: 12 };
const say = (content) => ({ message: { role: 'user', content } });

async function goOn(nodes, steady) {
  const begin = { messages: [{ role: 'system', content: 'You are helpful.' }] };
  const [{ id }, { id: alike }] = [await ask(nodes[0], '/v1/sessions', begin), await ask(steady, '/v1/sessions', begin)];
  for (let i = 0; i < 5; ++i) {
    const said = [];
    for (const [node, at] of [[nodes[i % 2], id], [steady, alike]]) {
      await ask(node, `/v1/sessions/${at}/append`, say('Who are you?'));
      said.push((await ask(node, `/v1/sessions/${at}/generate`, greedy)).choices[0].message.content);
    }
    assert.equal(said[0], said[1]);
  }
  assert.equal((await nodes[0].fetch(`/v1/sessions/${id}`, { method: 'DELETE' })).status, 200);
  await refused(await nodes[1].fetch(`/v1/sessions/${id}`), 404);
}

it('sessions go on at another node by S3 and by WebDAV', async (t) => {
  const redis = await Redis.start(t);
  const endpoint = await startS3(t);
  const dav = await startDav(t);
  const steady = await start(t, demo);
  for (const [url, env] of [['s3://bucket/prod', { ...credentials, AWS_ENDPOINT_URL: endpoint }], [dav.url(dav.port), {}]]) {
    const flags = [...demo, '--shared-store', url, '--session-leases', redis.url];
    await goOn([await start(t, flags, env), await start(t, flags, env)], steady);
  }
});

// Each fault in turn, by chance in the store or in Redis, while a client goes on with its session at any of two nodes.
it('no acknowledged turn is lost, and no wrong one is shown, whatever the store and Redis answer', async (t) => {
  const faults = Number(process.env.CHASQUI_STORE_FAULTS ?? 12);
  const redis = await Redis.start(t);
  const dav = await startDav(t);
  const store = await ToxicProxy.start(t, { host: '127.0.0.1', port: dav.port });
  const leases = await ToxicProxy.start(t, { host: '127.0.0.1', port: redis.port });
  const flags = [...sim, '-c', '200000', '--shared-store', dav.url(store.port), '--session-leases',
    `redis://127.0.0.1:${leases.port}`, '--shared-store-timeout', '1'];
  const nodes = [await start(t, flags), await start(t, flags)];
  const draw = random(5);
  const { id } = await ask(nodes[0], '/v1/sessions', { messages: user('Hello.') });
  let [least, most, acknowledged, failed] = [1, 1, 0, 0];
  const show = async (node = draw.of(nodes)) => (await (await node.fetch(`/v1/sessions/${id}`)).json()).messages;
  const check = (known) => {
    if (known === undefined) return;
    assert.ok(known >= least && known <= most, `${known} messages, not ${least} to ${most}`);
    least = known;
  };
  const takeTurn = async () => {
    const response = await post(draw.of(nodes), `/v1/sessions/${id}/append`, say('Go on.'));
    const said = await response.json();
    ++most;
    if (response.status === 200) ++least;
    else assert.ok([409, 503].includes(response.status), JSON.stringify(said));
    assert.doesNotMatch(JSON.stringify(said), /127\.0\.0\.1|redis:|http:|dav/, 'clients do not learn where the store is');
    response.status === 200 ? ++acknowledged : ++failed;
    check(await show());
  };
  for (let i = 0; i < faults; ++i) {
    const which = draw.of([store, leases]);
    which.mode = draw.of(ToxicProxy.modes.filter((mode) => mode !== 'pass'));
    const streams = nodes.map((node) => streamChat(node, user('A story.'), { max_tokens: 50, ignore_eos: true }));
    await takeTurn();
    for (const stream of await Promise.all(streams)) assert.equal((await stream.collect()).finish, 'length');
    which.mode = 'pass';
    for (let turn = 0; turn < 3; ++turn) await takeTurn();
  }
  // After a call that hung, a node does not ask Redis for a second.
  for (const node of nodes) {
    let known;
    do known = await show(node); while (known === undefined);
    check(known);
  }
  for (const node of nodes) await ask(node, `/v1/sessions/${id}/append`, say('The end.'));
  t.diagnostic(`${faults} faults, ${acknowledged} turns acknowledged, ${failed} refused`);
  assert.ok(acknowledged > 0 && failed > 0);
});
