// Several models in one process: --model again, or the sections of --models-preset. What belongs to a model is its own,
// what belongs to the server covers all of them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, stream } from './client.mjs';
import { folder, startWithSocket } from './frames.mjs';
import { demo, run, sim, start, testModel } from './server.mjs';

const { describe, it } = test;
const slow = ['--sim-step', '20'];
const two = [...sim, '-m', 'left.gguf', '-m', 'folder/right-00001-of-00002.gguf'];
const say = (text) => [{ role: 'user', content: `say: ${text}` }];
const chat = (server, model, more = {}) =>
  ask(server, '/v1/chat/completions', { ...(model ? { model } : {}), messages: say('one'), max_tokens: 8, ...more });

async function get(server, route) {
  const response = await server.fetch(route);
  const text = await response.text();
  assert.equal(response.status, 200, `${route} → ${text}`);
  return JSON.parse(text);
}

async function preset(context, text) {
  const file = path.join(await folder(context), 'models.ini');
  fs.writeFileSync(file, text);
  return file;
}

describe('several --model', () => {
  it('are served under the names of their files, each for the requests that name it', async (t) => {
    const server = await start(t, two);
    assert.equal((await chat(server, 'right')).model, 'right');
    assert.equal((await chat(server, 'left')).model, 'left');
    assert.equal((await chat(server)).model, 'left', 'the first one is the default');
    assert.equal((await chat(server, 'right:latest')).model, 'right');
    const metrics = await server.metrics();
    assert.equal(metrics.sum('chasqui_requests_finished_total', { model: 'left' }), 2);
    assert.equal(metrics.sum('chasqui_requests_finished_total', { model: 'right' }), 2);
    await server.says(/route=\/v1\/chat\/completions kind=generation model=right /);
    assert.deepEqual(server.stdout.filter((line) => line.startsWith('serving ')).map((line) => line.split(' ')[1]),
      ['left', 'right']);
  });

  it('have the names of --alias in their order', async (t) => {
    const server = await start(t, [...two, '-a', 'a,A', '-a', 'b']);
    const { data } = await get(server, '/v1/models');
    assert.deepEqual(data.map(({ id, aliases }) => [id, aliases]), [['a', ['a', 'A']], ['b', ['b']]]);
    assert.equal((await chat(server, 'A')).model, 'a');
    assert.equal((await post(server, '/v1/chat/completions', { model: 'left', messages: say('x') })).status, 404);
  });

  it('have all cores while one computes alone, and their parts while both do', async (t) => {
    const file = path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf');
    const server = await start(t, ['-m', file, '-m', file, '-a', 'a', '-a', 'b', '--fixed-threads', '-np', '1', '-c', '4096']);
    const threads = async (model) => (await server.metrics()).value('chasqui_compute_threads', { model });
    const busy = new Set(['a', 'b']);
    const keepBusy = async (model) => {
      while (busy.has(model)) await ask(server, '/v1/completions', { model, prompt: 'x', max_tokens: 500, ignore_eos: true });
    };
    // So long that its last step, which the metric tells of, does not meet the start of b's worker.
    await ask(server, '/v1/completions', { model: 'a', prompt: 'x', max_tokens: 1000, ignore_eos: true });
    const all = await threads('a');
    const part = Math.max(1, Math.floor(all / 2));
    const work = [keepBusy('a'), keepBusy('b')];
    await server.until(async () => await threads('a') === part && await threads('b') === part, `${part} of ${all} each`);
    busy.delete('b');
    await work[1];
    await server.until(async () => await threads('a') === all, `${all} again`);
    busy.delete('a');
    await work[0];
  });

  it('are listed and asked about by every dialect', async (t) => {
    const server = await start(t, two);
    const names = ({ models }) => models.map(({ name }) => name);
    assert.deepEqual(names(await get(server, '/models')), ['left', 'right']);
    assert.deepEqual(names(await get(server, '/api/tags')), ['left', 'right']);
    assert.deepEqual(names(await get(server, '/api/ps')), ['left', 'right']);
    assert.equal((await get(server, '/v1/models/right')).id, 'right');
    assert.equal((await get(server, '/props?model=right')).model_alias, 'right');
    assert.equal((await get(server, '/props')).model_alias, 'left');
    assert.equal((await get(server, '/slots?model=right')).length, (await get(server, '/slots')).length);
    assert.equal((await ask(server, '/api/chat', { model: 'right', messages: say('x'), stream: false })).model, 'right');
    assert.equal((await ask(server, '/v1/messages', { model: 'right', messages: say('x'), max_tokens: 4 })).model, 'right');
    assert.equal((await get(server, '/health')).status, 'ok');
    assert.equal((await get(server, '/ready')).status, 'ready');
  });

  it('answer an unknown name with 404 and the names that there are, as each dialect says it', async (t) => {
    const server = await start(t, two);
    const cases = [
      ['/v1/chat/completions', { messages: say('x') }, (body) => body.error.message],
      ['/v1/embeddings', { input: 'x' }, (body) => body.error.message],
      ['/v1/messages', { messages: say('x'), max_tokens: 4 }, (body) => body.error.message],
      ['/api/chat', { messages: say('x') }, (body) => body.error],
      ['/completion', { prompt: 'x' }, (body) => body.error.message],
    ];
    for (const [route, body, message] of cases) {
      const response = await post(server, route, { model: 'rihgt', ...body });
      assert.equal(response.status, 404, route);
      assert.match(message(await response.json()), /there is no model rihgt; model must be one of left, right/, route);
    }
    assert.equal((await server.fetch('/props?model=rihgt')).status, 404);
  });

  it('run at the same time, and SIGTERM lets the streams of all of them end', async (t) => {
    const server = await start(t, [...two, ...slow]);
    const both = await Promise.all(['left', 'right'].map((model) =>
      stream(server, '/v1/completions', { model, prompt: 'x', max_tokens: 30, ignore_eos: true })));
    await Promise.all(both.map((one) => one.nextText()));
    server.signal('SIGTERM');
    for (const one of both) assert.equal((await one.collect()).finish, 'length');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

describe('what belongs to a model', () => {
  it('are its sessions, which are found by their ids alone', async (t) => {
    const server = await start(t, two);
    const { id } = await ask(server, '/v1/sessions', { model: 'right', prompt: 'a' });
    assert.equal((await get(server, `/v1/sessions/${id}`)).id, id);
    const said = await ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 4 });
    assert.equal(said.model, 'right');
    assert.deepEqual((await get(server, '/v1/sessions')).data, []);
    assert.deepEqual((await get(server, '/v1/sessions?model=right')).data.map((one) => one.id), [id]);
    assert.equal((await server.fetch(`/v1/sessions/${id}`, { method: 'DELETE' })).status, 200);
  });

  it('are its responses', async (t) => {
    const server = await start(t, two);
    const { id } = await ask(server, '/v1/responses', { model: 'right', input: 'say: x', max_output_tokens: 4 });
    assert.equal((await get(server, `/v1/responses/${id}`)).model, 'right');
    const next = await ask(server, '/v1/responses',
      { model: 'right', input: 'say: y', max_output_tokens: 4, previous_response_id: id });
    assert.equal(next.model, 'right');
    for (const fields of [{}, { model: 'left' }]) {
      const body = { input: 'say: z', max_output_tokens: 4, previous_response_id: id, ...fields };
      assert.equal((await ask(server, '/v1/responses', body)).model, 'right', 'whatever is named');
      assert.ok((await ask(server, '/v1/responses/input_tokens', body)).input_tokens > 0);
    }
  });

  it('are its folders, and its sessions are back after a restart', async (t) => {
    const made = await folder(t);
    const flags = [...two, '--session-dir', made];
    const before = await start(t, flags);
    const { id } = await ask(before, '/v1/sessions', { model: 'right', prompt: 'a' });
    await before.stop();
    assert.deepEqual(fs.readdirSync(path.join(made, 'models')).sort(), ['left', 'right']);
    // The other way round they have the same folders.
    const after = await start(t, [...sim, '-m', 'right.gguf', '-m', 'left.gguf', '--session-dir', made]);
    assert.equal((await get(after, `/v1/sessions/${id}`)).id, id);
    assert.deepEqual((await get(after, '/v1/sessions?model=right')).data.map((one) => one.id), [id]);
  });

  it('is asked for by frames of the local socket too', async (t) => {
    const server = await startWithSocket(t, two);
    const client = await server.client(t);
    assert.ok(await client.text({ model: 'right', prompt: 'say: x', max_tokens: 4 }));
    assert.equal((await client.command('props', { model: 'right' })).model_alias, 'right');
    assert.equal((await client.command('props')).model_alias, 'left');
    const { id } = await client.command('session.create', { model: 'right', prompt: 'a' });
    assert.equal((await client.command('session.show', { session: id })).id, id);
    await assert.rejects(client.text({ model: 'middle', prompt: 'x' }), /there is no model middle/);
    assert.equal((await server.metrics()).sum('chasqui_requests_finished_total', { model: 'right' }), 1);
  });
});

describe('--models-preset', () => {
  it('serves a model for each section with its flags, weaker than those of the command line', async (t) => {
    const file = await preset(t, `
version = 1
[*]
np = 2
c = 4096
[org/one:Q8_0]   ; the default
model = one.gguf
ctx-size = 1024
temp = 0.25
jinja = true
port = 1
[two]
LLAMA_ARG_MODEL = two.gguf
alias = zwei,deux
cache-prompt = false
load-on-startup = true
`);
    const server = await start(t, [...sim, '--models-preset', file, '-np', '4', '--slots']);
    const { data } = await get(server, '/v1/models');
    assert.deepEqual(data.map(({ id, aliases }) => [id, aliases]),
      [['org/one:Q8_0', ['org/one:Q8_0']], ['two', ['two', 'zwei', 'deux']]]);
    const [one, other] = await Promise.all(['org%2Fone%3AQ8_0', 'deux'].map((name) => get(server, `/props?model=${name}`)));
    assert.deepEqual([one.total_slots, one.kv.cells, one.default_generation_settings.params.temperature], [4, 1024, 0.25]);
    assert.deepEqual([other.total_slots, other.kv.cells], [4, 4096]);
    await server.says(/\[org\/one:Q8_0\] port has no effect: it is of the whole server/);
  });

  it('names the section and the key of a mistake, before anything is loaded', async (t) => {
    const cases = [
      ['[a]\nc = 5', /\[a\] it needs the file of a model: model = FILE/],
      ['[a]\nmodel = a.gguf\nctx-sise = 5', /\[a\] there is no flag "ctx-sise" \(line 3\)/],
      ['[a]\nmodel = a.gguf\nc = many', /\[a\] .*--ctx-size.*many.* \(.*, line 3\)/],
      ['[a]\nmodel = a.gguf\nmlock = perhaps', /\[a\] mlock must be true or false \(line 3\)/],
      ['[a]\nmodel = a.gguf\nmmproj = b.gguf', /--mmproj: b\.gguf: No such file.* \(.*, line 3\)/],
      ['[a]\nmodel = a.gguf\n[b]\nmodel = b.gguf\nalias = a', /two models are called a/],
      ['[a\n', /line 1 begins like a section/],
      ['[*]\nc = 5', /it has no section, which is a model each/],
    ];
    for (const [text, message] of cases) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--models-preset', await preset(t, text)]);
      assert.equal(code, 2, text);
      assert.match(stderr, message, text);
    }
    const beside = await run(['serve', ...sim, '--port', '0', '-m', 'x.gguf', '--models-preset', await preset(t, '[a]\nmodel = a.gguf')]);
    assert.match(beside.stderr, /--models-preset lists the models and their names: leave out --model, --hf-repo and --alias/);
  });
});

describe('mistakes with several --model', () => {
  it('are named', async () => {
    const cases = [
      [['-m', 'a/x.gguf', '-m', 'b/x.gguf'], /two models are called x; give one of them another name with --alias/],
      [['-m', 'a.gguf', '-m', 'b.gguf', '-a', '1', '-a', '2', '-a', '3'], /--alias is there 3 times, and --model only 2/],
    ];
    for (const [flags, message] of cases) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', ...flags]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
    const missing = await run(['serve', '--port', '0', '-m', testModel('24m-f16'), '-m', '/nowhere/b.gguf']);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /\/nowhere\/b\.gguf/);
  });
});

describe('two real models', () => {
  it('say what each of them says alone', async (t) => {
    const files = ['24m-f16', 'recurrent'].map(testModel);
    const flags = [...demo, '-np', '2', '-c', '1024'];
    const body = { prompt: 'The messenger', max_tokens: 12, temperature: 0, ignore_eos: true };
    const said = async (server, model) =>
      (await ask(server, '/v1/completions', { ...(model ? { model } : {}), ...body })).choices[0].text;
    const alone = [];
    for (const file of files) {
      const server = await start(t, [...flags, '-m', file]);
      alone.push(await said(server));
      await server.stop();
    }
    const server = await start(t, [...flags, '-m', files[0], '-m', files[1], '-a', 'a', '-a', 'b']);
    const together = await Promise.all(['a', 'b'].map((model) => said(server, model)));
    assert.deepEqual(together, alone);
  });
});
