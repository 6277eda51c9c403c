// POST /v1/sessions/{id}/move: an answer stops at a token of one node and goes on at another one; a client that comes
// back with its request and Last-Event-ID reads one stream without a gap. CHASQUI_MOVES says how many moves,
// CHASQUI_FLEET_MODEL names a test model, such as 0.5b-q4_0, in place of the simulated one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';

import { ask, post, refused } from '../e2e/client.mjs';
import { random } from '../e2e/random.mjs';
import { askAdmin, demo, sim, start, testModel } from '../e2e/server.mjs';
import { RefusingStore, startDav } from './object_stores.mjs';
import { Redis } from './redis.mjs';

const model = process.env.CHASQUI_FLEET_MODEL;
const engine = model ? ['-m', testModel(model)] : [...sim, '--sim-step', '2'];
// About 1,200 tokens where there is a model that computes them.
const begins = model ? 'The runner of the Andes carries a knotted cord from one post to the next. '.repeat(64) : 'You carry messages.';
const say = (content) => ({ message: { role: 'user', content } });

async function shared(t) {
  const redis = await Redis.start(t);
  const store = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-shared-'));
  t.after(() => fs.rmSync(store, { recursive: true, force: true, maxRetries: 20 }));
  return ['--shared-store', store, '--session-leases', redis.url, '--alias', 'model'];
}

const roomy = ['-np', '2', '-c', '20000'];

// Long enough for the demo model, which takes a millisecond for a token, not to end while it is to move.
const names = { type: 'array', items: { type: 'string', minLength: 8, maxLength: 12 }, minItems: 40, maxItems: 40 };
const namesBody = {
  max_tokens: 900, temperature: 0,
  response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object', properties: { names }, required: ['names'] } } },
};

// The answer of a session, read across connections: what each event said, and the id of the last one.
class Reading {
  constructor(id, body) {
    Object.assign(this, { id, body: { stream: true, ...body }, last: 0, data: [], text: '', done: false });
  }

  async connect(server) {
    const headers = { 'x-conversation-id': `talk-${this.id}`, ...(this.last > 0 && { 'last-event-id': `${this.last}` }) };
    const response = await post(server, `/v1/sessions/${this.id}/generate`, this.body, { headers });
    assert.equal(response.status, 200, await (response.status === 200 ? '' : response.text()));
    this.reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    this.rest = '';
  }

  // The next event; undefined at the end of the connection.
  async next() {
    for (;;) {
      const end = this.rest.indexOf('\n\n');
      if (end >= 0) {
        const event = this.rest.slice(0, end);
        this.rest = this.rest.slice(end + 2);
        if (event.startsWith(':')) continue;
        const [, data, id] = /^data: (.*)\nid: (\d+)$/.exec(event) ?? assert.fail(`no event: ${event}`);
        assert.ok(Number(id) > this.last, 'ids grow');
        this.last = Number(id);
        this.data.push(data);
        if (data === '[DONE]') this.done = true;
        else this.text += JSON.parse(data).choices[0]?.delta?.content ?? JSON.parse(data).choices[0]?.text ?? '';
        return data;
      }
      const { value, done } = await this.reader.read().catch(() => ({ done: true }));
      if (done) return undefined;
      this.rest += value;
    }
  }

  // Until the connection ends, which is not the end of the answer.
  async cut() {
    while (await this.next()) /* what was on its way */;
    assert.ok(!this.done, 'the answer has ended before it was moved');
  }
}

async function question(server, content) {
  const { id } = await ask(server, '/v1/sessions', { messages: [{ role: 'system', content: begins }] });
  await ask(server, `/v1/sessions/${id}/append`, say(content));
  return id;
}

