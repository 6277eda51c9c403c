// Adapters that are loaded and unloaded while the server runs, as vLLM's clients do it. With real adapter files of
// random weights, and files that are none.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, streamChat, user } from './client.mjs';
import { folder } from './frames.mjs';
import { models, readHead } from './gguf.mjs';
import { binary, demo, sim, start, testModel } from './server.mjs';

const { describe, it } = test;
const model = path.join(models, 'chasqui-demo.gguf');
const files = fs.realpathSync(await folder(test));
function adapterFile(name, seed, of = model) {
  const file = path.join(files, `${name}.gguf`);
  execFileSync(path.join(path.dirname(binary), 'mkmodel'), ['--adapter', of, file, '--seed', String(seed)]);
  return file;
}
const one = adapterFile('one', 1);
const two = adapterFile('two', 2);
const keys = path.join(files, 'keys');
fs.writeFileSync(keys, 'a name=alice\nroot name=root admin=yes\n', { mode: 0o600 });

const admin = { headers: { authorization: 'Bearer root' } };
const question = 'What is a slot?';
const about = { max_tokens: 16 };
const small = ['-np', '4', '-c', '4096', '--api-key-file', keys];

async function startWithKeys(context, flags) {
  const server = await start(context, [...flags, ...small]);
  server.key = 'root';
  return server;
}
async function order(server, what, body, options = admin) {
  const response = await post(server, `/v1/${what}_lora_adapter`, body, options);
  return [response.status, await response.text()];
}
const load = (server, name, file, more = {}) => order(server, 'load', { lora_name: name, lora_path: file, ...more });
const unload = (server, name, more = {}) => order(server, 'unload', { lora_name: name, ...more });
const added = (name) => [200, `Success: LoRA adapter '${name}' added successfully.`];
const removed = (name) => [200, `Success: LoRA adapter '${name}' removed successfully.`];
const said = (server, fields, messages = question) => answer(server, messages, { ...about, ...fields }, admin);
const text = async (server, fields) => (await said(server, fields)).text;
const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;
const listed = async (server, key = 'root') => (await (await server.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } })).json()).data;
const numberOf = (server, count) => server.until((now) => (now.all('chasqui_adapters')[0]?.value ?? 0) === count, `${count} adapters`);

