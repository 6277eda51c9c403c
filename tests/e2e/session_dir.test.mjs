// --session-dir: sessions survive the process, whatever ends it, as they were last acknowledged.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post, refused, stream } from './client.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;

const greedy = { temperature: 0, max_tokens: 24 };
const questions = ['What is Chasqui?', 'How do I stream answers?', 'Who are you?'];
const open = (server, body = {}, options) => ask(server, '/v1/sessions', body, options);
const command = (server, id, what, body = {}, options) => ask(server, `/v1/sessions/${id}/${what}`, body, options);
const say = (content) => ({ message: { role: 'user', content } });

async function folder(t) {
  const name = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

async function show(server, id, options) {
  const response = await server.fetch(`/v1/sessions/${id}`, options);
  return response.status === 200 ? response.json() : response.status;
}

async function turn(server, id, question, options) {
  await command(server, id, 'append', say(question), options);
  return (await command(server, id, 'generate', greedy, options)).choices[0].message.content;
}

const files = async (dir) => (await fs.readdir(path.join(dir, 'sessions'))).filter((name) => name !== 'lock').sort();

const ends = {
  'a restart': (server) => server.stop(),
  'kill -9': async (server) => {
    server.signal('SIGKILL');
    await server.ended;
  },
};

describe('a server with a folder for its sessions', async () => {
  for (const [what, end] of Object.entries(ends)) {
    it(`goes on after ${what} as if nothing had been`, async (t) => {
      const dir = await folder(t);
      const messages = [{ role: 'system', content: 'You are helpful.' }];
      const steady = await start(t, demo);
      const { id: alike } = await open(steady, { messages });
      let server = await start(t, [...demo, '--session-dir', dir]);
      const { id } = await open(server, { messages });
      for (const question of questions) {
        const answer = await turn(server, id, question);
        assert.equal(answer, await turn(steady, alike, question));
        const before = await show(server, id);
        await end(server);
        server = await start(t, [...demo, '--session-dir', dir]);
        const after = await show(server, id);
        assert.deepEqual({ ...after, expires_at: 0 }, { ...before, expires_at: 0 });
        assert.ok(Math.abs(after.expires_at - before.expires_at) < 60);
        assert.equal((await server.metrics()).value('chasqui_sessions_brought_back_total'), 1);
      }
      assert.equal(await turn(server, id, 'Bye.'), await turn(steady, alike, 'Bye.'));
    });
  }

  it('has also the sessions whose answers have filled their slot', async (t) => {
    const dir = await folder(t);
    const flags = [...demo, '-np', '2', '-c', '512', '--session-dir', dir];
    let server = await start(t, flags);
    const { id } = await open(server, { text: 'Once upon' });
    const { choices } = await command(server, id, 'generate', { temperature: 0, ignore_eos: true });
    assert.equal(choices[0].finish_reason, 'length');
    const before = await show(server, id);
    await server.stop();
    server = await start(t, flags);
    assert.equal((await show(server, id)).tokens, before.tokens);
  });

  it('knows after kill -9 everything that it has acknowledged, and nothing that has ended', async (t) => {
    const dir = await folder(t);
    const first = await start(t, [...sim, '--session-dir', dir]);
    const opened = await Promise.all(Array.from({ length: 20 }, (_, i) => open(first, { text: `story ${i}` })));
    const ids = opened.map((session) => session.id);
    const forks = await Promise.all(ids.map((id) => command(first, id, 'fork')));
    const longer = await Promise.all(ids.map((id) => command(first, id, 'append', { text: ' and more' })));
    await Promise.all(ids.slice(0, 5).map((id) => first.fetch(`/v1/sessions/${id}`, { method: 'DELETE' })));
    const running = await stream(first, `/v1/sessions/${ids[7]}/generate`,
      { max_tokens: 10, stream_options: { include_usage: true } });
    await running.collect();
    const { total_tokens: said } = running.chunks.find((chunk) => chunk.usage).usage;
    await ends['kill -9'](first);
    assert.equal((await files(dir)).filter((name) => name.endsWith('.session')).length, 35);

    const second = await start(t, [...sim, '--session-dir', dir]);
    for (const id of ids.slice(0, 5)) assert.equal(await show(second, id), 404);
    for (const session of longer.slice(5)) {
      const expected = session.id === ids[7] ? said : session.tokens;
      assert.equal((await show(second, session.id)).tokens, expected);
    }
    for (const [i, fork] of forks.entries()) assert.equal((await show(second, fork.id)).tokens, opened[i].tokens);
    const list = await (await second.fetch('/v1/sessions')).json();
    assert.equal(list.data.length, 35);
    const mine = list.data.filter((session) => ids.includes(session.id)).map((session) => session.id);
    assert.deepEqual(new Set(mine), new Set(ids.slice(5)));
  });

  it('sets aside what is damaged, leaves what is of another model, and starts all the same', async (t) => {
    const dir = await folder(t);
    const first = await start(t, [...demo, '--session-dir', dir]);
    const { id: good } = await open(first, { text: 'Once upon a time' });
    const { id: bad } = await open(first, { text: 'Once upon a time' });
    await first.stop();
    const file = path.join(dir, 'sessions', `${bad}.session`);
    const bytes = await fs.readFile(file);
    bytes[bytes.length - 2] ^= 1;
    await fs.writeFile(file, bytes);
    const second = await start(t, [...demo, '--session-dir', dir]);
    assert.equal(await show(second, bad), 404);
    assert.equal((await show(second, good)).state, 'idle');
    const unused = (metrics, reason) => metrics.value('chasqui_session_files_unused', { reason });
    assert.equal(unused(await second.metrics(), 'damaged'), 1);
    await second.says(/session's file cannot be used/);
    assert.ok((await files(dir)).includes(`${bad}.session.damaged`));
    await second.stop();
    const other = await start(t, [...sim, '--session-dir', dir]);
    assert.equal(await show(other, good), 404);
    assert.equal(unused(await other.metrics(), 'foreign'), 1);
    await other.stop();
    const third = await start(t, [...demo, '--session-dir', dir]);
    assert.equal((await show(third, good)).state, 'idle');
  });

  it('gives sessions back to their tenants only, whatever the order of the keys', async (t) => {
    const dir = await folder(t);
    const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });
    const first = await start(t, [...sim, '--session-dir', dir, '--api-key', 'alice,bob']);
    first.key = 'alice';
    const { id } = await open(first, { text: 'mine' }, as('alice'));
    await first.stop();
    const second = await start(t, [...sim, '--session-dir', dir, '--api-key', 'bob,alice']);
    second.key = 'alice';
    assert.equal(await show(second, id, as('bob')), 404);
    assert.equal((await show(second, id, as('alice'))).id, id);
    await second.stop();
    const third = await start(t, [...sim, '--session-dir', dir]);
    assert.equal(await show(third, id), 404);
    assert.equal((await third.metrics()).value('chasqui_session_files_unused', { reason: 'unknown_tenant' }), 1);
  });

  it('says when it cannot keep its word, and keeps it when it can again', async (t) => {
    const dir = await folder(t);
    const server = await start(t, [...sim, '--session-dir', dir]);
    const { id, tokens } = await open(server, { text: 'one' });
    const place = path.join(dir, 'sessions', `${id}.session`);
    await fs.rename(place, `${place}.aside`);
    await fs.mkdir(place);
    const refused = await server.fetch(`/v1/sessions/${id}/append`, { method: 'POST', body: '{"text": " two"}' });
    assert.equal(refused.status, 503);
    assert.match((await refused.json()).error.message, /could not be written to disk/);
    assert.equal((await show(server, id)).tokens, tokens, 'neither on disk nor in memory');
    const generated = await server.fetch(`/v1/sessions/${id}/generate`, { method: 'POST', body: '{"max_tokens": 2}' });
    assert.equal(generated.status, 503);
    assert.equal((await show(server, id)).tokens, tokens);
    const fork = await command(server, id, 'fork', {});
    assert.equal((await command(server, fork.id, 'append', { text: ' more' })).tokens, tokens + 1, 'others can be written');
    await fs.rmdir(place);
    await fs.rename(`${place}.aside`, place);
    const { tokens: now } = await command(server, id, 'append', { text: ' three' });
    const { tokens: three } = await ask(server, '/tokenize', { content: ' three' });
    assert.equal(now, tokens + three.length, 'without what was refused');
    await ends['kill -9'](server);
    const again = await start(t, [...sim, '--session-dir', dir]);
    assert.equal((await show(again, id)).tokens, now);
  });

  it('gets a file again that was lost', async (t) => {
    const dir = await folder(t);
    const server = await start(t, [...sim, '--session-dir', dir]);
    const { id, tokens } = await open(server, { text: 'one' });
    const other = await open(server, { text: 'other' });
    for (const lose of [(file) => fs.rm(file), (file) => fs.truncate(file, 10)]) {
      await lose(path.join(dir, 'sessions', `${id}.session`));
      const refused = await server.fetch(`/v1/sessions/${id}/append`, { method: 'POST', body: '{"text": " two"}' });
      assert.equal(refused.status, 503);
      await command(server, other.id, 'append', { text: ' more' });
      assert.equal((await show(server, id)).tokens, tokens, 'neither on disk nor in memory');
    }
    const { tokens: now } = await command(server, id, 'append', { text: ' two' });
    assert.ok(now > tokens);
    await ends['kill -9'](server);
    const again = await start(t, [...sim, '--session-dir', dir]);
    assert.equal((await show(again, id)).tokens, now);
  });

  it('is the only one there', async (t) => {
    const dir = await folder(t);
    await start(t, [...sim, '--session-dir', dir]);
    const second = await run(['serve', ...sim, '--port', '0', '--session-dir', dir]);
    assert.equal(second.code, 1);
    assert.match(second.stderr, /in use by another process/);
  });
});

// A file system of so many kilobytes; null where this process may not mount one.
async function smallDisk(t, kilobytes) {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  const options = ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', dir];
  const mounted = process.platform === 'linux' && spawnSync('mount', options).status === 0;
  t.after(async () => {
    if (mounted) spawnSync('umount', ['-l', dir]);
    await fs.rm(dir, { recursive: true, force: true, maxRetries: 20 });
  });
  return mounted ? dir : null;
}

describe('a full disk', () => {
  it('refuses sessions with 507, and takes them again when there is room', async (t) => {
    const dir = await smallDisk(t, 64);
    if (!dir) return t.skip('no file system can be mounted here');
    const server = await start(t, [...sim, '--session-dir', dir, '-c', '100000', '-np', '2']);
    const text = 'word '.repeat(8000);
    const error = await refused(await post(server, '/v1/sessions', { text: text.repeat(4) }), 507);
    assert.equal(error.type, 'server_error');
    assert.match(error.message, /No space left/);
    assert.ok((await open(server, { text: 'short' })).id);
  });
});
