// Models that are loaded when a request asks for them: --models-dir and --models-preset.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, stream } from './client.mjs';
import { folder } from './frames.mjs';
import { askAdmin, demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const gguf = (name) => path.join(import.meta.dirname, `../../models/demo/chasqui-${name}.gguf`);
const small = [...demo, '-np', '2', '-c', '1024'];
const slow = ['--sim-step', '10'];

// A folder of models; each name is a link to a file, or its content.
async function models(context, files) {
  const made = fs.realpathSync(await folder(context));
  for (const [name, file] of Object.entries(files)) {
    if (fs.existsSync(file)) fs.symlinkSync(file, path.join(made, `${name}.gguf`));
    else fs.writeFileSync(path.join(made, `${name}.gguf`), file);
  }
  return made;
}

const three = (context) => models(context, { a: gguf('demo'), b: gguf('demo'), c: gguf('demo') });
const chat = (server, model, more = {}) =>
  ask(server, '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'What is Chasqui?' }], max_tokens: 4, ...more });

async function listed(server) {
  const { data } = await (await server.fetch('/v1/models')).json();
  return Object.fromEntries(data.map(({ id, status }) => [id, status]));
}

const states = async (server) => Object.fromEntries(Object.entries(await listed(server)).map(([id, { value }]) => [id, value]));

// Until the states are these.
const becomes = (server, wanted) => server.until(async () => {
  const now = await states(server);
  return Object.entries(wanted).every(([id, value]) => now[id] === value);
}, JSON.stringify(wanted));

const order = async (server, what, model) => {
  const response = await post(server, `/models/${what}`, { model });
  return [response.status, await response.json()];
};

describe('models of a folder', () => {
  it('are loaded when a request names them, the first one at start', async (t) => {
    const server = await start(t, [...small, '--models-dir', await three(t)]);
    assert.deepEqual(await states(server), { a: 'loaded', b: 'unloaded', c: 'unloaded' });
    assert.equal((await chat(server, 'b')).model, 'b');
    assert.equal((await chat(server)).model, 'a');
    assert.deepEqual(await states(server), { a: 'loaded', b: 'loaded', c: 'unloaded' });
    const tags = await (await server.fetch('/api/tags')).json();
    assert.deepEqual(tags.models.map(({ name }) => name), ['a', 'b', 'c']);
    const running = await (await server.fetch('/api/ps')).json();
    assert.deepEqual(running.models.map(({ name }) => name), ['a', 'b']);
    const metrics = await server.metrics();
    assert.equal(metrics.sum('chasqui_model_loads_total'), 1);
    assert.equal(metrics.sum('chasqui_requests_finished_total', { model: 'b' }), 1);
  });

  it('are loaded once for all who ask at once, while others are served', async (t) => {
    const server = await start(t, [...small, '--models-dir', await three(t)]);
    const asked = ['b', 'c', 'a', 'b', 'c', 'a', 'b'];
    const answers = await Promise.all(asked.map((model) => chat(server, model)));
    assert.deepEqual(answers.map(({ model }) => model), asked);
    assert.equal((await server.metrics()).sum('chasqui_model_loads_total'), 2);
  });

  it('say the same after they were unloaded and loaded again', async (t) => {
    const server = await start(t, [...small, '--models-dir', await three(t)]);
    const said = async () => (await chat(server, 'b', { temperature: 0, max_tokens: 16 })).choices[0].message.content;
    const before = await said();
    assert.deepEqual(await order(server, 'unload', 'b'), [200, { success: true }]);
    await becomes(server, { b: 'unloaded' });
    assert.equal(await said(), before);
    assert.deepEqual(await states(server), { a: 'loaded', b: 'loaded', c: 'unloaded' });
  });

  it('keep their sessions while they are unloaded', async (t) => {
    const server = await start(t, [...small, '--models-dir', await three(t)]);
    const { id } = await ask(server, '/v1/sessions', { model: 'b', prompt: 'What is' });
    await order(server, 'unload', 'b');
    await becomes(server, { b: 'unloaded' });
    assert.equal((await (await server.fetch(`/v1/sessions/${id}`)).json()).id, id);
    assert.equal((await states(server)).b, 'unloaded', 'a look does not load it');
    assert.equal((await ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 2 })).model, 'b');
  });
});

