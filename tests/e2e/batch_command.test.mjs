// `chasqui batch`: a file of requests from the command line to a server with --batch-dir, and its answers back.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { run, sim, start } from './server.mjs';

const { describe, it } = test;
const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
test.after(() => fs.rm(folder, { recursive: true, force: true, maxRetries: 20 }));
const line = (id, more = {}) => JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/chat/completions',
  body: { messages: [{ role: 'user', content: `say: ${id}` }], max_tokens: 16, ...more } });
const file = async (name, text) => {
  await fs.writeFile(path.join(folder, name), text);
  return path.join(folder, name);
};
const answers = (text) => Object.fromEntries(text.trimEnd().split('\n').map((one) => JSON.parse(one)).map(
  ({ custom_id, response }) => [custom_id, response.status_code]));

describe('chasqui batch', async () => {
  const server = await start(test, [...sim, '--batch-dir', path.join(folder, 'queue')]);
  const batch = (...words) => run(['batch', ...words], { CHASQUI_URL: server.url });

  it('runs a file and writes the answers', async () => {
    const { code, stdout, stderr } = await batch('run', await file('good.jsonl', `${line('a')}\n\n${line('b')}\n`));
    assert.equal(code, 0, stderr);
    assert.deepEqual(answers(stdout), { a: 200, b: 200 });
    assert.match(stderr, /^batch_\w+\nchasqui batch: completed, 2 of 2\n$/);
  });

  it('writes a file that is there whole, and says that lines have failed', async () => {
    const out = path.join(folder, 'out.jsonl');
    const { code, stderr } = await batch('run', await file('one.jsonl', `${line('good')}\n${line('bad', { max_tokens: 'x' })}\n`), '-o', out);
    assert.equal(code, 1);
    assert.match(stderr, /completed, 2 of 2, 1 failed/);
    assert.deepEqual(answers(await fs.readFile(out, 'utf8')), { good: 200, bad: 400 });
    assert.deepEqual((await fs.readdir(folder)).filter((name) => name.endsWith('.part')), []);
  });

  it('submits, shows, lists and fetches', async () => {
    const { stdout } = await batch('submit', await file('two.jsonl', `${line('x')}\n`));
    const id = stdout.trim();
    assert.match(id, /^batch_\w+$/);
    const fetched = await batch('fetch', id, '--wait');
    assert.equal(fetched.code, 0, fetched.stderr);
    assert.deepEqual(answers(fetched.stdout), { x: 200 });
    assert.equal((await batch('show', id)).stdout, `${id}: completed, 1 of 1\n`);
    assert.equal(JSON.parse((await batch('show', id, '--json')).stdout).id, id);
    const listed = (await batch('list')).stdout.split('\n');
    assert.match(listed[0], /^ID +ENDPOINT +STATUS$/);
    assert.ok(listed.some((row) => row.startsWith(id) && row.endsWith('completed, 1 of 1')));
    assert.ok(JSON.parse((await batch('list', '--json')).stdout).some((one) => one.id === id));
    assert.match((await batch('cancel', id)).stderr, /409/);
  });

  it('stops a batch, and does not fetch what has not ended', async () => {
    const many = Array.from({ length: 500 }, (_, i) => line(`${i}`, { max_tokens: 2000, ignore_eos: true })).join('\n');
    const id = (await batch('submit', await file('many.jsonl', many))).stdout.trim();
    const early = await batch('fetch', id);
    assert.equal(early.code, 1);
    assert.match(early.stderr, /has not ended .*--wait/);
    assert.equal((await batch('cancel', id)).code, 0);
    const rest = await batch('fetch', id, '--wait');
    assert.equal(rest.code, 1);
    assert.match(rest.stderr, /cancelled/);
    assert.equal(rest.stdout.trimEnd().split('\n').length, 500);
  });

  it('says which lines of a file are faulty', async () => {
    const { code, stdout } = await batch('run', await file('faulty.jsonl', `${line('a')}\n${line('a')}\n`));
    assert.equal(code, 1);
    assert.match(stdout, /: failed\n {2}line 2: /);
  });

  for (const [what, words, code, text] of [
    ['no file', ['run'], 2, /needs a file/],
    ['a file that is not there', ['run', '/nowhere.jsonl'], 1, /\/nowhere\.jsonl cannot be read/],
    ['a file without requests', ['submit', '/dev/null'], 1, /empty/],
    ['no id', ['show'], 2, /needs the id/],
    ['an id that is a path', ['fetch', '../files'], 2, /needs the id/],
    ['an unknown id', ['show', 'batch_x'], 1, /404/],
    ['an unknown action', ['start'], 2, /run/],
  ]) {
    it(`refuses ${what}`, async () => {
      const refused = await batch(...words);
      assert.equal(refused.code, code, refused.stderr);
      assert.match(refused.stderr, text);
    });
  }

  it('goes on waiting while the server is away, once it has seen the batch', async (t) => {
    const looks = ['gone', 'in_progress', 'gone', 'busy', 'completed'];
    const door = http.createServer((request, response) => {
      const say = (status, body) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
      request.resume();
      if (request.url.endsWith('/content')) return response.end(`${line('a')}\n`);
      const look = looks.shift();
      if (look === 'gone') return request.socket.destroy();
      if (look === 'busy') return say(503, { error: { message: 'starting', type: 'server_error', code: 503 } });
      if (look === 'removed') return say(404, { error: { message: 'no such batch', type: 'not_found_error', code: 404 } });
      return say(200, { id: 'batch_1', status: look, output_file_id: 'file_1' });
    });
    t.after(() => door.close());
    await new Promise((listening) => door.listen(0, '127.0.0.1', listening));
    const fetchIt = () => run(['batch', 'fetch', 'batch_1', '--wait', '--url', `http://127.0.0.1:${door.address().port}`]);
    assert.equal((await fetchIt()).code, 1, 'it has seen nothing yet');
    const { code, stdout, stderr } = await fetchIt();
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `${line('a')}\n`);
    assert.deepEqual(looks, []);
    looks.push('in_progress', 'removed');
    const removed = await fetchIt();
    assert.equal(removed.code, 1);
    assert.match(removed.stderr, /no such batch/);
    assert.deepEqual(looks, [], 'it asks no more once the server has said no');
  });

  it('says that a server keeps no batches', async (t) => {
    const without = await start(t, sim);
    const { code, stderr } = await run(['batch', 'list', '--url', without.url]);
    assert.equal(code, 1);
    assert.match(stderr, /--batch-dir/);
  });
});
