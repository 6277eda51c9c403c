// --batch-dir: OpenAI's files and batches. Every line has one result, whatever ends the process.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import OpenAI, { toFile } from 'openai';

import { answer, ask, endless, post, refused, user } from './client.mjs';
import { demo, hangAfter, run, sim, start } from './server.mjs';

const { describe, it } = test;

const chat = '/v1/chat/completions';
const line = (id, body, url = chat) => ({ custom_id: id, method: 'POST', url, body });
const says = (text) => ({ messages: user(`say: ${text}`), max_tokens: 32 });
const slow = { messages: user('go on'), max_tokens: 60, ignore_eos: true };
const jsonl = (lines) => lines.map((one) => `${JSON.stringify(one)}\n`).join('');
const ended = ['failed', 'completed', 'expired', 'cancelled'];

async function folder(t) {
  const name = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

const sdk = (server, apiKey = 'unused') => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
const two = [...sim, '-m', 'left.gguf', '-m', 'right.gguf'];
const upload = async (client, text, name = 'in.jsonl') =>
  client.files.create({ file: await toFile(Buffer.from(text), name), purpose: 'batch' });

async function submit(client, lines, more = {}) {
  const file = await upload(client, typeof lines === 'string' ? lines : jsonl(lines));
  return client.batches.create({ input_file_id: file.id, endpoint: chat, completion_window: '24h', ...more });
}

// Asks until the batch is as wished: each turn waits for the server's answer.
async function until(client, id, wish) {
  const end = Date.now() + hangAfter;
  for (;;) {
    const batch = await client.batches.retrieve(id);
    if (wish(batch)) return batch;
    assert.ok(Date.now() < end && !ended.includes(batch.status), JSON.stringify(batch));
  }
}
const end = (client, id) => until(client, id, (batch) => ended.includes(batch.status));

async function results(client, file) {
  if (!file) return [];
  const text = await (await client.files.content(file)).text();
  assert.ok(text.endsWith('\n'));
  return text.trimEnd().split('\n').map((one) => JSON.parse(one));
}

// All results by custom_id; each id stands in the files once.
async function once(client, batch, ids) {
  const all = [...await results(client, batch.output_file_id), ...await results(client, batch.error_file_id)];
  assert.deepEqual(all.map((one) => one.custom_id).sort(), [...ids].sort());
  return new Map(all.map((one) => [one.custom_id, one]));
}

const refusal = async (promise, status) => {
  const error = await promise.then(() => assert.fail(`not refused with ${status}`), (e) => e);
  assert.equal(error.status, status, `${error}`);
  return error;
};

describe('a server without --batch-dir', async () => {
  it('says which flag it lacks', async (t) => {
    const server = await start(t, sim);
    for (const [method, target] of [['POST', '/v1/files'], ['GET', '/v1/files'], ['GET', '/v1/files/x/content'],
      ['DELETE', '/v1/files/x'], ['POST', '/v1/batches'], ['GET', '/v1/batches/x'], ['POST', '/v1/batches/x/cancel']]) {
      const error = await refused(await server.fetch(target, { method }), 501);
      assert.match(error.message, /--batch-dir DIR/);
    }
  });
});

describe('--batch-queue', () => {
  it('is refused at the start where it cannot be used', async (t) => {
    for (const [flags, says] of [[['--batch-queue', 'redis://host'], /--batch-dir/], [['--batch-dir', await folder(t), '--batch-queue', 'amqp://host'], /redis:.*nats:/],
      [['--batch-dir', await folder(t), '--batch-queue', 'redis://host:port'], /port is not a number/]]) {
      const { code, stderr } = await run(['serve', '--port', '0', ...sim, ...flags]);
      assert.equal(code, 2);
      assert.match(stderr, says);
      assert.match(stderr, /--batch-queue/);
    }
  });
});

describe('batches', async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  test.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
  const server = await start(test, [...sim, '--batch-dir', dir]);
  const client = sdk(server);

  it('answer every line as its route does', async () => {
    const lines = Array.from({ length: 20 }, (_, i) => line(`id ${i}`, says(`number ${i}`)));
    const file = await upload(client, `\uFEFF${jsonl(lines).replaceAll('\n', '\r\n\n')}`, '../../etc/päß x.jsonl');
    assert.equal(file.filename, 'päß x.jsonl');
    assert.deepEqual([file.object, file.purpose, file.status], ['file', 'batch', 'processed']);
    const made = await client.batches.create({ input_file_id: file.id, endpoint: chat, completion_window: '24h',
      metadata: { team: 'search' }, output_expires_after: { anchor: 'created_at', seconds: 7200 } });
    assert.deepEqual([made.object, made.status, made.output_file_id], ['batch', 'validating', null]);
    assert.equal(made.expires_at - made.created_at, 86_400);
    const batch = await end(client, made.id);
    assert.deepEqual([batch.status, batch.error_file_id, batch.errors], ['completed', null, null]);
    assert.deepEqual(batch.request_counts, { total: 20, completed: 20, failed: 0 });
    assert.deepEqual(batch.metadata, { team: 'search' });
    for (const time of ['in_progress_at', 'finalizing_at', 'completed_at']) assert.ok(batch[time] >= batch.created_at, time);
    const found = await once(client, batch, lines.map((one) => one.custom_id));
    for (const [i, { custom_id: id }] of lines.entries()) {
      const { response, error } = found.get(id);
      assert.deepEqual([response.status_code, error], [200, null]);
      assert.equal(response.body.choices[0].message.content.trim(), `number ${i}`);
      assert.match(response.request_id, /^batch_req_/);
    }
    const output = await client.files.retrieve(batch.output_file_id);
    assert.equal(output.purpose, 'batch_output');
    assert.equal(output.expires_at - output.created_at, 7200);
    assert.equal((await (await client.files.content(batch.output_file_id)).text()).length > 0, true);
  });

  it('tell in the error file which lines their route refused, and never answer more than one way', async () => {
    const lines = [line('good', says('yes')), line('bad', { ...says('no'), temperature: 'hot' }),
      line('none', { max_tokens: 3 }), line('other', { ...says('no'), max_tokens: 1 << 30, logprobs: 'x' })];
    const batch = await end(client, (await submit(client, lines)).id);
    assert.deepEqual(batch.request_counts, { total: 4, completed: 1, failed: 3 });
    const found = await once(client, batch, lines.map((one) => one.custom_id));
    const errors = await results(client, batch.error_file_id);
    assert.equal(errors.length, 3);
    assert.equal(found.get('bad').response.status_code, 400);
    assert.equal(found.get('bad').response.body.error.param, 'temperature');
    assert.equal(found.get('none').response.body.error.param, 'messages');
  });

  it('fail with the line and the field of what is wrong, before anything runs', async () => {
    const before = (await server.metrics()).sum('chasqui_requests_finished_total');
    const faulty = [JSON.stringify(line('a', says('x'))), 'nonsense', JSON.stringify(line('a', says('x'))),
      JSON.stringify({ ...line('b', says('x')), method: 'GET' }), JSON.stringify(line('c', says('x'), '/v1/embeddings')),
      JSON.stringify(line('d', { ...says('x'), stream: true })), `${'['.repeat(5 << 20)}`, JSON.stringify({ custom_id: 'e' })];
    const batch = await end(client, (await submit(client, faulty.join('\n'))).id);
    assert.equal(batch.status, 'failed');
    assert.deepEqual(batch.errors.data.map(({ line: at, param, code }) => [at, param, code]), [
      [2, null, 'invalid_json_line'], [3, 'custom_id', 'duplicate_custom_id'], [4, 'method', 'invalid_method'],
      [5, 'url', 'mismatched_url'], [6, 'body.stream', 'invalid_field'], [7, null, 'line_too_long'],
      [8, 'method', 'invalid_method']]);
    for (const { line: at, message } of batch.errors.data) assert.ok(message.startsWith(`line ${at}: `), message);
    assert.deepEqual([batch.output_file_id, batch.error_file_id], [null, null]);
    assert.equal((await server.metrics()).sum('chasqui_requests_finished_total'), before);
    await refusal(client.batches.cancel(batch.id), 409);
  });

  it('are listed and turned page by page, the newest first', async () => {
    const ids = [];
    for (let i = 0; i < 3; ++i) ids.unshift((await submit(client, [line('a', says('x'))])).id);
    const listed = [];
    for await (const batch of client.batches.list({ limit: 1 })) {
      listed.push(batch.id);
      if (listed.length === 3) break;
    }
    assert.deepEqual(listed, ids);
    const files = await client.files.list({ purpose: 'batch_output', order: 'asc' });
    assert.ok(files.data.every((file) => file.purpose === 'batch_output'));
    await refusal(client.batches.list({ limit: 0 }), 400);
    await refusal(client.batches.list({ after: 'batch_x' }), 400);
    await Promise.all(ids.map((id) => end(client, id)));
  });

  it('refuse what they cannot run, and name the field', async () => {
    const file = await upload(client, jsonl([line('a', says('x'))]));
    const good = { input_file_id: file.id, endpoint: chat, completion_window: '24h' };
    const metadata = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v']));
    for (const [field, body] of [['input_file_id', { ...good, input_file_id: 3 }], ['endpoint', { ...good, endpoint: '/v1/files' }],
      ['endpoint', { ...good, endpoint: '/chat/completions' }], ['completion_window', { ...good, completion_window: '31d' }],
      ['completion_window', { ...good, completion_window: 24 }], ['metadata', { ...good, metadata }],
      ['metadata', { ...good, metadata: { a: 1 } }],
      ['output_expires_after.seconds', { ...good, output_expires_after: { anchor: 'created_at', seconds: 1 } }]]) {
      assert.equal((await refused(await post(server, '/v1/batches', body), 400)).param, field);
    }
    assert.equal((await refused(await post(server, '/v1/batches', { ...good, input_file_id: '../x' }), 404)).param, 'input_file_id');
    const long = await refused(await post(server, '/v1/batches', { ...good, input_file_id: 'y'.repeat(300) }), 404);
    assert.equal(long.param, 'input_file_id');
    assert.doesNotMatch(long.message, /yyy/);
    await refused(await server.fetch('/v1/batches/..%2f..%2fetc%2fpasswd'), 404);
    await refused(await server.fetch('/v1/files/..%2flock/content'), 404);
  });

  it('refuse uploads that are none', async () => {
    const form = (parts) => {
      const data = new FormData();
      for (const [name, value, filename] of parts) filename === undefined ? data.append(name, value) : data.append(name, new Blob([value]), filename);
      return server.fetch('/v1/files', { method: 'POST', body: data });
    };
    const file = ['file', '{}\n', 'x.jsonl'];
    const param = async (parts) => (await refused(await form(parts), 400)).param;
    assert.equal(await param([file]), 'purpose');
    assert.equal(await param([file, ['purpose', 'fine-tune']]), 'purpose');
    assert.equal(await param([['purpose', 'batch']]), 'file');
    assert.equal(await param([['purpose', 'batch'], ['file', 'no file']]), 'file');
    assert.equal(await param([['purpose', 'batch'], ['file', '', 'x.jsonl']]), 'file');
    assert.equal(await param([['purpose', 'batch'], ['file', '{}', 'x'.repeat(300)]]), 'file');
    assert.equal(await param([['purpose', 'batch'], file, ['expires_after[seconds]', '1']]), 'expires_after[anchor]');
    await refused(await form(Array.from({ length: 20 }, () => ['purpose', 'batch'])), 400);
    const raw = (type, body) => server.fetch('/v1/files', { method: 'POST', body, headers: { 'content-type': type } });
    assert.equal((await refused(await raw('application/json', '{}'), 400)).param, 'Content-Type');
    assert.equal((await refused(await raw('multipart/form-data', '{}'), 400)).param, 'Content-Type');
    for (const body of ['', '--b', '--b--', '--b\r\n\r\n', '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx']) {
      await refused(await raw('multipart/form-data; boundary=b', body), 400);
    }
    const before = await client.files.list();
    assert.ok(before.data.every((one) => one.bytes > 0));
  });

  it('keep the file that they read, and forget one that is deleted', async () => {
    const lines = Array.from({ length: 400 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 400 }));
    const batch = await submit(client, lines);
    await refusal(client.files.delete(batch.input_file_id), 409);
    await client.batches.cancel(batch.id);
    const cancelled = await end(client, batch.id);
    assert.equal(cancelled.status, 'cancelled');
    assert.deepEqual(await client.files.delete(batch.input_file_id), { id: batch.input_file_id, object: 'file', deleted: true });
    await refusal(client.files.retrieve(batch.input_file_id), 404);
    await refusal(client.files.content(batch.input_file_id), 404);
    const found = await once(client, cancelled, lines.map((one) => one.custom_id));
    const told = [...found.values()].filter((one) => one.error);
    assert.ok(told.length > 0);
    assert.ok(told.every((one) => one.error.code === 'batch_cancelled' && one.response === null));
    assert.equal(cancelled.request_counts.completed, 400 - told.length);
    await refusal(client.batches.cancel(batch.id), 409);
  });

  it('expire with what they have', async () => {
    const lines = Array.from({ length: 400 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 400 }));
    const batch = await end(client, (await submit(client, lines, { completion_window: '1s' })).id);
    assert.equal(batch.status, 'expired');
    const found = await once(client, batch, lines.map((one) => one.custom_id));
    const told = [...found.values()].filter((one) => one.error);
    assert.ok(told.length > 0 && told.every((one) => one.error.code === 'batch_expired'));
    assert.equal((await server.metrics()).value('chasqui_batch_lines_total', { result: 'expired' }), told.length);
  });

  it('let interactive requests pass', async () => {
    const batch = await submit(client, Array.from({ length: 300 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 300, priority: 'interactive' })));
    await until(client, batch.id, (one) => one.status === 'in_progress');
    await server.until((metrics) => metrics.value('chasqui_batch_lines_running') > 0, 'lines run');
    for (let i = 0; i < 3; ++i) assert.equal((await answer(server, `say: ${i}`, { priority: 'interactive' })).text.trim(), `${i}`);
    assert.equal((await client.batches.retrieve(batch.id)).status, 'in_progress');
    await client.batches.cancel(batch.id);
    await end(client, batch.id);
  });
});

