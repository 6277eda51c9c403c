// The local socket: docs/protocol.md, promise by promise.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { chmod, copyFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { ChasquiError, Client } from '../../clients/chasqui.mjs';
import { answer as askOverHttp, endless, user } from './client.mjs';
import { collect, folder, frame, Raw, startWithSocket, textOf } from './frames.mjs';
import { random } from './random.mjs';
import { demo, hangAfter, run, sim, start } from './server.mjs';

const { describe, it } = test;
const here = path.dirname(fileURLToPath(import.meta.url));
const clients = path.join(here, '../../clients');
const execute = promisify(execFile);
const python = spawnSync('python3', ['-c', 'import json, socket, struct, argparse']).status === 0;
const withPython = { skip: python ? false : 'no python3 with json, socket and argparse' };
const question = 'What is Chasqui?';

// Every frame of every connection at once, and the end of each waited for.
async function flood(t, server, connections, frames) {
  const all = Buffer.concat(Array.from({ length: frames }, (_, id) => frame({ id: id + 1, prompt: 'x', max_tokens: 1, stream: false })));
  await Promise.all(Array.from({ length: connections }, async () => {
    const raw = await Raw.connect(t, server.socket);
    await raw.write(all);
    for (let ended = 0; ended < frames;) {
      const event = await raw.next();
      if (['eos', 'error'].includes(event.event)) ++ended;
    }
    raw.socket.destroy();
  }));
}

it('a flood of small frames leaves no memory behind', async (t) => {
  const server = await startWithSocket(t, demo);
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;
  await flood(t, server, 4, 64); // what is made once
  const before = resident();
  await flood(t, server, 100, 256);
  const end = Date.now() + hangAfter;
  while (resident() > before + 64) { // of 25,600 frames
    assert.ok(Date.now() < end, `${before} MiB before, ${resident()} MiB stay`);
    assert.equal((await server.fetch('/health')).status, 200);
  }
});