describe('an adapter that is loaded while the server runs', async () => {
  const server = await startWithKeys(test, [...demo, '-m', model, '--alias', 'base,other']);
  const alone = await start(test, [...demo, '-m', model, '-np', '4', '-c', '4096', '--lora-init-without-apply', '--lora', `${one},${two}`]);
  const expected = {};
  for (const lora of ['one', 'two']) expected[lora] = (await answer(alone, question, { ...about, lora })).text;
  const plain = await text(server, {});

  it('serves requests that name it, is listed, and goes again', async () => {
    assert.deepEqual((await server.metrics()).all('chasqui_adapters'), []);
    assert.equal(await text(server, { model: 'tone' }), plain, 'any name is the only model');
    assert.deepEqual(await load(server, 'tone', one), added('tone'));
    for (const fields of [{ model: 'tone' }, { model: 'base:tone' }, { lora: 'tone' }, { lora: [{ id: 0, scale: 1 }] }]) {
      assert.equal(await text(server, fields), expected.one, JSON.stringify(fields));
    }
    for (const fields of [{}, { model: 'base' }, { model: 'gpt-4' }]) assert.equal(await text(server, fields), plain, 'others are as before');
    const { id, root, parent } = (await listed(server))[1];
    assert.deepEqual({ id, root, parent }, { id: 'tone', root: one, parent: 'base' });
    assert.equal((await listed(server, 'a'))[1].root, 'one.gguf');
    const found = await (await server.fetch('/v1/models/tone', admin)).json();
    assert.equal(found.parent, 'base');
    const [shown] = await (await server.fetch('/lora-adapters', admin)).json();
    assert.deepEqual({ ...shown }, { id: 0, name: 'tone', path: one, scale: 0, task_name: '', prompt_prefix: '' });
    const during = await server.metrics();
    assert.equal(during.value('chasqui_adapters'), 1);
    assert.ok(during.value('chasqui_adapter_steps_total', { adapter: 'tone' }) > 0);
    assert.equal(during.all('vllm:lora_requests_info')[0].labels.max_lora, '1');

    assert.deepEqual(await unload(server, 'tone'), removed('tone'));
    const gone = await refused(await post(server, '/v1/chat/completions', { model: 'tone', messages: user('x') }, admin), 404);
    assert.equal(gone.param, 'model');
    await refused(await post(server, '/v1/embeddings', { model: 'tone', input: 'x' }, admin), 404);
    for (const fields of [{ lora: 'tone' }, { model: 'base:tone' }]) {
      await refused(await post(server, '/v1/chat/completions', { messages: user('x'), ...fields }, admin), 400);
    }
    assert.equal((await listed(server)).length, 1);
    await numberOf(server, 0);
    assert.equal(await text(server, {}), plain);
    assert.deepEqual((await server.metrics()).all('chasqui_adapter_steps_total', { adapter: 'tone' }), []);
  });

  it('is not mistaken for another one of its name', async () => {
    const messages = user('Which of two runners carries this message, and how long is it? '.repeat(4));
    assert.deepEqual(await load(server, 'tone', one), added('tone'));
    const first = await said(server, { model: 'tone' }, messages);
    assert.deepEqual(await unload(server, 'tone'), removed('tone'));
    assert.deepEqual(await load(server, 'tone', two), added('tone'));
    const second = await said(server, { model: 'tone' }, messages);
    assert.ok(cachedOf(second) < 8, `${cachedOf(second)} tokens of the other adapter`);
    assert.notEqual(second.text, first.text);
    assert.equal(await text(server, { model: 'tone' }), expected.two);
    const [status, body] = await load(server, 'tone', one);
    assert.equal(status, 400);
    assert.match(body, /has already been loaded; load_inplace: true replaces it/);
    assert.deepEqual(await load(server, 'tone', one, { load_inplace: true }), added('tone'));
    const again = await said(server, { model: 'tone' }, messages);
    assert.equal(again.text, first.text);
    assert.ok(cachedOf(again) > 50, 'the same file is the same adapter');
    assert.deepEqual(await unload(server, 'tone'), removed('tone'));
  });

  it('goes when the last request with it has ended', async () => {
    assert.deepEqual(await load(server, 'tone', two), added('tone'));
    const stream = await streamChat(server, user(question), { ...endless, max_tokens: 950, model: 'tone' }, admin);
    await stream.nextText();
    assert.deepEqual(await unload(server, 'tone'), removed('tone'));
    await refused(await post(server, '/v1/chat/completions', { model: 'tone', messages: user('x') }, admin), 404);
    assert.equal((await server.metrics()).value('chasqui_adapters'), 1, 'it is in use');
    assert.deepEqual(await load(server, 'tone', one), added('tone'));
    assert.equal(await text(server, { model: 'tone' }), expected.one, 'in another place');
    for (let i = 0; i < 20; ++i) await stream.nextText();
    stream.leave();
    await numberOf(server, 1);
    assert.deepEqual(await unload(server, 'tone'), removed('tone'));
    await numberOf(server, 0);
  });

  it('is not missed by a session but where that asks for it', async () => {
    assert.deepEqual(await load(server, 'tone', one), added('tone'));
    const { id } = await ask(server, '/v1/sessions', { messages: user(question) }, admin);
    const go = (fields) => post(server, `/v1/sessions/${id}/generate`, { temperature: 0, ...about, ...fields }, admin);
    assert.equal((await (await go({ lora: 'tone' })).json()).choices[0].message.content, expected.one);
    await unload(server, 'tone');
    assert.match((await refused(await go({ lora: 'tone' }), 400)).message, /no adapters/);
    assert.equal((await go({})).status, 200);
  });

  it('is refused where it cannot be, and the server goes on', async () => {
    const good = fs.readFileSync(one);
    const head = readHead(good);
    const broken = (name, change) => {
      const bytes = Buffer.from(good);
      change(bytes);
      fs.writeFileSync(path.join(files, name), bytes);
      return path.join(files, name);
    };
    const tensor = Object.values(head.tensors)[0];
    const pipe = path.join(files, 'pipe');
    execFileSync('mkfifo', [pipe]);
    fs.writeFileSync(path.join(files, 'short.gguf'), good.subarray(0, good.length - 100));
    const wide = testModel('24m-f16');
    const bad = [
      [{ lora_path: path.join(files, 'nowhere.gguf') }, 404, 'lora_path', /No such file/],
      [{ lora_path: `${one}/x` }, 404, 'lora_path', /Not a directory/],
      [{ lora_path: files }, 400, 'lora_path', /it is a folder/],
      [{ lora_path: pipe }, 400, 'lora_path', /not a regular file/],
      [{ lora_path: model }, 400, 'lora_path', /it is no adapter/],
      [{ lora_path: binary }, 400, 'lora_path', /magic|GGUF/],
      [{ lora_path: path.join(files, 'short.gguf') }, 400, 'lora_path', /not within the file bounds|cut short/],
      [{ lora_path: broken('alpha.gguf', (bytes) => bytes.writeUInt32LE(4, head.keys['adapter.lora.alpha'] - 4)) }, 400, 'lora_path', /alpha is no float/],
      [{ lora_path: broken('type.gguf', (bytes) => bytes.writeUInt32LE(26, tensor.sizes + 8 * tensor.dimensions)) }, 400, 'lora_path', /has the type i32/],
      [{ lora_path: broken('arch.gguf', (bytes) => bytes.write('gemma', head.keys['general.architecture'] + 8)) }, 400, 'lora_path', /arch mismatch/],
      ...(fs.existsSync(wide) ? [[{ lora_path: adapterFile('wide', 3, wide) }, 400, 'lora_path', /wrong base model|arch mismatch/]] : []),
      [{ lora_path: '' }, 400, 'lora_path', /lora_path must be/], [{ lora_path: 5 }, 400, 'lora_path', /string/], [{ lora_path: 'a\0b' }, 400, 'lora_path', /lora_path must be/],
      [{ lora_name: '' }, 400, 'lora_name', /lora_name must be/], [{ lora_name: undefined }, 400, 'lora_name', /lora_name must be/],
      [{ lora_name: 'a\nb' }, 400, 'lora_name', /control characters/], [{ lora_name: 'x'.repeat(129) }, 400, 'lora_name', /128 bytes/],
      [{ lora_name: 'base' }, 400, 'lora_name', /must be a new name/], [{ lora_name: 'other' }, 400, 'lora_name', /must be a new name/],
      [{ lora_name: 'none' }, 400, 'lora_name', /words of the metrics/], [{ load_inplace: 'yes' }, 400, 'load_inplace', /load_inplace/],
    ];
    for (const [fields, status, param, message] of bad) {
      const what = JSON.stringify(fields);
      const response = await post(server, '/v1/load_lora_adapter', { lora_name: 'tone', lora_path: one, ...fields }, admin);
      const error = await refused(response, status);
      assert.equal(error.param, param, what);
      assert.match(error.message, message, what);
    }
    await refused(await post(server, '/v1/load_lora_adapter', 'nonsense', admin), 400);
    const unknown = await refused(await post(server, '/v1/unload_lora_adapter', { lora_name: 'tone' }, admin), 404);
    assert.match(unknown.message, /'tone' cannot be found; the model base has none/);
    await refused(await post(server, '/v1/unload_lora_adapter', {}, admin), 400);
    await numberOf(server, 0);
    assert.equal(await text(server, {}), plain);
    assert.deepEqual(await load(server, 'tone', one), added('tone'));
    assert.equal(await text(server, { model: 'tone' }), expected.one);
    await unload(server, 'tone');
  });

  it('is for administrators, where there are keys', async (t) => {
    const other = { headers: { authorization: 'Bearer a' } };
    for (const what of ['load', 'unload']) {
      const [status, body] = await order(server, what, { lora_name: 'tone', lora_path: one }, other);
      assert.equal(status, 403);
      assert.match(body, /admin=yes/);
      assert.equal((await order(server, what, {}, {}))[0], 401);
    }
    const open = await start(t, [...sim, '--lora', 'a.gguf:a']);
    for (const what of ['load', 'unload']) assert.equal((await order(open, what, { lora_name: 'a', lora_path: one }, {}))[0], 403);
  });
});