describe('an answer that moves', () => {
  it('is the same as one that stays', async (t) => {
    const moves = Number(process.env.CHASQUI_MOVES ?? 24);
    const flags = await shared(t);
    const nodes = [await start(t, [...engine, ...roomy, ...flags]), await start(t, [...engine, ...roomy, ...flags])];
    const steady = await start(t, [...engine, ...roomy, '--alias', 'model']);
    const draw = random(3);
    const longest = [];
    for (let moved = 0, round = 0; moved < moves; ++round) {
      const sampled = round % 3 === 2;
      const body = { max_tokens: 300, ignore_eos: true, temperature: sampled ? 1 : 0, seed: 11 };
      const content = `Tell me story ${round}.`;
      const alike = await question(steady, content);
      const whole = (await ask(steady, `/v1/sessions/${alike}/generate`, body)).choices[0].message.content;
      let at = round % 2;
      const reading = new Reading(await question(nodes[at], content), body);
      await reading.connect(nodes[at]);
      for (const stops = [1 + draw.below(20), 25 + draw.below(20), 60 + draw.below(30)]; !reading.done;) {
        if (reading.data.length < (stops[0] ?? Infinity)) {
          assert.ok(await reading.next(), 'the stream is cut without a move');
          continue;
        }
        stops.shift();
        const began = performance.now();
        const said = await ask(nodes[at], `/v1/sessions/${reading.id}/move`, {});
        assert.equal(said.stream, `talk-${reading.id}`);
        await reading.cut();
        at = 1 - at;
        await reading.connect(nodes[at]);
        assert.ok(await reading.next());
        longest.push(performance.now() - began);
        ++moved;
      }
      // A model may round a row otherwise beside other rows, which decides between tokens that are as likely.
      if (!model) assert.equal(reading.text, whole);
      const ids = new Set(reading.data.slice(0, -1).map((data) => JSON.parse(data).id));
      assert.equal(ids.size, 1, 'one answer to the client');
      const [here, there] = await Promise.all([[nodes[at], reading.id], [steady, alike]].map(async ([server, id]) =>
        (await server.fetch(`/v1/sessions/${id}`)).json()));
      assert.equal(here.tokens, there.tokens);
      assert.equal(here.messages, there.messages);
    }
    t.diagnostic(`${longest.length} moves, pauses of at most ${Math.round(Math.max(...longest))} ms`);
    const { text } = await nodes[0].metrics();
    assert.match(text, /^chasqui_session_answers_moved_total [1-9]/m);
  });

  it('goes on however much of it was told', async (t) => {
    const flags = await shared(t);
    const nodes = [await start(t, [...sim, ...roomy, ...flags]), await start(t, [...sim, ...roomy, ...flags])];
    const steady = await start(t, [...sim, ...roomy, '--alias', 'model']);
    const body = { max_tokens: 3000, ignore_eos: true, temperature: 0 };
    const alike = await question(steady, 'Tell me a long story.');
    const whole = (await ask(steady, `/v1/sessions/${alike}/generate`, body)).choices[0].message.content;
    const reading = new Reading(await question(nodes[0], 'Tell me a long story.'), body);
    await reading.connect(nodes[0]);
    for (const [at, node] of [[1000, nodes[0]], [1500, nodes[1]], [2000, nodes[0]]]) {
      while (reading.data.length < at) assert.ok(await reading.next());
      await ask(node, `/v1/sessions/${reading.id}/move`, {});
      await reading.cut();
      await reading.connect(node === nodes[0] ? nodes[1] : nodes[0]);
    }
    while (!reading.done) assert.ok(await reading.next(), 'the stream is cut without a move');
    assert.equal(reading.text, whole);
  });

  it('keeps to its schema', async (t) => {
    const flags = await shared(t);
    const nodes = [await start(t, [...demo, ...flags]), await start(t, [...demo, ...flags])];
    const steady = await start(t, [...demo, '--alias', 'model']);
    const body = namesBody;
    const alike = await question(steady, 'Who?');
    const whole = (await ask(steady, `/v1/sessions/${alike}/generate`, body)).choices[0].message.content;
    const reading = new Reading(await question(nodes[0], 'Who?'), body);
    await reading.connect(nodes[0]);
    for (let i = 0; i < 9; ++i) assert.ok(await reading.next());
    await ask(nodes[0], `/v1/sessions/${reading.id}/move`, {});
    await reading.cut();
    await reading.connect(nodes[1]);
    while (await reading.next()) /* to the end */;
    assert.ok(reading.done);
    assert.equal(reading.text, whole);
    assert.equal(JSON.parse(reading.text).names.length, 40);
  });

  it('goes on elsewhere when its node drains', async (t) => {
    const flags = await shared(t);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-admin-'));
    t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
    const admin = path.join(folder, 'admin.sock');
    const [leaving, other] = [await start(t, [...engine, ...roomy, ...flags, '--admin-listen', admin]), await start(t, [...engine, ...roomy, ...flags])];
    const steady = await start(t, [...engine, ...roomy, '--alias', 'model']);
    const body = { max_tokens: 400, ignore_eos: true, temperature: 0 };
    const alike = await question(steady, 'Go on.');
    const whole = (await ask(steady, `/v1/sessions/${alike}/generate`, body)).choices[0].message.content;
    const terminate = () => {
      leaving.signal('SIGTERM');
      return leaving.ended;
    };
    for (const end of [() => askAdmin(`unix:${admin}`, 'POST', '/drain'), terminate]) {
      const reading = new Reading(await question(other, 'Go on.'), body);
      await ask(other, `/v1/sessions/${reading.id}/move`, {});
      await askAdmin(`unix:${admin}`, 'DELETE', '/drain');
      await reading.connect(leaving);
      for (let i = 0; i < 9; ++i) assert.ok(await reading.next());
      const ended = end();
      await reading.cut();
      await reading.connect(other);
      while (await reading.next()) /* to the end */;
      assert.ok(reading.done);
      assert.equal(reading.text, whole);
      await ended;
    }
  });

  it('is refused where it cannot be', async (t) => {
    const flags = await shared(t);
    const [node, alone] = [await start(t, [...engine, ...flags]), await start(t, engine)];
    const id = await question(node, 'Go on.');
    assert.equal((await ask(node, `/v1/sessions/${id}/move`, {})).id, id, 'an idle one is let go');
    assert.equal((await (await node.fetch(`/v1/sessions/${id}`)).json()).messages, 2, 'and comes back');
    const plain = await post(node, `/v1/sessions/${id}/generate`, { stream: true, ignore_eos: true, max_tokens: 4000 });
    await refused(await post(node, `/v1/sessions/${id}/move`, {}), 409);
    await plain.body.cancel();
    await refused(await post(node, '/v1/sessions/sess_0123456789/move', {}), 404);
    const here = await question(alone, 'Go on.');
    await refused(await post(alone, `/v1/sessions/${here}/move`, {}), 501);
  });
});