describe('frames on the local socket', async () => {
  const server = await startWithSocket(test, demo);

  it('answers what HTTP answers, token by token', async (t) => {
    const client = await server.client(t);
    const expected = await askOverHttp(server, question);
    const events = await collect(client.generate({ messages: user(question), temperature: 0 }));
    const end = events.at(-1);
    assert.equal(textOf(events), expected.text);
    assert.equal(end.event, 'eos');
    assert.equal(end.reason, 'stop');
    assert.deepEqual(Object.keys(end.usage), Object.keys(expected.usage));
    const tokens = events.filter((event) => event.event === 'token');
    assert.equal(tokens.length, end.usage.completion_tokens);
    for (const token of tokens) assert.ok(Number.isInteger(token.token_id) && token.token_id >= 0);
    // The ids are those of the text: what they stand for, joined, is the answer and the end of it.
    const response = await server.fetch('/detokenize', {
      method: 'POST', body: JSON.stringify({ tokens: tokens.map((token) => token.token_id) }) });
    assert.ok((await response.json()).content.startsWith(expected.text));
  });

  it('continues a prompt, whole or by token', async (t) => {
    const client = await server.client(t);
    const fields = { prompt: 'Chasqui', temperature: 0, max_tokens: 8 };
    const streamed = await collect(client.generate(fields));
    assert.equal(streamed.at(-1).reason, 'length');
    const [whole] = (await collect(client.generate({ ...fields, stream: false }))).filter((e) => e.event !== 'queued');
    assert.equal(whole.event, 'eos');
    assert.equal(whole.text, textOf(streamed));
  });

  it('stops before a stop string and says which', async (t) => {
    const client = await server.client(t);
    const events = await collect(client.generate({ messages: user(question), temperature: 0, stop: ['server'] }));
    assert.equal(events.at(-1).reason, 'stop');
    assert.equal(events.at(-1).stop_string, 'server');
    assert.ok(!textOf(events).includes('server'));
  });

  it('gives id and metadata back as they were sent', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    for (const id of ['é"\\', 7, -3, 9007199254740991]) {
      await raw.write(frame({ id, prompt: 'x', max_tokens: 1, stream: false, metadata: { trace: [1, 'ü'] } }));
      const end = await raw.next();
      assert.equal(end.event, 'eos', JSON.stringify(end));
      assert.equal(end.id, id);
      assert.deepEqual(end.metadata, { trace: [1, 'ü'] });
    }
  });

  it('refuses what is wrong by its name, and goes on', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    const wrong = [
      [{ prompt: 'x' }, null, 'id'],
      [{ id: '', prompt: 'x' }, null, 'id'],
      [{ id: 'y'.repeat(129), prompt: 'x' }, null, 'id'],
      [{ id: 1.5, prompt: 'x' }, null, 'id'],
      [{ id: 1 }, 1, 'prompt'],
      [{ id: 1, prompt: 'x', messages: user('x') }, 1, 'prompt'],
      [{ id: 1, prompt: 'x', max_tokens: 'many' }, 1, 'max_tokens'],
      [{ id: 1, prompt: 'x', temperature: -1 }, 1, 'temperature'],
      [{ id: 1, prompt: 'x', n: 2 }, 1, 'n'],
      [{ id: 1, prompt: ['x', 'y'] }, 1, 'prompt'],
      [{ id: 1, prompt: 'x', class: 'vip' }, 1, 'class'],
      [{ id: 1, prompt: 'x', stream: 'yes' }, 1, 'stream'],
      [{ id: 1, prompt: 'x', metadata: 'm' }, 1, 'metadata'],
      [{ id: 1, prompt: 'x', metadata: { m: 'x'.repeat(4096) } }, 1, 'metadata'],
      [{ id: 1, event: 'dance' }, 1, 'event'],
    ];
    for (const [message, id, param] of wrong) {
      await raw.write(frame(message));
      const error = await raw.next();
      assert.deepEqual([error.event, error.id, error.code, error.param], ['error', id, 'invalid_request', param],
        `${JSON.stringify(message)} → ${JSON.stringify(error)}`);
    }
    for (const body of ['', '[]', 'null', '{"id":1', '{"id":1}x', '[['.repeat(5000), Buffer.from([0xff, 0xfe])]) {
      await raw.write(frame(body));
      const error = await raw.next();
      assert.deepEqual([error.event, error.id, error.code], ['error', null, 'invalid_request']);
    }
    await raw.write(frame({ id: 'deep', prompt: 'x', metadata: JSON.parse('{"a":'.repeat(70) + '1' + '}'.repeat(70)) }));
    assert.equal((await raw.next()).event, 'error');
    await raw.write(frame({ id: 'still here', event: 'health' }));
    assert.deepEqual(await raw.next(), { id: 'still here', event: 'result', result: { status: 'ok' } });
  });

  it('does not mix two requests under one id', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    await raw.write(Buffer.concat([
      frame({ id: 'a', prompt: 'x', ...endless }), frame({ id: 'a', prompt: 'y' }), frame({ id: 'a', event: 'cancel' })]));
    const ends = [];
    while (ends.length < 2) {
      const event = await raw.next();
      if (event.event === 'error' || event.event === 'eos') ends.push(event.code ?? event.reason);
    }
    assert.deepEqual(ends, ['conflict', 'cancelled']);
  });

  it('closes a connection whose frame is too large, after saying so', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    const head = Buffer.alloc(4);
    head.writeUInt32LE(8 * 1024 * 1024 + 1);
    await raw.write(head);
    const error = await raw.next();
    assert.deepEqual([error.id, error.event, error.code], [null, 'error', 'too_large']);
    assert.equal(await raw.next(), undefined);
  });

  it('reads a frame of megabytes, and answers others meanwhile', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    const other = await server.client(t);
    const large = frame({ id: 'large', messages: user('x'.repeat(7 * 1024 * 1024)) });
    await raw.write(large.subarray(0, 1_000_000));
    assert.deepEqual(await other.command('health'), { status: 'ok' });
    await raw.write(large.subarray(1_000_000));
    const error = await raw.next();
    assert.deepEqual([error.id, error.code], ['large', 'context_too_long']);
  });

  it('shows metrics and props', async (t) => {
    const client = await server.client(t);
    const metrics = await client.command('metrics');
    assert.ok(metrics.chasqui_socket_connections_open >= 1);
    assert.ok(Object.keys(metrics).some((name) => name.includes('_bucket{')));
    for (const value of Object.values(metrics)) assert.ok(value === null || typeof value === 'number');
    const props = await client.command('props');
    assert.equal(props.limits.frame_bytes, 8 * 1024 * 1024);
    assert.equal(props.limits.frame_unsent_bytes, 256 * 1024);
  });

  it('keeps sessions, which HTTP does not see', async (t) => {
    const client = await server.client(t);
    const session = await client.command('session.create', { messages: user('My name is Ada.') });
    assert.equal(session.kind, 'chat');
    const of = { session: session.id };
    const first = await collect(client.generate({ ...of, event: 'session.generate', temperature: 0 }));
    assert.equal(first.at(-1).event, 'eos');
    await client.command('session.append', { ...of, message: { role: 'user', content: 'What is my name?' } });
    const second = await collect(client.generate({ ...of, event: 'session.generate', temperature: 0 }));
    assert.match(textOf(second), /Ada/);
    assert.ok(second.at(-1).usage.prompt_tokens_details.cached_tokens > 0);
    const fork = await client.command('session.fork', of);
    assert.notEqual(fork.id, session.id);
    assert.equal((await client.command('session.show', of)).tokens, fork.tokens);
    const page = await client.command('session.list', { limit: 1 });
    assert.deepEqual(page.data.map((one) => one.id), [session.id]);
    assert.equal(page.has_more, true);
    assert.equal((await server.fetch(`/v1/sessions/${session.id}`)).status, 404, 'another tenant');
    for (const { id } of [session, fork]) {
      assert.deepEqual(await client.command('session.end', { session: id }), { id, object: 'session.deleted', deleted: true });
    }
    await assert.rejects(client.command('session.show', of), (error) => error instanceof ChasquiError && error.code === 'not_found');
  });

  it('ends what a session generates by session.cancel', async (t) => {
    const client = await server.client(t);
    const { id } = await client.command('session.create', { messages: user(question) });
    const answer = client.generate({ session: id, event: 'session.generate', ...endless });
    let end;
    let cancelled = false;
    for await (const event of answer) {
      end = event;
      if (event.event === 'token' && !cancelled) {
        cancelled = true;
        await client.command('session.cancel', { session: id });
      }
    }
    assert.equal(end.reason, 'cancelled');
    await client.command('session.end', { session: id });
  });

  it('is spoken by a stranger who has read docs/protocol.md', withPython, async () => {
    const expected = await askOverHttp(server, question);
    const { stdout } = await execute('python3', [path.join(here, 'stranger.py'), server.socket, question]);
    const seen = JSON.parse(stdout);
    assert.equal(seen.answer, expected.text);
    assert.equal(seen.whole, expected.text);
    assert.equal(seen.reason, 'stop');
    assert.deepEqual(seen.whole_events, ['eos']);
    assert.deepEqual(seen.metadata, { from: 'afar' });
    assert.ok(seen.tokens_match_usage && seen.token_ids && seen.same);
    assert.ok(seen.changes > 8, `four streams, told apart ${seen.changes} times`);
    assert.ok(seen.session_answer.length > 0 && seen.session_deleted);
    assert.equal(seen.refused.param, 'max_tokens');
    assert.deepEqual(seen.health, { status: 'ok' });
    assert.equal(seen.cancelled, 'cancelled');
  });

  it('is spoken by the clients on the command line', async () => {
    const expected = await askOverHttp(server, question);
    const commands = [[process.execPath, path.join(clients, 'chasqui.mjs')]];
    if (python) commands.push(['python3', path.join(clients, 'chasqui.py')]);
    const cxx = path.join(path.dirname(process.env.CHASQUI_BIN ?? path.join(here, '../../build/bin/chasqui')), 'chasqui_ask');
    if (existsSync(cxx)) commands.push([cxx]);
    for (const [program, ...first] of commands) {
      const common = [...first, '--socket', server.socket];
      const asked = await execute(program, [...common, '--temperature', '0', question]);
      assert.equal(asked.stdout, `${expected.text}\n`, first[0] ?? program);
      const health = await execute(program, [...common, '--command', 'health']);
      assert.deepEqual(JSON.parse(health.stdout), { status: 'ok' });
      await assert.rejects(execute(program, [...common, '--temperature', '-1', question]),
        (error) => error.code === 1 && /temperature/.test(error.stderr));
      await assert.rejects(execute(program, [...first, '--socket', '/nowhere/x.sock', 'x']), (error) => error.code === 1);
    }
  });
});

