// Hot swap: another file in the place of a model's, or POST /models/load with a path, while requests go on.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, stream } from './client.mjs';
import { folder } from './frames.mjs';
import { models, readHead } from './gguf.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const good = fs.readFileSync(path.join(models, 'chasqui-demo.gguf'));

// The demo model, and models that are like it but say something else: one without its first layer's attention, one in
// which a token has another text.
function withoutAttention() {
  const { tensors, end } = readHead(good);
  const at = (name) => {
    const { sizes, dimensions } = tensors[name];
    return Math.ceil(end / 32) * 32 + Number(good.readBigUInt64LE(sizes + 8 * dimensions + 4));
  };
  return Buffer.from(good).fill(0, at('blk.0.attn_norm.weight'), at('blk.0.ffn_norm.weight'));
}

function withAnotherToken() {
  const bytes = Buffer.from(good);
  bytes.write('assistanu', good.indexOf('assistant'), 'latin1');
  return bytes;
}

const versions = [good, withoutAttention()];
const other = withAnotherToken();
const broken = good.subarray(0, good.length - 4096);

// As a careful person replaces a file: never into the one that is mapped.
let written = 0;
function put(file, bytes) {
  const beside = `${file}.${++written}`;
  fs.writeFileSync(beside, bytes);
  fs.renameSync(beside, file);
}

const small = [...demo, '-np', '4', '-c', '2048'];
const load = async (server, body = {}) => {
  const response = await post(server, '/models/load', body, server.key ? { headers: { authorization: `Bearer ${server.key}` } } : {});
  return [response.status, await response.json()];
};
const done = [200, { success: true }];
const greedy = { temperature: 0, max_tokens: 16, messages: [{ role: 'user', content: 'What is Chasqui?' }] };
const said = async (server, more = {}) => (await ask(server, '/v1/chat/completions', { ...greedy, ...more })).choices[0].message.content;
const gone = (server) => server.until((now) => now.sum('chasqui_model_versions_leaving') === 0, 'the versions before have gone');
const left = (server, times) => server.until(
  () => server.stderr.split('the version before of a model has gone').length > times, `${times} versions have gone`);

// A server of one model, which stays loaded, and its file.
async function one(context, flags = [], bytes = good) {
  const file = path.join(fs.realpathSync(await folder(context)), 'model.gguf');
  put(file, bytes);
  return [await start(context, [...small, '-m', file, ...flags]), file];
}

// What each version says when it is alone.
async function answers(context) {
  const out = [];
  for (const bytes of versions) {
    const [server] = await one(context, [], bytes);
    out.push(await said(server));
    await server.stop();
  }
  assert.notEqual(out[0], out[1]);
  return out;
}