describe('each endpoint', async () => {
  it('answers the lines that are for it', async (t) => {
    const server = await start(t, [...demo, '--batch-dir', await folder(t)]);
    const client = sdk(server);
    for (const [endpoint, body, seen] of [
      ['/v1/completions', { prompt: 'A slot is', max_tokens: 4 }, (one) => one.choices[0].text],
      ['/v1/responses', { input: 'What is a slot?', max_output_tokens: 8 }, (one) => one.output.length],
      ['/v1/embeddings', { input: ['a', 'b'] }, (one) => one.data.length === 2 && one.data[0].embedding.length]]) {
      const file = await upload(client, jsonl([line('one', body, endpoint), line('two', body, endpoint)]));
      const made = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: '1h' });
      const batch = await end(client, made.id);
      const found = await once(client, batch, ['one', 'two']);
      for (const { response } of found.values()) {
        assert.equal(response.status_code, 200, JSON.stringify(response));
        assert.ok(seen(response.body), JSON.stringify(response.body));
      }
    }
  });
});

describe('a batch of several models', () => {
  it('asks the model that each line names', async (t) => {
    const server = await start(t, [...two, '--batch-dir', await folder(t)]);
    const client = sdk(server);
    const lines = ['left', 'right', 'right', 'middle'].map((model, i) => line(`${i}`, { ...says('x'), model }));
    const batch = await end(client, (await submit(client, lines)).id);
    const found = await once(client, batch, ['0', '1', '2', '3']);
    assert.deepEqual(['0', '1', '2'].map((id) => found.get(id).response.body.model), ['left', 'right', 'right']);
    assert.equal(found.get('3').response.status_code, 404);
  });
});