describe('lines on the local socket', async () => {
  const server = await startWithSocket(test, demo, { LLAMA_ARG_N_PREDICT: '40' });

  it('answers each line, and ends the answer with a line break', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    await raw.write(`${question}\r\n`);
    assert.match(await raw.line(), /Chasqui/);
    await raw.write('\nWhat is a slot?\nWhat is a token?\n');
    assert.match(await raw.line(), /slot/i);
    assert.match(await raw.line(), /token/i);
  });

  it('answers one line and closes, when that is all that came', async (t) => {
    for (const text of ['hi\n', 'hi', 'Hello\n', 'Hello']) {
      const raw = await Raw.connect(t, server.socket, { allowHalfOpen: true });
      raw.socket.end(text);
      const answer = await raw.text();
      assert.ok(answer.length > 1 && answer.endsWith('\n'), JSON.stringify([text, answer]));
    }
  });

  it('answers a short first line while the connection stays open', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    await raw.write('hi\n');
    assert.ok((await raw.line()).length > 0);
  });

  it('shows health and metrics as one line of JSON', async (t) => {
    const health = await Raw.connect(t, server.socket);
    await health.write('/health\n');
    assert.deepEqual(JSON.parse(await health.text()), { status: 'ok' });
    const metrics = await Raw.connect(t, server.socket);
    await metrics.write('/metrics\n');
    const text = await metrics.text();
    assert.equal(text.indexOf('\n'), text.length - 1);
    assert.ok(JSON.parse(text).chasqui_socket_messages_total > 0);
  });

  it('refuses what is no text, and lines without end', async (t) => {
    const raw = await Raw.connect(t, server.socket);
    await raw.write(Buffer.from('bad \xff\xfe bytes\n', 'latin1'));
    assert.match(await raw.line(), /^error: .*UTF-8/);
    await raw.write('x'.repeat(70_000));
    assert.match(await raw.line(), /^error: .*65536/);
    assert.equal(await raw.line(), undefined);
  });
});