describe('a model file that is replaced', () => {
  it('serves after POST /models/load, twenty times under load: no request is lost, each answer is of one version', async (t) => {
    const words = await answers(t);
    const [server, file] = await one(t);
    let ended = false;
    const heard = [0, 0];
    const client = async (streams) => {
      while (!ended) {
        const text = streams
          ? (await (await stream(server, '/v1/chat/completions', greedy)).collect()).text
          : await said(server);
        assert.ok(words.includes(text), `neither version says "${text}"`);
        ++heard[words.indexOf(text)];
      }
    };
    const clients = [false, true, false, true, false, true].map(client);
    for (let i = 1; i <= 20; ++i) {
      put(file, versions[i % 2]);
      assert.deepEqual(await load(server), done);
      assert.equal(await said(server), words[i % 2], 'a request that comes later gets the new one');
    }
    ended = true;
    await Promise.all(clients);
    assert.ok(heard[0] > 0 && heard[1] > 0);
    await left(server, 20);
    const metrics = await gone(server);
    assert.equal(metrics.sum('chasqui_model_swaps_total'), 20);
    assert.equal(metrics.sum('chasqui_model_swap_failures_total'), 0);
    // What was counted stays so when versions go.
    assert.ok(metrics.sum('chasqui_requests_finished_total') >= heard[0] + heard[1] + 20);
  });

  it('lets a stream that runs end with the version that it began with', async (t) => {
    const [server, file] = await one(t);
    const whole = await said(server, { max_tokens: 200, ignore_eos: true });
    const running = await stream(server, '/v1/chat/completions', { ...greedy, max_tokens: 200, ignore_eos: true });
    let text = await running.nextText();
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    assert.equal((await server.metrics()).sum('chasqui_model_swaps_total'), 1);
    text = (await running.collect()).text;
    assert.equal(text, whole);
    await left(server, 1);
  });

  it('is not used before that, and refused when it is the same', async (t) => {
    const [server, file] = await one(t);
    const before = await said(server);
    assert.deepEqual([(await load(server))[0], (await load(server, { model: 'model' }))[0]], [409, 409]);
    put(file, versions[1]);
    assert.equal(await said(server), before);
    assert.deepEqual(await load(server), done);
    assert.notEqual(await said(server), before);
  });

  it('changes nothing when it is broken, and the answer says why', async (t) => {
    const [server, file] = await one(t);
    const before = await said(server);
    for (const bytes of [broken, Buffer.from('no model'), Buffer.alloc(0)]) {
      put(file, bytes);
      const [status, { error }] = await load(server);
      assert.ok(status >= 400 && status < 600 && status !== 409, `${status}`);
      assert.match(error.message, /model\.gguf/);
      assert.ok(!error.message.includes(path.dirname(file)), 'the folder is not shown');
      assert.equal(await said(server), before);
    }
    const metrics = await server.metrics();
    assert.equal(metrics.sum('chasqui_model_swap_failures_total'), 3);
    assert.equal(metrics.sum('chasqui_model_swaps_total'), 0);
    const { data } = await (await server.fetch('/v1/models')).json();
    assert.equal(data[0].status.value, 'loaded');
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    assert.notEqual(await said(server), before);
  });

  it('is loaded once when two ask at once', async (t) => {
    const [server, file] = await one(t);
    put(file, versions[1]);
    const told = await Promise.all([load(server), load(server)]);
    assert.deepEqual(told.map(([status]) => status).sort(), [200, 409]);
    assert.equal((await server.metrics()).sum('chasqui_model_swaps_total'), 1);
  });

  it('never uses what was computed with the weights before', async (t) => {
    const [server, file] = await one(t);
    const long = { prompt: 'Chasqui is '.repeat(40), max_tokens: 8, temperature: 0 };
    const cached = async () => {
      const { usage, choices } = await ask(server, '/v1/completions', long);
      return [usage.prompt_tokens_details.cached_tokens, choices[0].text];
    };
    await cached();
    assert.ok((await cached())[0] > 0);
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    const [reused, text] = await cached();
    assert.equal(reused, 0);
    const [alone] = await one(t, [], versions[1]);
    assert.equal((await ask(alone, '/v1/completions', long)).choices[0].text, text);
  });
});

describe('sessions of a model that is replaced', () => {
  const open = (server, body) => ask(server, '/v1/sessions', body);
  const generate = (server, id) => ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 8, temperature: 0 });

  it('go on with their exact tokens, which the new version reads again', async (t) => {
    const dir = await folder(t);
    const [server, file] = await one(t, ['--session-dir', dir]);
    const { id } = await open(server, { prompt: 'What is' });
    await generate(server, id);
    const { tokens } = await (await server.fetch(`/v1/sessions/${id}`)).json();
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    await left(server, 1);
    assert.equal((await (await server.fetch(`/v1/sessions/${id}`)).json()).tokens, tokens);
    await generate(server, id);
    const fork = await (await post(server, `/v1/sessions/${id}/fork`, '')).json();
    assert.equal((await (await server.fetch(`/v1/sessions/${fork.id}`)).json()).state, 'idle');
    const last = await (await server.fetch(`/v1/sessions/${id}`)).json();
    await server.stop();
    const again = await start(t, [...small, '-m', file, '--session-dir', dir]);
    assert.equal((await (await again.fetch(`/v1/sessions/${id}`)).json()).tokens, last.tokens);
    await generate(again, id);
  });

  it('can be cancelled while their generation runs on the version before', async (t) => {
    const [server, file] = await one(t, ['-np', '2', '-c', '16384']);
    const { id } = await open(server, { prompt: 'What is' });
    const running = await stream(server, `/v1/sessions/${id}/generate`, { max_tokens: 7000, ignore_eos: true });
    await running.nextText();
    const read = running.collect(); // from now on, so that it is not cut as unread
    read.catch(() => {});
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    assert.equal((await post(server, `/v1/sessions/${id}/generate`, { max_tokens: 1 })).status, 409);
    assert.equal((await post(server, `/v1/sessions/${id}/cancel`, '')).status, 200);
    await read;
    await left(server, 1);
    await generate(server, id);
  });

  it('say so when the vocabulary is another one, and go on when theirs is back', async (t) => {
    const [server, file] = await one(t);
    const { id } = await open(server, { prompt: 'What is' });
    put(file, other);
    assert.deepEqual(await load(server), done);
    for (const [what, body] of [['generate', { max_tokens: 1 }], ['append', { prompt: 'x' }], ['fork', {}]]) {
      const response = await post(server, `/v1/sessions/${id}/${what}`, body);
      assert.equal(response.status, 409, what);
      assert.match((await response.json()).error.message, /another vocabulary/);
    }
    assert.equal((await (await server.fetch(`/v1/sessions/${id}`)).json()).id, id);
    const { id: fresh } = await open(server, { prompt: 'What is' });
    await generate(server, fresh);
    put(file, good);
    assert.deepEqual(await load(server), done);
    await generate(server, id);
    assert.equal((await server.fetch(`/v1/sessions/${fresh}`, { method: 'DELETE' })).status, 200);
  });
});