describe('an end of the process', () => {
  it('by kill -9 leaves each line one result, however often it comes', async (t) => {
    const dir = await folder(t);
    const flags = [...sim, '--batch-dir', dir, '-np', '4'];
    const lines = Array.from({ length: 300 }, (_, i) => line(`id-${i}`, says(`answer ${i}`)));
    let server = await start(t, flags);
    let id;
    let answered = 0;
    for (let kill = 0; kill < 8; ++kill) {
      const client = sdk(server);
      if (!id) id = (await submit(client, lines)).id;
      const batch = await until(client, id, ({ status, request_counts: counts }) =>
        kill === 0 || ended.includes(status) || counts.completed >= Math.min(answered + 20, 300));
      // What was counted once is counted for good.
      assert.ok(batch.request_counts.completed >= answered);
      answered = batch.request_counts.completed;
      server.signal('SIGKILL');
      await server.ended;
      server = await start(t, flags);
    }
    const client = sdk(server);
    const batch = await end(client, id);
    assert.deepEqual([batch.status, batch.request_counts.completed], ['completed', 300]);
    const found = await once(client, batch, lines.map((one) => one.custom_id));
    for (let i = 0; i < 300; ++i) {
      assert.equal(found.get(`id-${i}`).response.body.choices[0].message.content.trim(), `answer ${i}`);
    }
    assert.deepEqual((await fs.readdir(dir)).filter((name) => /\.(part|results)$/.test(name)), []);
  });

  it('by kill -9 in the middle of a write loses only that', async (t) => {
    const dir = await folder(t);
    const flags = [...sim, '--batch-dir', dir, '-np', '2'];
    const lines = Array.from({ length: 60 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 400 }));
    let server = await start(t, flags);
    const { id } = await submit(sdk(server), lines);
    await until(sdk(server), id, (batch) => batch.request_counts.completed >= 5);
    server.signal('SIGKILL');
    await server.ended;
    const file = path.join(dir, `${id}.results`);
    await fs.truncate(file, (await fs.stat(file)).size - 7);
    await fs.writeFile(path.join(dir, 'file-x.bytes.part'), 'half');
    await fs.writeFile(path.join(dir, 'file-y.bytes'), 'without a word about it');
    server = await start(t, flags);
    const batch = await end(sdk(server), id);
    assert.equal(batch.request_counts.completed, 60);
    await once(sdk(server), batch, lines.map((one) => one.custom_id));
    assert.deepEqual((await fs.readdir(dir)).filter((name) => /part$|results$|file-[xy]\./.test(name)), []);
  });

  it('after which the input file is gone ends the batch and says so', async (t) => {
    const dir = await folder(t);
    const flags = [...sim, '--batch-dir', dir, '-np', '1'];
    let server = await start(t, flags);
    const made = await submit(sdk(server), Array.from({ length: 30 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 400 })));
    await until(sdk(server), made.id, (batch) => batch.status === 'in_progress');
    server.signal('SIGKILL');
    await server.ended;
    await fs.rm(path.join(dir, `${made.input_file_id}.bytes`));
    server = await start(t, flags);
    const batch = await end(sdk(server), made.id);
    assert.deepEqual([batch.status, batch.errors.data[0].code], ['failed', 'input_file_missing']);
    await refusal(sdk(server).files.retrieve(made.input_file_id), 404);
  });

  it('by SIGTERM is not held up, and batches go on at the next start', async (t) => {
    const dir = await folder(t);
    const flags = [...sim, '--batch-dir', dir, '-np', '2', '--drain-time', '1'];
    const lines = Array.from({ length: 50 }, (_, i) => line(`${i}`, slow));
    const first = await start(t, flags);
    const { id } = await submit(sdk(first), lines);
    await until(sdk(first), id, (batch) => batch.request_counts.completed >= 3);
    first.signal('SIGTERM');
    assert.deepEqual(await first.ended, { code: 0, signal: null }, first.stderr);
    const server = await start(t, flags);
    const batch = await end(sdk(server), id);
    assert.equal(batch.status, 'completed');
    await once(sdk(server), batch, lines.map((one) => one.custom_id));
  });

  it('does not revive what was cancelled, nor what has expired', async (t) => {
    const dir = await folder(t);
    const flags = [...sim, '--batch-dir', dir, '-np', '1'];
    let server = await start(t, flags);
    const client = sdk(server);
    const lines = Array.from({ length: 30 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 400 }));
    const cancelled = (await submit(client, lines)).id;
    const expired = (await submit(client, lines, { completion_window: '1s' })).id;
    await client.batches.cancel(cancelled);
    server.signal('SIGKILL');
    await server.ended;
    server = await start(t, flags);
    for (const [id, status] of [[cancelled, 'cancelled'], [expired, 'expired']]) {
      const batch = await end(sdk(server), id);
      assert.equal(batch.status, status);
      await once(sdk(server), batch, lines.map((one) => one.custom_id));
    }
  });
});