describe('adapters that come and go', () => {
  it('under load, with several workers: each answer is the one that its adapter gives', async (t) => {
    const server = await startWithKeys(t, [...demo, '-m', model, '--workers', '2', '--lora-init-without-apply', '--lora', one]);
    const ways = { one: 'one', none: [] };
    // In a batch of its own, so that what others do changes no last digit.
    const exact = { deterministic: true, cache_prompt: false };
    const alone = {};
    for (const [name, lora] of Object.entries(ways)) alone[name] = await text(server, { ...exact, lora });
    assert.deepEqual(await load(server, 'two', two), added('two'));
    alone.two = await text(server, { ...exact, model: 'two' });
    assert.deepEqual(await unload(server, 'two'), removed('two'));
    let over = false;
    const wrong = [];
    let asked = 0;
    const client = async (name) => {
      for (; !over; ++asked) {
        const got = await text(server, { ...exact, lora: ways[name] });
        if (got !== alone[name]) wrong.push([name, got]);
      }
    };
    const clients = [...Object.keys(ways), ...Object.keys(ways)].map(client);
    for (let i = 0; i < 20; ++i) {
      assert.deepEqual(await load(server, 'two', two), added('two'));
      assert.equal(await text(server, { ...exact, model: 'two' }), alone.two);
      assert.deepEqual(await unload(server, 'two'), removed('two'));
    }
    over = true;
    await Promise.all(clients);
    assert.deepEqual(wrong, []);
    assert.ok(asked > 0);
    await numberOf(server, 1);
  });

  it('are limited in number, and so is the page of metrics', async (t) => {
    const server = await startWithKeys(t, sim);
    for (let i = 0; i < 128; ++i) assert.deepEqual(await load(server, `adapter-${i}`, `${i}.gguf`), added(`adapter-${i}`));
    const [status, body] = await load(server, 'one-more', 'x.gguf');
    assert.equal(status, 400);
    assert.match(body, /adapters/);
    const page = await (await server.fetch('/metrics', admin)).text();
    assert.ok(page.length <= 80 * 1024, `${page.length} bytes`);
    assert.deepEqual(await unload(server, 'adapter-5'), removed('adapter-5'));
    await numberOf(server, 127);
    assert.deepEqual(await load(server, 'one-more', 'x.gguf'), added('one-more'));
    assert.deepEqual((await listed(server)).slice(1).map(({ id }) => id).sort(),
      ['one-more', ...Array.from({ length: 128 }, (_, i) => `adapter-${i}`).filter((id) => id !== 'adapter-5')].sort());
  });

  it('wake a model that sleeps, and are there again when it wakes, whatever becomes of the file', async (t) => {
    const server = await startWithKeys(t, [...demo, '-m', model, '--sleep-idle-seconds', '1']);
    const asleep = () => server.until((now) => now.value('chasqui_sleeping') === 1, 'it sleeps');
    await asleep();
    const copy = path.join(files, 'moves.gguf');
    fs.copyFileSync(one, copy);
    assert.deepEqual(await load(server, 'tone', copy), added('tone'));
    const first = await text(server, { model: 'tone' });
    assert.notEqual(first, await text(server, {}));
    fs.rmSync(copy);
    await asleep();
    assert.equal(await text(server, { model: 'tone' }), first);
    // Written into, it is another adapter.
    const written = path.join(files, 'written.gguf');
    fs.copyFileSync(two, written);
    assert.deepEqual(await load(server, 'second', written), added('second'));
    const plain = await text(server, {});
    await asleep();
    fs.writeFileSync(written, fs.readFileSync(one));
    assert.equal(await text(server, { model: 'tone' }), first);
    await refused(await post(server, '/v1/chat/completions', { model: 'second', messages: user('x') }, admin), 500);
    assert.equal(await text(server, {}), plain);
    await server.says(/an adapter cannot be loaded again/);
    await asleep();
    assert.deepEqual(await unload(server, 'second'), removed('second'));
    assert.equal(await text(server, { model: 'tone' }), first);
    server.signal('SIGKILL'); // it has a step that failed, as it should
    await server.ended;
  });

  it('belong to one of several models, which is loaded for them', async (t) => {
    const many = fs.realpathSync(await folder(t));
    for (const name of ['a', 'b']) fs.copyFileSync(model, path.join(many, `${name}.gguf`));
    const server = await startWithKeys(t, [...demo, '--models-dir', many, '--no-models-trial']);
    const state = async (id) => (await listed(server)).find((entry) => entry.id === id)?.status?.value;
    assert.equal(await state('b'), 'unloaded');
    assert.equal((await unload(server, 'tone', { model: 'b' }))[0], 409);
    assert.deepEqual(await load(server, 'tone', one, { model: 'b' }), added('tone'));
    assert.equal(await state('b'), 'loaded');
    assert.equal((await load(server, 'tone', one, { model: 'a' }))[0], 400, 'a name means one adapter');
    const first = await text(server, { model: 'tone' });
    assert.notEqual(first, await text(server, { model: 'b' }));
    assert.deepEqual((await (await server.fetch('/lora-adapters?model=b', admin)).json()).map(({ name }) => name), ['tone']);
    assert.deepEqual(await (await server.fetch('/lora-adapters?model=a', admin)).json(), []);
    assert.equal((await listed(server)).find(({ id }) => id === 'tone').parent, 'b');
    assert.equal((await post(server, '/models/unload', { model: 'b' }, admin)).status, 200);
    await server.until(async () => await state('b') === 'unloaded', 'b is unloaded');
    assert.equal(await text(server, { model: 'tone' }), first, 'and loaded again');
    assert.equal((await unload(server, 'tone'))[0], 404, 'the first model has none');
    assert.deepEqual(await unload(server, 'tone', { model: 'b' }), removed('tone'));
    await refused(await post(server, '/v1/chat/completions', { model: 'tone', messages: user('x') }, admin), 404);
    await refused(await post(server, '/v1/load_lora_adapter', { lora_name: 'x', lora_path: one, model: 'c' }, admin), 404);
  });

  it('go over to the next version of the model, or keep it from serving', async (t) => {
    const file = path.join(fs.realpathSync(await folder(t)), 'base.gguf');
    fs.copyFileSync(model, file);
    const server = await startWithKeys(t, [...demo, '-m', file, '--alias', 'base', '--no-models-trial', '--lora-init-without-apply', '--lora', `${two}:second`]);
    assert.deepEqual(await load(server, 'tone', one), added('tone'));
    assert.deepEqual(await unload(server, 'second'), removed('second'));
    const first = await text(server, { model: 'tone' });
    const swap = async (bytes) => {
      fs.writeFileSync(`${file}.next`, bytes);
      fs.renameSync(`${file}.next`, file);
      const response = await post(server, '/models/load', { model: 'base' }, admin);
      return [response.status, await response.text()];
    };
    assert.deepEqual(await swap(fs.readFileSync(model)), [200, '{"success":true}']);
    await server.until((now) => now.sum('chasqui_model_versions_leaving') === 0, 'the version before has gone');
    assert.equal(await text(server, { model: 'tone' }), first);
    assert.deepEqual((await listed(server)).map(({ id }) => id), ['base', 'tone'], 'what was unloaded stays so');
    await refused(await post(server, '/v1/chat/completions', { model: 'second', messages: user('x') }, admin), 404);
    const wide = testModel('24m-f16');
    if (!fs.existsSync(wide)) return t.diagnostic('no model of another width is there');
    const [status, body] = await swap(fs.readFileSync(wide));
    assert.equal(status, 400);
    assert.match(body, /Cannot load the adapter tone from .*one\.gguf/);
    assert.equal(await text(server, { model: 'tone' }), first, 'the version before serves on');
    assert.deepEqual(await unload(server, 'tone'), removed('tone'));
    await numberOf(server, 0);
  });
});