describe('a version for which there is no room beside the other', () => {
  const long = ['-np', '2', '-c', '8192']; // for an answer that takes longer than looking at a file

  it('is loaded when that has ended its requests, and the others wait and are told', async (t) => {
    const [first, file] = await one(t, long);
    const { data } = await (await first.fetch('/v1/models')).json();
    const limit = String(Math.round(1.5 * data[0].memory_bytes));
    await first.stop();
    const server = await start(t, [...small, ...long, '-m', file, '--models-memory', limit, '--sse-ping-interval', '0.05']);
    const before = await said(server);
    const running = await stream(server, '/v1/chat/completions', { ...greedy, max_tokens: 3000, ignore_eos: true });
    await running.nextText();
    const read = running.collect();
    read.catch(() => {});
    put(file, versions[1]);
    const told = load(server);
    await server.until(async () => (await (await server.fetch('/v1/models')).json()).data[0].status.value === 'draining');
    const waiting = [said(server), stream(server, '/v1/chat/completions', greedy).then((one) => one.collect()).then((one) => one.text)];
    await read;
    assert.deepEqual(await told, done);
    const texts = await Promise.all(waiting);
    assert.equal(texts[0], texts[1]);
    assert.notEqual(texts[0], before);
    await left(server, 1);
  });
});

describe('a model of a folder', () => {
  const two = async (context, flags = []) => {
    const dir = fs.realpathSync(await folder(context));
    for (const name of ['a', 'b']) put(path.join(dir, `${name}.gguf`), good);
    return [await start(context, [...small, '--models-dir', dir, ...flags]), dir];
  };
  const states = async (server) => Object.fromEntries((await (await server.fetch('/v1/models')).json()).data.map(({ id, status }) => [id, status.value]));
  const becomes = (server, wanted) => server.until(async () => Object.entries(wanted).every(async ([id, value]) => (await states(server))[id] === value));

  it('is replaced alone', async (t) => {
    const [server, dir] = await two(t);
    const before = await said(server, { model: 'a' });
    assert.equal(await said(server, { model: 'b' }), before);
    put(path.join(dir, 'b.gguf'), versions[1]);
    assert.deepEqual(await load(server, { model: 'b' }), done);
    assert.notEqual(await said(server, { model: 'b' }), before);
    assert.equal(await said(server, { model: 'a' }), before);
    assert.equal((await load(server, { model: 'a' }))[0], 409);
    const metrics = await server.metrics();
    assert.equal(metrics.sum('chasqui_requests_finished_total', { model: 'b' }), 2);
  });

  it('that was unloaded comes back with the file that is there then, and its sessions go on', async (t) => {
    const [server, dir] = await two(t);
    const before = await said(server, { model: 'b' });
    const { id } = await ask(server, '/v1/sessions', { model: 'b', prompt: 'What is' });
    assert.equal((await post(server, '/models/unload', { model: 'b' })).status, 200);
    await server.until(async () => (await states(server)).b === 'unloaded');
    put(path.join(dir, 'b.gguf'), versions[1]);
    assert.notEqual(await said(server, { model: 'b' }), before);
    assert.equal((await ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 2 })).model, 'b');
    assert.equal((await server.metrics()).sum('chasqui_model_swaps_total'), 1);
  });
});