describe('--models-max', () => {
  it('lets the model go that was not used for the longest time', async (t) => {
    const server = await start(t, [...small, '--models-max', '2', '--models-dir', await three(t)]);
    await chat(server, 'b');
    await chat(server, 'a');
    await chat(server, 'c');
    await becomes(server, { a: 'loaded', b: 'unloaded', c: 'loaded' });
    assert.equal((await server.metrics()).sum('chasqui_model_unloads_total'), 1);
    await chat(server, 'b');
    await becomes(server, { a: 'unloaded', b: 'loaded', c: 'loaded' });
  });

  it('never lets one go that has work, and loses no request', async (t) => {
    const server = await start(t, [...sim, ...slow, '--models-max', '1', '--models-dir', await three(t)]);
    const busy = await stream(server, '/v1/completions', { model: 'a', prompt: 'x', max_tokens: 60, ignore_eos: true });
    await busy.nextText();
    const waiting = chat(server, 'b');
    assert.equal((await busy.collect()).finish, 'length');
    assert.equal((await waiting).model, 'b');
    await becomes(server, { a: 'unloaded', b: 'loaded' });
    const names = ['a', 'b', 'c'];
    const many = await Promise.all(Array.from({ length: 30 }, (_, i) => chat(server, names[i % 3])));
    assert.deepEqual(many.map(({ model }) => model), many.map((_, i) => names[i % 3]));
  });
});

describe('a model that always has work', () => {
  it('gives way to those who wait for another one', async (t) => {
    const server = await start(t, [...sim, ...slow, '--models-max', '1', '--models-dir', await three(t)]);
    const ended = new AbortController();
    const ask = async () => {
      while (!ended.signal.aborted) await chat(server, 'a', { max_tokens: 30 });
    };
    const busy = [ask(), ask(), ask()];
    assert.equal((await chat(server, 'b')).model, 'b');
    ended.abort();
    await Promise.all(busy);
  });
});