// What the store refuses: all that is written; the state of an answer, which comes when the answer has stopped.
const isWritten = (method) => method === 'PUT' || method === 'MKCOL';
const isAnswer = (method, path) => method === 'PUT' && /\/answers\/sess_[^/]+\/0*[1-9a-f]/.test(path);

describe('an answer that the store does not take', () => {
  async function nodeOn(t, engine, more = []) {
    const [redis, dav] = [await Redis.start(t), await startDav(t)];
    const store = await RefusingStore.start(t, dav.port);
    const flags = ['--shared-store', dav.url(store.port), '--session-leases', redis.url, '--alias', 'model',
      '--shared-store-timeout', '1'];
    return { store, redis, node: await start(t, [...engine, ...flags, ...more]) };
  }
  async function begun(server, content, body) {
    const reading = new Reading(await question(server, content), body);
    await reading.connect(server);
    for (let i = 0; i < 9; ++i) assert.ok(await reading.next());
    return reading;
  }
  async function toItsEnd(reading, whole) {
    while (await reading.next()) /* to the end */;
    assert.ok(reading.done, `the stream is cut: ${reading.data.at(-1)}`);
    assert.equal(reading.text, whole);
  }
  async function answered(server, content, body) {
    const id = await question(server, content);
    return (await ask(server, `/v1/sessions/${id}/generate`, body)).choices[0].message.content;
  }

  it('goes on where it is, and the move is refused', async (t) => {
    const { store, node } = await nodeOn(t, [...sim, '--sim-step', '5', ...roomy]);
    const steady = await start(t, [...sim, ...roomy, '--alias', 'model']);
    const body = { max_tokens: 300, ignore_eos: true, temperature: 1, seed: 5 };
    const whole = await answered(steady, 'Go on.', body);
    for (const [refuses, status] of [
      [(method) => (isWritten(method) ? 507 : undefined), 507],
      [() => 0, 503],
      [(method, path) => (isAnswer(method, path) ? 507 : undefined), 507],
      [(method, path) => (isAnswer(method, path) ? 0 : undefined), 503],
    ]) {
      const reading = await begun(node, 'Go on.', body);
      store.refuses = refuses;
      const said = await refused(await post(node, `/v1/sessions/${reading.id}/move`, {}), status);
      assert.match(said.message, /goes on here/);
      assert.doesNotMatch(said.message, /127\.0\.0\.1|dav:|http:/);
      store.refuses = () => undefined;
      await toItsEnd(reading, whole);
      const kept = await (await node.fetch(`/v1/sessions/${reading.id}`)).json();
      assert.deepEqual([kept.state, kept.messages], ['idle', 3]);
      await ask(node, `/v1/sessions/${reading.id}/append`, say('And then?'));
      assert.equal((await node.fetch(`/v1/sessions/${reading.id}`, { method: 'DELETE' })).status, 200);
    }
    const { text } = await node.metrics();
    assert.match(text, /^chasqui_session_answers_not_moved_total 4/m);
  });

  it('keeps to its schema where it is', async (t) => {
    const { store, node } = await nodeOn(t, demo);
    const steady = await start(t, [...demo, '--alias', 'model']);
    const body = namesBody;
    const whole = await answered(steady, 'Who?', body);
    const reading = await begun(node, 'Who?', body);
    store.refuses = (method, path) => (isAnswer(method, path) ? 507 : undefined);
    await refused(await post(node, `/v1/sessions/${reading.id}/move`, {}), 507);
    await toItsEnd(reading, whole);
  });

  it('goes on to its end when its node drains or ends', async (t) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-admin-'));
    t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
    const admin = path.join(folder, 'admin.sock');
    const { store, node } = await nodeOn(t, [...sim, '--sim-step', '5', ...roomy], ['--admin-listen', admin]);
    const steady = await start(t, [...sim, ...roomy, '--alias', 'model']);
    const body = { max_tokens: 300, ignore_eos: true, temperature: 0 };
    const whole = await answered(steady, 'Go on.', body);
    const drain = () => askAdmin(`unix:${admin}`, 'POST', '/drain');
    const terminate = () => node.signal('SIGTERM');
    const all = (method) => (isWritten(method) ? 507 : undefined);
    const late = (method, path) => (isAnswer(method, path) ? 507 : undefined);
    for (const [end, refuses] of [[drain, all], [drain, late], [terminate, late]]) {
      const reading = await begun(node, 'Go on.', body);
      store.seen = [];
      store.refuses = refuses;
      await end();
      while (!store.seen.some((each) => each.startsWith('PUT') && each.includes('/answers/'))) assert.ok(await reading.next());
      store.refuses = refuses === all ? (method, path) => (path.includes('/answers/') ? 507 : undefined) : refuses;
      await toItsEnd(reading, whole);
      if (end === drain) await askAdmin(`unix:${admin}`, 'DELETE', '/drain');
    }
    assert.equal((await node.ended).code ?? 0, 0);
  });
});