describe('tenants', async () => {
  it('see their own files and batches, under all keys of a name, and keep half of their quota', async (t) => {
    const dir = await folder(t);
    const keys = path.join(dir, 'keys');
    await fs.writeFile(keys, 'a1 name=alice in_flight=4\na2 name=alice\nb name=bob\n', { mode: 0o600 });
    const server = await start(t, [...sim, '--batch-dir', path.join(dir, 'b'), '--api-key-file', keys, '-np', '8']);
    server.key = 'a1';
    const [alice, same, bob] = ['a1', 'a2', 'b'].map((key) => sdk(server, key));
    const lines = Array.from({ length: 40 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 2000 }));
    const batch = await submit(alice, lines);
    assert.equal((await same.batches.retrieve(batch.id)).id, batch.id);
    const { id, input_file_id: input } = batch;
    await Promise.all([bob.batches.retrieve(id), bob.batches.cancel(id), bob.files.retrieve(input),
      bob.files.content(input), bob.files.delete(input)].map((wrong) => refusal(wrong, 404)));
    await refusal(bob.batches.create({ input_file_id: batch.input_file_id, endpoint: chat, completion_window: '1h' }), 404);
    assert.deepEqual([(await bob.files.list()).data, (await bob.batches.list()).data], [[], []]);
    await refused(await server.fetch('/v1/files'), 401);
    await server.until((metrics) => metrics.value('chasqui_batch_lines_running') === 2, 'half of four lines run');
    await ask(server, chat, says('hello'), { headers: { authorization: 'Bearer a1' } });
    await alice.batches.cancel(batch.id);
    await end(alice, batch.id);
  });
});

