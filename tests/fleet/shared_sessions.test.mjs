// --shared-store and --session-leases: a session goes on at any node that names the same store, whatever has become of
// the node that had it, and no acknowledged turn is lost.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';

import { ask, post, refused, streamChat, user } from '../e2e/client.mjs';
import { random } from '../e2e/random.mjs';
import { demo, run, sim, start } from '../e2e/server.mjs';
import { Redis } from './redis.mjs';

const greedy = { temperature: 0, max_tokens: 24 };
const long = 'The chasquis ran from post to post with knotted cords, and each of them knew his part of the road by heart. '.repeat(4);
const open = (server, body, options) => ask(server, '/v1/sessions', body, options);
const command = (server, id, what, body = {}, options) => ask(server, `/v1/sessions/${id}/${what}`, body, options);
const say = (content) => ({ message: { role: 'user', content } });
const show = async (server, id, options) => {
  const response = await server.fetch(`/v1/sessions/${id}`, options);
  return response.status === 200 ? response.json() : response.status;
};

function folder(t) {
  const name = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-shared-'));
  t.after(() => fs.rmSync(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

async function shared(t, more = []) {
  const redis = await Redis.start(t);
  const store = folder(t);
  const flags = ['--shared-store', store, '--session-leases', redis.url, '--shared-store-timeout', '2', ...more];
  return { redis, store, flags };
}

async function turn(server, id, question, options) {
  await command(server, id, 'append', say(question), options);
  const { choices, usage } = await command(server, id, 'generate', greedy, options);
  return { text: choices[0].message.content, cached: usage.prompt_tokens_details.cached_tokens / usage.prompt_tokens };
}

async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
const metric = async (server, name, labels) => (await server.metrics()).value(name, labels);
const kvSaved = (server, n) => until(async () => (await metric(server, 'chasqui_session_kv_total', { result: 'saved' })) >= n);

async function killed(server) {
  server.signal('SIGKILL');
  await server.ended;
}

describe('nodes that share sessions', () => {
  it('save the slots of clients, not the sessions that they take over', async (t) => {
    const { flags } = await shared(t);
    const saves = () => ['--slot-save-path', folder(t)];
    const [a, b] = [await start(t, [...demo, ...flags, ...saves()]), await start(t, [...demo, ...flags, ...saves()])];
    await ask(b, '/completion', { prompt: `Tell me more. ${long}`, n_predict: 4, temperature: 0, id_slot: 0 });
    const saved = async () => (await ask(b, '/slots/0?action=save', { filename: 'said' })).n_saved;
    const before = await saved();
    const { id } = await open(a, { messages: [{ role: 'system', content: long }] });
    await turn(a, id, 'What is Chasqui?');
    await kvSaved(a, 1);
    assert.ok((await turn(b, id, 'Who are you?')).cached >= 0.9);
    assert.equal(await metric(b, 'chasqui_session_kv_total', { result: 'brought' }), 1);
    assert.equal(await saved(), before);
  });

  it('go on with those of a node that was killed, with what it had computed', async (t) => {
    const { flags } = await shared(t);
    const steady = await start(t, demo);
    const [a, b] = [await start(t, [...demo, ...flags]), await start(t, [...demo, ...flags])];
    const messages = [{ role: 'system', content: long }];
    const { id: alike } = await open(steady, { messages });
    const { id } = await open(a, { messages });
    assert.equal((await turn(a, id, 'What is Chasqui?')).text, (await turn(steady, alike, 'What is Chasqui?')).text);
    await kvSaved(a, 1);
    const before = await show(a, id);
    await killed(a);
    assert.deepEqual({ ...(await show(b, id)), expires_at: 0 }, { ...before, expires_at: 0 });
    const next = await turn(b, id, 'Who are you?');
    assert.equal(next.text, (await turn(steady, alike, 'Who are you?')).text);
    assert.ok(next.cached >= 0.9, `${next.cached} of the prompt were cached`);
    assert.equal(await metric(b, 'chasqui_sessions_taken_total'), 1);
  });

  it('pass them to and fro', async (t) => {
    const { flags } = await shared(t);
    const steady = await start(t, demo);
    const nodes = [await start(t, [...demo, ...flags]), await start(t, [...demo, ...flags])];
    const { id: alike } = await open(steady, { text: long });
    const { id } = await open(nodes[0], { text: long });
    for (let i = 0; i < 8; ++i) {
      const node = nodes[i % 2];
      const [here, there] = await Promise.all([command(node, id, 'generate', greedy), command(steady, alike, 'generate', greedy)]);
      assert.equal(here.choices[0].text, there.choices[0].text);
      assert.equal((await show(node, id)).tokens, (await show(steady, alike)).tokens);
    }
  });

  it('answer the first of two that want one session at once, or the second, and never mix them', async (t) => {
    const { flags } = await shared(t);
    const [a, b] = [await start(t, [...demo, ...flags]), await start(t, [...demo, ...flags])];
    const { id } = await open(a, { text: 'Once upon a time' });
    for (let i = 0; i < 10; ++i) {
      const before = (await show(a, id)).tokens;
      const both = await Promise.all([a, b].map((node) => post(node, `/v1/sessions/${id}/generate`, greedy)));
      let added = 0;
      for (const response of both) {
        const body = await response.json();
        assert.ok([200, 409].includes(response.status), JSON.stringify(body));
        if (response.status === 200) added += body.usage.completion_tokens;
      }
      assert.equal((await show(b, id)).tokens, before + added, 'what was acknowledged is there, and nothing else');
    }
  });

  it('keep tenants apart', async (t) => {
    const { flags, store } = await shared(t);
    const keys = path.join(folder(t), 'keys');
    fs.writeFileSync(keys, 'inca-key-0123456789 name=inca\nmaya-key-0123456789 name=maya\n', { mode: 0o600 });
    const [a, b] = [await start(t, [...sim, ...flags, '--api-key-file', keys]), await start(t, [...sim, ...flags, '--api-key-file', keys])];
    a.key = b.key = 'inca-key-0123456789';
    const as = (name) => ({ headers: { authorization: `Bearer ${name}-key-0123456789` } });
    const { id } = await open(a, { text: 'Mine.' }, as('inca'));
    assert.equal(await show(b, id, as('maya')), 404);
    assert.equal((await show(b, id, as('inca'))).id, id);
    await refused(await a.fetch(`/v1/sessions/${id}`, { method: 'DELETE', ...as('maya') }), 404);
    assert.equal((await a.fetch(`/v1/sessions/${id}`, { method: 'DELETE', ...as('inca') })).status, 200);
    assert.equal(await show(b, id, as('inca')), 404);
    assert.deepEqual(fs.readdirSync(store, { recursive: true }).filter((name) => name.includes(id)), []);
  });

  it('forget nothing when Redis does', async (t) => {
    const { redis, flags } = await shared(t);
    const [a, b] = [await start(t, [...demo, ...flags]), await start(t, [...demo, ...flags])];
    const { id } = await open(a, { text: 'Once upon a time' });
    for (const node of [a, b, b, a]) {
      await command(node, id, 'generate', greedy);
      const { tokens } = await show(node, id);
      await redis.command('FLUSHALL');
      assert.equal((await show(node, id)).tokens, tokens);
      await redis.command('FLUSHALL');
    }
  });

  it('refuse what they cannot know, answer all else, and go on when it is back', async (t) => {
    const { redis, flags } = await shared(t);
    const node = await start(t, [...demo, ...flags]);
    const { id } = await open(node, { text: 'Once upon a time' });
    await redis.kill();
    await refused(await post(node, `/v1/sessions/${id}/generate`, greedy), 503);
    await refused(await post(node, '/v1/sessions', { text: 'Another.' }), 503);
    await ask(node, '/v1/chat/completions', { messages: user('Hi'), ...greedy });
    await redis.begin();
    await command(node, id, 'generate', greedy);
  });

  it('miss no restart of Redis while they have nothing to ask', async (t) => {
    const { redis, flags } = await shared(t);
    const node = await start(t, [...demo, ...flags]);
    const { id } = await open(node, { text: 'Once upon a time' });
    await command(node, id, 'generate', greedy);
    await redis.kill();
    await redis.begin();
    assert.equal((await show(node, id)).state, 'idle');
    await command(node, id, 'generate', greedy);
    await open(node, { text: 'Another.' });
  });

  it('believe no object that is not what was written', async (t) => {
    const { flags, store } = await shared(t);
    const a = await start(t, [...demo, ...flags]);
    const { id } = await open(a, { text: 'Once upon a time' });
    await command(a, id, 'append', { text: ' there was a runner' });
    await killed(a);
    const objects = fs.readdirSync(path.join(store, 'sessions', id)).map((name) => path.join(store, 'sessions', id, name));
    const draw = random(7);
    for (const object of objects) {
      const bytes = fs.readFileSync(object);
      const changed = Buffer.from(bytes);
      changed[draw.below(changed.length)] ^= 1 << draw.below(8);
      fs.writeFileSync(object, changed);
      const b = await start(t, [...demo, ...flags]);
      await refused(await b.fetch(`/v1/sessions/${id}`), 503);
      fs.writeFileSync(object, bytes);
      assert.equal((await show(b, id)).id, id);
      await b.stop();
    }
  });

  it('encrypt what they keep, with one key', async (t) => {
    const key = path.join(folder(t), 'key');
    fs.writeFileSync(key, 'ab'.repeat(32), { mode: 0o600 });
    const { flags, store } = await shared(t, ['--shared-store-key', key]);
    const [a, b] = [await start(t, [...demo, ...flags]), await start(t, [...demo, ...flags])];
    const { id } = await open(a, { messages: [{ role: 'system', content: `A very secret thing. ${long}` }] });
    await turn(a, id, 'What is Chasqui?');
    await kvSaved(a, 1);
    assert.ok((await turn(b, id, 'Who are you?')).cached > 0.5);
    await kvSaved(b, 1); // in place of that of the other node
    for (const name of fs.readdirSync(store, { recursive: true })) {
      const file = path.join(store, name);
      if (fs.statSync(file).isFile()) assert.ok(!fs.readFileSync(file).includes('secret'), name);
    }
    fs.writeFileSync(key, 'cd'.repeat(32));
    const c = await start(t, [...demo, ...flags]);
    await refused(await c.fetch(`/v1/sessions/${id}`), 503);
  });

  it('say at the start what is missing', async (t) => {
    const store = folder(t);
    for (const [flags, flag] of [
      [['--shared-store', store], '--shared-store'],
      [['--session-leases', 'redis://127.0.0.1'], '--session-leases'],
      [['--shared-store', 'ftp://host/', '--session-leases', 'redis://127.0.0.1'], '--shared-store'],
      [['--shared-store', store, '--session-leases', 'http://127.0.0.1'], '--session-leases'],
      [['--shared-store', store, '--session-leases', 'redis://127.0.0.1', '--session-dir', store], '--session-dir'],
      [['--shared-store', store, '--session-leases', 'redis://127.0.0.1', '--shared-store-key', '/none'], '--shared-store'],
    ]) {
      const { code, stderr } = await run(['serve', ...sim, ...flags]);
      assert.equal(code, 2);
      assert.ok(stderr.includes(flag), stderr);
    }
  });

  // As many turns as there is time for between kills; CHASQUI_SESSION_KILLS says how many of these.
  it('lose no acknowledged turn when nodes are killed', async (t) => {
    const kills = Number(process.env.CHASQUI_SESSION_KILLS ?? 12);
    const { flags } = await shared(t);
    const launch = () => start(t, [...sim, '-c', '100000', ...flags]);
    const nodes = await Promise.all([launch(), launch(), launch()]);
    let over = false;
    let turns = 0;
    const counted = new EventEmitter();
    let failures = 0;
    const client = async (seed) => {
      const draw = random(seed);
      const at = () => draw.of(nodes);
      let id;
      let [least, most] = [0, 0]; // messages that are there
      const begin = async () => {
        do id = (await open(at(), { messages: user('Hello.') }).catch(() => ({}))).id; while (!id);
        least = most = 1;
      };
      await begin();
      // A question, and then its answer; a question again where it is not known what has become of the last command.
      for (let what = 'append'; !over;) {
        const body = what === 'append' ? say('Go on.') : { max_tokens: 4, ignore_eos: true };
        const response = await post(at(), `/v1/sessions/${id}/${what}`, body).catch(() => undefined); // the node has died
        const said = await response?.json().catch(() => undefined);
        if (response?.status === 400) await begin(); // it is as long as a session can be
        if (response?.status === 400) continue;
        ++most; // it may have come true
        if (response?.status === 200 && said) {
          ++least;
          ++turns;
          counted.emit('turn');
          what = what === 'append' ? 'generate' : 'append';
        } else {
          assert.ok(!response || !said || [409, 503].includes(response.status), JSON.stringify(said));
          ++failures;
          what = 'append';
        }
        const known = (await show(at(), id).catch(() => ({}))).messages;
        if (known === undefined) continue;
        assert.ok(known >= least && known <= most, `${known} messages, not ${least} to ${most}`);
        least = known;
      }
      let known;
      do known = (await show(at(), id).catch(() => ({}))).messages; while (known === undefined);
      assert.ok(known >= least && known <= most, `${known} messages, not ${least} to ${most}`);
    };
    const clients = Array.from({ length: 6 }, (_, i) => client(i + 1));
    const failed = Promise.all(clients).catch((error) => error);
    const draw = random(99);
    for (let i = 0; i < kills; ++i) {
      const reached = turns + 5 + draw.below(20);
      while (turns < reached && !((await Promise.race([failed, once(counted, 'turn')])) instanceof Error)) /* they go on */;
      const which = draw.below(nodes.length);
      await killed(nodes[which]);
      nodes[which] = await launch();
    }
    over = true;
    await Promise.all(clients);
    t.diagnostic(`${kills} kills, ${turns} turns acknowledged, ${failures} failed`);
    assert.ok(turns > kills);
  });

  it('let no stream wait for a store that hangs', async (t) => {
    const { flags, redis } = await shared(t);
    const node = await start(t, [...sim, ...flags]);
    const { id } = await open(node, { text: 'Once upon a time' });
    redis.child.kill('SIGSTOP');
    const asked = post(node, `/v1/sessions/${id}/generate`, greedy);
    const stream = await streamChat(node, user('Tell me a story.'), { max_tokens: 200, ignore_eos: true });
    await stream.collect();
    assert.equal(stream.finish, 'length');
    redis.child.kill('SIGCONT');
    const response = await asked;
    assert.ok([200, 503].includes(response.status));
    await response.text();
    await command(node, id, 'generate', greedy);
  });
});