describe('POST /models/load with a path', () => {
  it('serves another file under the same name, for administrators of servers with keys', async (t) => {
    const [server, file] = await one(t, ['--api-key', 'root']);
    server.key = 'root';
    const auth = { headers: { authorization: 'Bearer root' } };
    const says = async () => (await ask(server, '/v1/chat/completions', greedy, auth)).choices[0].message.content;
    const before = await says();
    const second = `${file}.second`;
    fs.writeFileSync(second, versions[1]);
    for (const wrong of [path.dirname(file), '/nowhere.gguf', '']) {
      assert.ok((await load(server, { path: wrong }))[0] >= 400);
    }
    assert.equal(await says(), before);
    assert.deepEqual(await load(server, { path: second }), done);
    assert.notEqual(await says(), before);
    const { data } = await (await server.fetch('/v1/models', auth)).json();
    assert.equal(data.length, 1);
    assert.deepEqual(await load(server, { path: file }), done);
    assert.equal(await says(), before);
  });

  it('is refused where there are no keys', async (t) => {
    const server = await start(t, sim);
    const [status, { error }] = await load(server, { path: '/etc/passwd' });
    assert.deepEqual([status, error.param], [403, 'path']);
  });
});

describe('the disk cache of a model that is replaced', () => {
  it('belongs to the version that serves', async (t) => {
    const dir = await folder(t);
    const [server, file] = await one(t, ['--cache-disk', dir, '--slot-save-path', dir]);
    const long = { prompt: 'Chasqui is '.repeat(60), max_tokens: 4, temperature: 0, id_slot: 0, cache_prompt: true };
    await ask(server, '/completion', long);
    assert.equal((await post(server, '/slots/0?action=save', { filename: 'kept' })).status, 200);
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    assert.equal((await ask(server, '/completion', long)).tokens_cached >= 0, true);
    assert.equal((await post(server, '/slots/0?action=restore', { filename: 'kept' })).status, 400, 'of the weights before');
    assert.equal((await post(server, '/slots/0?action=save', { filename: 'kept' })).status, 200);
    assert.equal((await post(server, '/slots/0?action=restore', { filename: 'kept' })).status, 200);
    await left(server, 1);
    assert.equal((await post(server, '/slots/0?action=erase', '')).status, 200);
  });
});

// The drain waits for the handler of the order, and the order for a version that goes.
describe('a server that is told to end while a model is replaced', () => {
  it('ends after its drain time, and the order is told so', async (t) => {
    const [server, file] = await one(t, ['--drain-time', '1', '--request-timeout', '60', '-c', '40000']);
    const running = await stream(server, '/v1/chat/completions', { ...greedy, max_tokens: 9000, ignore_eos: true });
    await running.nextText();
    const read = running.collect().catch(() => {}); // it is cut at the end of the drain time
    put(file, versions[1]);
    assert.deepEqual(await load(server), done);
    put(file, versions[0]);
    const told = load(server); // it waits for the version of the stream
    await server.until((now) => now.sum('chasqui_http_connections_open') >= 3, 'the order has come');
    server.signal('SIGTERM');
    assert.equal((await told)[0], 503);
    await read;
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

describe('a server that is killed while it replaces a model', { skip: process.platform !== 'linux' && '/proc is needed' }, () => {
  const childOf = (pid) => Number(fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);

  it('is back, and so are the sessions of the other models', async (t) => {
    const dir = fs.realpathSync(await folder(t));
    for (const name of ['a', 'b']) put(path.join(dir, `${name}.gguf`), good);
    const kept = await folder(t);
    const server = await start(t, [...small, '--supervise', '--models-dir', dir, '--session-dir', kept]);
    const { id } = await ask(server, '/v1/sessions', { model: 'a', prompt: 'What is' });
    await said(server, { model: 'b' });
    put(path.join(dir, 'b.gguf'), versions[1]);
    const old = childOf(server.pid);
    const told = load(server, { model: 'b' }).catch((error) => error);
    await server.says(/looking at another version of a model/);
    process.kill(old, 'SIGKILL');
    await told;
    const late = Date.now() + 60_000;
    for (;;) {
      const session = await fetch(`${server.url}/v1/sessions/${id}`).then((answer) => answer.json(), () => undefined);
      if (session?.id === id) break;
      assert.ok(Date.now() < late, 'the server does not come back');
    }
    await ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 2 });
    const [alone] = await one(t, [], versions[1]);
    assert.equal(await said(server, { model: 'b' }), await said(alone), 'the file that is there now');
  });
});