describe('the clients', () => {
  it('cancel what no client waits for any more', async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '2', '-c', '200000']);
    const client = await server.client(t);
    for await (const event of client.generate({ prompt: 'go on', ...endless })) if (event.event === 'token') break;
    await server.idle();
    assert.equal((await client.command('health')).status, 'ok');
  });

  it('cancel in Python, too', withPython, async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '2', '-c', '200000']);
    const script = `
import sys
sys.path.insert(0, sys.argv[1])
from chasqui import Client
with Client(sys.argv[2]) as client:
    for event in client.generate(prompt="go on", ignore_eos=True, max_tokens=1000000):
        if event["event"] == "token":
            break
    while client.command("metrics")["chasqui_requests_running"] != 0:
        pass
    print(client.command("health")["status"])
`;
    const { stdout } = await execute('python3', ['-c', script, clients, server.socket]);
    assert.equal(stdout.trim(), 'ok');
  });

  it('cancel what a client in Python waits for longer than it wants to', withPython, async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '1', '-c', '200000']);
    const script = `
import socket, sys
sys.path.insert(0, sys.argv[1])
from chasqui import Client
with Client(sys.argv[2]) as client, Client(sys.argv[2], timeout=0.1) as hurried:
    answer = client.generate(prompt="go on", ignore_eos=True, max_tokens=1000000)
    while next(answer)["event"] != "token":
        pass
    try:
        print(hurried.text(prompt="me, too"))
    except socket.timeout:
        print("too late")
    def waiting():
        metrics = client.command("metrics")
        return sum(value for name, value in metrics.items() if name.startswith("chasqui_requests_waiting"))
    while waiting() != 0:
        pass
`;
    const { stdout } = await execute('python3', ['-c', script, clients, server.socket], { timeout: hangAfter });
    assert.equal(stdout.trim(), 'too late');
  });

  it('go on in Python with a frame whose rest comes after a timeout', withPython, async (t) => {
    const script = `
import socket, sys
sys.path.insert(0, sys.argv[1])
from chasqui import Client
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[2])
server.listen()
with Client(sys.argv[2], timeout=0.01) as client:
    connection, _ = server.accept()
    body = b'{"id":1,"event":"token"}'
    for part in (len(body).to_bytes(4, "little") + body[:5], body[5:]):
        connection.sendall(part)
        try:
            print(client.receive()["event"])
        except socket.timeout:
            print("timeout")
`;
    const socket = path.join(await folder(t), 'late.sock');
    const { stdout } = await execute('python3', ['-c', script, clients, socket], { timeout: hangAfter });
    assert.equal(stdout, 'timeout\ntoken\n');
  });

  it('are programs through a symbolic link, too', async (t) => {
    const server = await startWithSocket(t, sim);
    const link = path.join(await folder(t), 'ask');
    await symlink(path.join(clients, 'chasqui.mjs'), link);
    const { stdout } = await execute(process.execPath, [link, '--socket', server.socket, '--command', 'health']);
    assert.deepEqual(JSON.parse(stdout), { status: 'ok' });
  });

  it('refuse in Python what is not UTF-8', withPython, async (t) => {
    const server = await startWithSocket(t, sim);
    const bad = '$(printf "a\\377")'; // of the shell: an argument of Node is always UTF-8
    for (const command of [`"$@" ${bad}`, `"$@" --command ${bad}`, `printf 'a\\377\\n' | "$@"`]) {
      const ask = ['-c', command, 'sh', 'python3', path.join(clients, 'chasqui.py'), '--socket', server.socket];
      await assert.rejects(execute('sh', ask), { code: 2, stderr: 'chasqui.py: what is asked must be UTF-8\n' });
    }
  });

  it('fail at once when the server has gone', async (t) => {
    const server = await startWithSocket(t, sim);
    const client = await server.client(t);
    await client.command('health');
    server.signal('SIGTERM');
    await server.ended;
    await assert.rejects(client.text({ prompt: 'anybody?' }));
    await assert.rejects(client.text({ prompt: 'anybody?' }));
  });
});