describe('a request that waits for a model', () => {
  const flags = [...sim, ...slow, '--models-max', '1'];
  const busyWith = async (server, tokens = 200) => {
    const body = { model: 'a', prompt: 'x', max_tokens: tokens, ignore_eos: true };
    const busy = await stream(server, '/v1/completions', body);
    await busy.nextText();
    return busy;
  };

  it('is answered with 503 after --queue-timeout, and the one that it waits for goes on', async (t) => {
    const server = await start(t, [...flags, '--queue-timeout', '1', '--models-dir', await three(t)]);
    const busy = await busyWith(server, 500); // for longer than the other one waits
    const refused = await post(server, '/v1/chat/completions', { model: 'b', messages: [{ role: 'user', content: 'x' }] });
    assert.equal(refused.status, 503);
    assert.match((await refused.json()).error.message, /the model b was not loaded in time \(--queue-timeout\)/);
    assert.equal((await busy.collect()).finish, 'length');
    const metrics = await server.metrics();
    assert.deepEqual(['wait_timeouts_total', 'waiting_requests'].map((name) => metrics.sum(`chasqui_model_${name}`)), [1, 0]);
  });

  it('gets comments in the stream that it asked for, and then its answer, or what is wrong with it', async (t) => {
    const server = await start(t, [...flags, '--sse-ping-interval', '0.2', '--models-dir', await three(t)]);
    const busy = await busyWith(server);
    const messages = [{ role: 'user', content: 'x' }];
    const said = (path, body) => post(server, path, { model: 'b', messages, max_tokens: 4, stream: true, ...body })
      .then(async (response) => [response.status, response.headers.get('content-type'), await response.text()]);
    const [good, wrong, anthropic, whole] = await Promise.all([said('/v1/chat/completions'),
      said('/v1/chat/completions', { temperature: 'hot' }), said('/v1/messages', { temperature: 'hot' }),
      said('/v1/chat/completions', { stream: false, temperature: 'hot' })]);
    const comment = ': waiting until there is room for b\n\n';
    for (const [status, type, text] of [good, wrong, anthropic]) {
      assert.deepEqual([status, type], [200, 'text/event-stream']);
      assert.ok(text.startsWith(comment + comment), text);
    }
    assert.match(good[2], /\n\ndata: \{.*"chat\.completion\.chunk"[^]*"finish_reason":"length"[^]*data: \[DONE\]\n\n$/);
    assert.match(wrong[2], /\n\ndata: \{"error":\{"code":400,"message":"temperature must be [^\n]*\n\n$/);
    assert.match(anthropic[2], /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"invalid_request_error"[^\n]*\n\n$/);
    assert.deepEqual([whole[0], whole[1]], [400, 'application/json'], 'no stream: nothing is said before the answer');
    assert.equal((await busy.collect()).finish, 'length');
  });

  it('frees its place when its client leaves', async (t) => {
    const server = await start(t, [...flags, '--models-dir', await three(t)]);
    const busy = await busyWith(server);
    const left = new AbortController();
    const body = JSON.stringify({ model: 'b', messages: [{ role: 'user', content: 'x' }] });
    const waiting = server.fetch('/v1/chat/completions', { method: 'POST', body, signal: left.signal });
    await server.until((metrics) => metrics.sum('chasqui_model_waiting_requests') === 1);
    left.abort();
    await assert.rejects(waiting);
    await server.until((metrics) => metrics.sum('chasqui_model_waiting_requests') === 0);
    assert.equal((await busy.collect()).finish, 'length');
    assert.equal((await states(server)).b, 'unloaded', 'nothing is loaded for it');
  });
});

describe('a model that cannot be loaded', () => {
  it('is failed with the reason, while the others are served', async (t) => {
    const dir = await models(t, { a: 'no GGUF', b: gguf('demo'), c: 'neither' });
    const server = await start(t, [...small, '--models-dir', dir]);
    assert.equal((await chat(server)).model, 'b', 'the first that can be loaded is the default');
    const { a, c } = await listed(server);
    assert.deepEqual([a.value, a.failed, c.value, c.failed], ['unloaded', true, 'unloaded', undefined]);
    assert.match(a.reason, /a\.gguf: it is too short to be a model/);
    const response = await post(server, '/v1/chat/completions', { model: 'c', messages: [{ role: 'user', content: 'x' }] });
    assert.equal(response.status, 500);
    assert.ok(Number((await post(server, '/v1/chat/completions', { model: 'c', messages: [] })).headers.get('retry-after')) >= 1);
    const { message } = (await response.json()).error;
    assert.match(message, /the model c cannot be loaded: .*c\.gguf: it is too short to be a model/);
    assert.ok(!message.includes(dir) && !a.reason.includes(dir), message);
    assert.equal((await chat(server, 'b')).model, 'b');
    assert.equal((await server.metrics()).sum('chasqui_model_load_failures_total'), 1);
  });

  it('is tried again when it is told to', async (t) => {
    const dir = await models(t, { a: gguf('demo'), b: 'no GGUF' });
    const server = await start(t, [...small, '--models-dir', dir]);
    assert.equal((await post(server, '/v1/chat/completions', { model: 'b', messages: [] })).status, 500);
    fs.rmSync(path.join(dir, 'b.gguf'));
    fs.symlinkSync(gguf('demo'), path.join(dir, 'b.gguf'));
    assert.deepEqual(await order(server, 'load', 'b'), [200, { success: true }]);
    await becomes(server, { b: 'loaded' });
    assert.equal((await chat(server, 'b')).model, 'b');
  });

  it('ends the start where there is no other one', async (t) => {
    const { code, stderr } = await run(['serve', ...small, '--port', '0', '--models-dir', await models(t, { a: 'no GGUF' })]);
    assert.equal(code, 1);
    assert.match(stderr, /no model can be loaded; the first one: .*a\.gguf/);
  });
});

describe('POST /models/load and /models/unload', () => {
  it('are refused where there is nothing to do, and by name', async (t) => {
    const server = await start(t, [...small, '--models-dir', await three(t)]);
    assert.equal((await order(server, 'load', 'a'))[0], 409);
    assert.equal((await order(server, 'unload', 'c'))[0], 409);
    assert.equal((await order(server, 'load', 'nowhere'))[0], 404);
    const fixed = await start(t, sim);
    assert.equal((await order(fixed, 'unload', 'sim'))[0], 501);
  });

  it('unload what has just been loaded for the first time, and it stays so', async (t) => {
    const names = Array.from({ length: 12 }, (_, i) => `m${i}`);
    const files = Object.fromEntries(names.map((name) => [name, gguf('demo')]));
    const server = await start(t, [...small, '--models-max', '0', '--models-dir', await models(t, files)]);
    const rest = names.filter((name) => name !== 'm0'); // which is loaded at start
    for (const name of rest) {
      await order(server, 'load', name);
      await becomes(server, { [name]: 'loaded' });
      assert.equal((await order(server, 'unload', name))[0], 200);
      await becomes(server, { [name]: 'unloaded' });
    }
    assert.equal((await server.metrics()).value('chasqui_model_loads_total'), rest.length);
  });

  it('need the key of an administrator', async (t) => {
    const keys = path.join(await folder(t), 'keys');
    fs.writeFileSync(keys, 'one name=x\nroot name=y admin=yes\n');
    fs.chmodSync(keys, 0o600);
    const server = await start(t, [...sim, '--api-key-file', keys, '--models-dir', await three(t)]);
    server.key = 'root'; // for its metrics
    const told = (key) => server.fetch('/models/load', {
      method: 'POST', body: JSON.stringify({ model: 'b' }), headers: { authorization: `Bearer ${key}` },
    });
    assert.equal((await told('one')).status, 403);
    assert.equal((await told('root')).status, 200);
  });

  it('load on a node that is drained, so that it opens with its models', async (t) => {
    const admin = path.join(await folder(t), 'admin.sock');
    const flags = ['--no-models-autoload', '--admin-listen', admin, '--models-dir', await three(t)];
    const server = await start(t, [...sim, ...flags]);
    await askAdmin(`unix:${admin}`, 'POST', '/drain');
    assert.equal((await order(server, 'load', 'b'))[0], 200);
    await becomes(server, { b: 'loaded' });
    await askAdmin(`unix:${admin}`, 'DELETE', '/drain');
    assert.equal((await chat(server, 'b')).model, 'b');
  });

  it('drain what runs before it goes', async (t) => {
    const server = await start(t, [...sim, ...slow, '--models-dir', await three(t)]);
    const running = await stream(server, '/v1/completions', { model: 'a', prompt: 'x', max_tokens: 300, ignore_eos: true });
    await running.nextText();
    await order(server, 'unload', 'a');
    assert.equal((await states(server)).a, 'draining');
    assert.equal((await running.collect()).finish, 'length');
    await becomes(server, { a: 'unloaded' });
  });

  it('are what Ollama says with keep_alive 0', async (t) => {
    const server = await start(t, [...sim, '--models-dir', await three(t)]);
    const said = await ask(server, '/api/generate', { model: 'b', prompt: 'x', stream: false, keep_alive: 0, options: { num_predict: 2 } });
    assert.equal(said.done, true);
    await becomes(server, { b: 'unloaded' });
    await chat(server, 'b');
    assert.equal((await ask(server, '/api/generate', { model: 'b', keep_alive: 0, stream: false })).done_reason, 'unload');
    await becomes(server, { a: 'loaded', b: 'unloaded' });
  });

  it('are shown by `show` and unloaded by `stop`, as Ollama users type them', async (t) => {
    const server = await start(t, [...small, '--models-dir', await three(t)]);
    const told = (...args) => run([...args, '--url', server.url]);
    const card = await told('show', 'b');
    assert.equal(card.code, 0, card.stderr);
    assert.match(card.stdout, /^name +\S.*\narchitecture +llama\nparameters +[\d.]+M\n[^]*context length +512\n[^]*capabilities +completion/);
    assert.equal(JSON.parse((await told('show', 'b', '--json')).stdout).details.family, 'llama');
    const stopped = await told('stop', 'b');
    assert.deepEqual([stopped.code, stopped.stderr], [0, '']);
    assert.match(stopped.stdout, /^b is unloaded when/);
    await becomes(server, { b: 'unloaded' });
    for (const [args, message] of [
      [['stop', 'b'], /^chasqui stop: the server says 409: .*b/],
      [['stop', 'none'], /^chasqui stop: the server says 404: .*none/],
      [['show', 'none'], /^chasqui show: the server says 404: .*none/],
    ]) {
      const refused = await told(...args);
      assert.deepEqual([refused.code, refused.stdout], [1, ''], args.join(' '));
      assert.match(refused.stderr, message);
    }
    assert.match((await run(['show', gguf('demo')])).stdout, /architecture +llama/);
    for (const command of ['show', 'stop']) {
      assert.equal((await run([command])).code, 2);
      assert.match((await run([command, 'b', '--url', 'http://127.0.0.1:1'])).stderr, /no server listens/);
    }
  });

  it('are what a keep_alive that has passed does, too', async (t) => {
    const server = await start(t, [...sim, '--models-dir', await three(t)]);
    const short = { model: 'b', prompt: 'x', stream: false, options: { num_predict: 2 } };
    const expires = async () => (await (await server.fetch('/api/ps')).json()).models.find((one) => one.name === 'b').expires_at;
    await ask(server, '/api/generate', { ...short, keep_alive: '1h' });
    assert.ok(Math.abs(Date.parse(await expires()) - Date.now() - 3600e3) < 60e3, await expires());
    const listed = (await (await server.fetch('/v1/models')).json()).data.find((one) => one.id === 'b');
    assert.ok(listed.status.unloads_in_s > 3500 && listed.status.unloads_in_s <= 3600, JSON.stringify(listed.status));
    assert.match((await run(['ps', '--url', server.url])).stdout, /^a +loaded .*for others\nb +loaded .*in 60 min\n/m);
    await ask(server, '/api/generate', { ...short, keep_alive: 0.3 });
    await becomes(server, { a: 'loaded', b: 'unloaded' });
    // Until b is not looked at any more, since no model can leave by itself.
    await ask(server, '/api/generate', { ...short, model: 'a', options: { num_predict: 100 } });
    await ask(server, '/api/generate', short);
    await becomes(server, { b: 'unloaded' });
    await ask(server, '/api/generate', { ...short, keep_alive: -1 });
    assert.ok(Date.parse(await expires()) - Date.now() > 23 * 3600e3);
    assert.equal((await states(server)).b, 'loaded');
    const refused = await post(server, '/api/generate', { ...short, keep_alive: 'soon' });
    assert.equal(refused.status, 400);
    assert.match((await refused.json()).error, /keep_alive must be a number of seconds/);
  });

  it('are the only way with --no-models-autoload', async (t) => {
    const server = await start(t, [...sim, '--no-models-autoload', '--models-dir', await three(t)]);
    const refused = await post(server, '/v1/chat/completions', { model: 'b', messages: [] });
    assert.equal(refused.status, 503);
    assert.match((await refused.json()).error.message, /the model b is not loaded: POST \/models\/load loads it/);
    await order(server, 'load', 'b');
    await becomes(server, { b: 'loaded' });
    assert.equal((await chat(server, 'b')).model, 'b');
  });
});

describe('the end of the server', () => {
  it('does not wait for requests whose model is not there', async (t) => {
    const server = await start(t, [...sim, ...slow, '--models-max', '1', '--models-dir', await three(t)]);
    const busy = await stream(server, '/v1/completions', { model: 'a', prompt: 'x', max_tokens: 300, ignore_eos: true });
    await busy.nextText();
    const waiting = post(server, '/v1/chat/completions', { model: 'b', messages: [{ role: 'user', content: 'x' }] });
    await server.until((metrics) => metrics.sum('chasqui_model_waiting_requests') === 1);
    server.signal('SIGTERM');
    assert.equal((await waiting).status, 503);
    assert.equal((await busy.collect()).finish, 'length');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

describe('a preset', () => {
  it('says what is loaded at start', async (t) => {
    const file = path.join(await folder(t), 'models.ini');
    fs.writeFileSync(file, '[x]\nmodel = x.gguf\n[y]\nmodel = y.gguf\nload-on-startup = true\n[z]\nmodel = z.gguf\n');
    const server = await start(t, [...sim, '--models-preset', file]);
    assert.deepEqual(await states(server), { x: 'loaded', y: 'loaded', z: 'unloaded' });
    const cells = await (await server.fetch('/props?model=z')).json();
    assert.equal(cells.model_alias, 'z', 'who asks about a model loads it, as with llama-server');
  });
});