describe('a full folder', () => {
  it('refuses files with 507, and takes them again when there is room', async (t) => {
    const server = await start(t, [...sim, '--batch-dir', await folder(t), '--batch-mib', '1']);
    const client = sdk(server);
    const half = await upload(client, 'x'.repeat(600_000));
    const error = await refusal(upload(client, 'x'.repeat(600_000)), 507);
    assert.match(error.message, /--batch-mib/);
    await client.files.delete(half.id);
    await upload(client, 'x'.repeat(600_000));
  });

  it('keeps results until the disk has room again', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    const mounted = process.platform === 'linux' &&
      spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'tmpfs', dir]).status === 0;
    t.after(async () => {
      if (mounted) spawnSync('umount', ['-l', dir]);
      await fs.rm(dir, { recursive: true, force: true, maxRetries: 20 });
    });
    if (!mounted) return t.skip('no file system can be mounted here');
    // One line after the other, and long ones: most of them end after the filler has been written.
    const server = await start(t, [...sim, '--batch-dir', dir, '-np', '1']);
    const client = sdk(server);
    const lines = Array.from({ length: 40 }, (_, i) => line(`${i}`, { ...slow, max_tokens: 100 }));
    const { id } = await submit(client, lines);
    await fs.writeFile(path.join(dir, 'filler'), Buffer.alloc(1 << 20)).catch(() => {});
    await refusal(upload(client, 'x'.repeat(200_000)), 507);
    await server.until((metrics) => metrics.sum('chasqui_batch_write_failures_total') > 1, 'a write fails');
    await fs.rm(path.join(dir, 'filler'));
    const batch = await end(client, id);
    assert.deepEqual([batch.status, batch.request_counts.completed], ['completed', 40]);
    await once(client, batch, lines.map((one) => one.custom_id));
  });
});