describe('many requests on one connection', () => {
  it('interleaves 50 streams', async (t) => {
    // Slow steps: all are there long before one is half through.
    const server = await startWithSocket(t, [...sim, '--sim-step', '5', '-np', '64', '-c', '65536']);
    const client = await server.client(t);
    const tokens = 300;
    const order = [];
    const answers = Array.from({ length: 50 }, (_, i) =>
      client.generate({ id: i, prompt: `stream ${i}`, ignore_eos: true, max_tokens: tokens, seed: i }));
    const all = await Promise.all(answers.map(async (answer) => {
      const events = [];
      for await (const event of answer) {
        events.push(event);
        if (event.event === 'token') order.push(event.id);
      }
      return events;
    }));
    for (const events of all) {
      assert.equal(events.filter((event) => event.event === 'token').length, tokens);
      assert.deepEqual([events.at(-1).event, events.at(-1).reason], ['eos', 'length']);
    }
    // Everybody has begun before anybody has half of it, and the speaker changes nearly always.
    const begun = new Set();
    const said = new Map();
    for (const id of order) {
      begun.add(id);
      said.set(id, (said.get(id) ?? 0) + 1);
      if (said.get(id) >= tokens / 2) break;
    }
    assert.equal(begun.size, 50, 'one was half through before others began');
    const changes = order.filter((id, i) => i > 0 && id !== order[i - 1]).length;
    assert.ok(changes > order.length * 0.9, `${changes} changes in ${order.length} tokens`);
    // The same seeds alone say the same.
    const alone = await collect(client.generate({ prompt: 'stream 7', ignore_eos: true, max_tokens: tokens, seed: 7 }));
    assert.equal(textOf(alone), textOf(all[7]));
  });

  it('cancels within one step, and the connection goes on', async (t) => {
    const server = await startWithSocket(t, [...demo, '-np', '2']);
    const client = await server.client(t);
    for (let round = 0; round < 5; ++round) {
      const answer = client.generate({ prompt: 'Chasqui', ...endless });
      let end;
      let before;
      for await (const event of answer) {
        end = event;
        if (event.event !== 'token' || before) continue;
        // In the same write, so that the server reads the figures in the moment that it cancels.
        client.socket.cork();
        answer.cancel();
        before = client.command('metrics');
        client.socket.uncork();
      }
      assert.equal(end.reason, 'cancelled');
      const at = (await before).chasqui_generation_tokens_total;
      const after = (await client.command('metrics')).chasqui_generation_tokens_total;
      assert.ok(after - at <= 1, `${after - at} tokens after the cancel`);
    }
    assert.deepEqual(await client.command('health'), { status: 'ok' });
  });

  it('cancels what has not begun, and ignores cancels that come late', async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '1']);
    const client = await server.client(t);
    const running = client.generate({ prompt: 'x', ...endless });
    const stream = running[Symbol.asyncIterator]();
    await stream.next();
    const waiting = client.generate({ prompt: 'y', ...endless });
    waiting.cancel();
    const events = await collect(waiting);
    assert.equal(events.at(-1).reason, 'cancelled');
    assert.equal(events.at(-1).usage.completion_tokens, 0);
    waiting.cancel();
    running.cancel();
    let last;
    for (let next = await stream.next(); !next.done; next = await stream.next()) last = next.value;
    assert.equal(last.reason, 'cancelled');
    assert.deepEqual(await client.command('health'), { status: 'ok' });
  });

  it('refuses more than 256 at once on one connection', async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '2', '--tenant-requests', '0']);
    const raw = await Raw.connect(t, server.socket);
    const frames = Array.from({ length: 257 }, (_, id) => frame({ id, prompt: 'x', ...endless }));
    await raw.write(Buffer.concat(frames));
    for (;;) {
      const event = await raw.next();
      if (event.event !== 'error') continue;
      assert.deepEqual([event.id, event.code], [256, 'quota_exceeded']);
      break;
    }
    raw.socket.destroy();
  });

  it('frees everything when the client leaves', async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '4']);
    const raw = await Raw.connect(t, server.socket);
    await raw.write(Buffer.concat(Array.from({ length: 12 }, (_, id) => frame({ id, prompt: 'x', ...endless }))));
    await raw.next();
    raw.socket.destroy();
    await server.idle();
    await server.until((metrics) => metrics.value('chasqui_socket_connections_open') === 0);
  });

  it('cuts a reader that stops at its cap, and no other client notices', async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '32', '-c', '131072']);
    const stopped = await Raw.connect(t, server.socket);
    const id = (i) => `${i}-${'x'.repeat(120)}`;
    await stopped.write(Buffer.concat(Array.from({ length: 16 }, (_, i) => frame({ id: id(i), prompt: 'x', ...endless }))));
    await stopped.next();
    stopped.socket.pause();
    const reader = await server.client(t);
    const going = reader.generate({ prompt: 'y', ...endless });
    const stream = going[Symbol.asyncIterator]();
    const cut = server.until((metrics) => metrics.value('chasqui_socket_cut_total') === 1, 'the reader is cut');
    let done = false;
    cut.then(() => (done = true));
    while (!done) assert.equal((await stream.next()).value.event, 'token');
    // The sixteen are gone, the one goes on.
    await server.until((metrics) => metrics.value('chasqui_requests_running') === 1);
    for (let i = 0; i < 20; ++i) assert.equal((await stream.next()).value.event, 'token');
    going.cancel();
    for (let next = await stream.next(); !next.done; next = await stream.next());
  });
});

describe('the socket file', () => {
  it('has the mode that was asked for', async (t) => {
    const plain = await startWithSocket(t, sim);
    assert.equal(statSync(plain.socket).mode & 0o777, 0o600);
    const open = await startWithSocket(t, [...sim, '--socket-mode', '0660']);
    assert.equal(statSync(open.socket).mode & 0o777, 0o660);
    for (const mode of ['rw', '0888', '7777']) {
      const { code, stderr } = await run(['serve', ...sim, '--socket-mode', mode]);
      assert.equal(code, 2);
      assert.match(stderr, /0777/);
    }
  });

  it('of a dead server is replaced, of a living one is not, and of neither kind stays', async (t) => {
    const server = await startWithSocket(t, sim);
    const second = await run(['serve', ...sim, '--port', '0', '--socket', server.socket]);
    assert.equal(second.code, 2);
    assert.match(second.stderr, /another server answers/);
    const client = await server.client(t);
    assert.deepEqual(await client.command('health'), { status: 'ok' });

    const where = await folder(t);
    const socket = path.join(where, 's.sock');
    const dying = await start(t, [...sim, '--socket', socket]);
    dying.signal('SIGKILL');
    dying.stop = async () => {};
    await dying.ended;
    assert.ok(existsSync(socket));
    const next = await start(t, [...sim, '--socket', socket]);
    await next.stop();
    assert.ok(!existsSync(socket), 'removed at the end');

    const file = path.join(where, 'file');
    await writeFile(file, 'precious');
    const refused = await run(['serve', ...sim, '--port', '0', '--socket', file]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /no socket/);
  });

  it('is gone, and idle connections closed, while a running request is answered to its end', async (t) => {
    const server = await startWithSocket(t, [...demo, '-np', '2']);
    const idle = await Raw.connect(t, server.socket);
    await idle.write(frame({ id: 1, event: 'health' }));
    await idle.next();
    const client = await server.client(t);
    const answer = client.generate({ prompt: 'Chasqui', ignore_eos: true, max_tokens: 1500 });
    const stream = answer[Symbol.asyncIterator]();
    await stream.next();
    server.signal('SIGTERM');
    assert.equal(await idle.next(), undefined);
    assert.ok(!existsSync(server.socket));
    await assert.rejects(client.text({ prompt: 'too late' }), (error) => error.code === 'unavailable');
    let last;
    for (let next = await stream.next(); !next.done; next = await stream.next()) last = next.value;
    assert.deepEqual([last.event, last.reason, last.usage.completion_tokens], ['eos', 'length', 1500]);
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  const root = { skip: process.getuid?.() === 0 ? false : 'only root can be two users' };
  it('tells users apart: each is a tenant', root, async (t) => {
    const server = await startWithSocket(t, [...sim, '--socket-mode', '0666']);
    const where = path.dirname(server.socket);
    await chmod(where, 0o755);
    const copy = path.join(where, 'chasqui.mjs');
    await copyFile(path.join(clients, 'chasqui.mjs'), copy);
    await chmod(copy, 0o755);
    const client = await server.client(t);
    const { id } = await client.command('session.create', {});
    const list = async (options) => {
      const { stdout } = await execute('node', [copy, '--socket', server.socket, '--command', 'session.list'],
        { ...options, cwd: where });
      return JSON.parse(stdout).data.map((session) => session.id);
    };
    assert.deepEqual(await list({}), [id], 'the same user on another connection');
    assert.deepEqual(await list({ uid: 65534, gid: 65534 }), [], 'another user');
  });
});

describe('noise on the local socket', () => {
  it('lives through 20,000 mutated frames and answers as before', async (t) => {
    const server = await startWithSocket(t, [...sim, '-np', '4']);
    const canary = async () => {
      const client = await server.client(t);
      return client.text({ prompt: 'canary', seed: 5, max_tokens: 24, ignore_eos: true });
    };
    const before = await canary();
    const { below } = random(12345);
    const seeds = [
      { id: 'a', prompt: 'hello world', max_tokens: 2, temperature: 0.5, top_p: 0.9, top_k: 5, stream: true, stop: ['x'], seed: 1 },
      { id: 7, messages: user('hello'), max_tokens: 1, metadata: { k: 'v' }, class: 'background' },
      { id: 'a', event: 'cancel' },
      { id: 's', event: 'session.create', text: 'once', ttl_s: 1 },
      { id: 's', event: 'session.append', session: 'sess_x', text: 'more' },
      { id: 's', event: 'session.generate', session: 'sess_x', max_tokens: 1 },
      { id: 'l', event: 'session.list', limit: 3 },
      { id: 'm', event: 'health' },
    ].map((message) => Buffer.from(JSON.stringify(message)));
    const words = ['null', '-1', '1e999', '"', '{', '}', '[', ']', '\u0000', ',', ':', '18446744073709551616', '"id"', '\ud83d'];
    const mutate = (body) => {
      let bytes = Buffer.from(body);
      for (let n = 1 + below(4); n > 0; --n) {
        const at = below(bytes.length + 1);
        const kind = below(5);
        if (kind === 0 && at < bytes.length) bytes[at] = below(256);
        else if (kind === 1) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.min(bytes.length, at + 1 + below(8)))]);
        else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(words[below(words.length)]), bytes.subarray(at)]);
        else if (kind === 3) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(below(bytes.length + 1))]);
        else if (at < bytes.length) bytes[at] ^= 1 << below(8);
      }
      return bytes;
    };
    // What a client that leaves has sent is not always read; what has been read is what counts.
    const read = async () => (await server.metrics()).value('chasqui_socket_messages_total');
    while ((await read()) < 20_000) {
      const raw = await Raw.connect(t, server.socket);
      raw.socket.removeAllListeners('data');
      raw.socket.resume();
      const batch = [];
      for (let i = 0; i < 400; ++i) {
        const whole = frame(mutate(seeds[below(seeds.length)]));
        // Now and then the length lies, and everything behind it is read wrongly.
        if (below(2000) === 0) whole[below(4)] ^= 1 << below(8);
        batch.push(whole);
      }
      await raw.write(Buffer.concat(batch));
      if (below(10) === 0) raw.socket.destroy();
      else raw.socket.end();
      await raw.ended;
    }
    await server.idle();
    assert.equal(await canary(), before);
    const metrics = await server.metrics();
    assert.equal(metrics.value('chasqui_loop_lost_exceptions_total'), 0);
  });
});
