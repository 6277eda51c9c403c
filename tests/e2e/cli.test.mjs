// chat, top, doctor, inspect, config and completion: the real binary, in pipes and in a real terminal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { binary, demo, hangAfter, run, sim, start } from './server.mjs';
import { hasTmux, Terminal } from './terminal.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-cli-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const file = (name, content) => {
  writeFileSync(path.join(folder, name), content);
  return path.join(folder, name);
};
const inTerminal = { skip: hasTmux ? false : 'tmux is not installed' };
const temperate = ['--temp', '0', '--no-history'];

async function pipe(args, input, env = {}) {
  const child = spawn(binary, args, { env: { ...process.env, ...env }, timeout: hangAfter });
  const out = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (out.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (out.stderr += text));
  child.stdin.end(input);
  const [code, signal] = await once(child, 'close');
  assert.equal(signal, null, `chasqui ${args.join(' ')} hung or crashed: ${out.stderr}`);
  return { code, ...out };
}

describe('chasqui chat in a pipe', async () => {
  it('prints the answer and nothing else', async () => {
    const { code, stdout, stderr } = await pipe(['chat', ...temperate], 'What is Chasqui?\n');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^[^\x1b]+\n$/);
    assert.match(stdout, /Chasqui/);
    assert.equal(stderr, '');
  });

  it('takes a question from its command line', async () => {
    const piped = await pipe(['chat', ...temperate], 'What is Chasqui?');
    const asked = await pipe(['chat', ...temperate, 'What', 'is', 'Chasqui?'], '');
    assert.equal(asked.stdout, piped.stdout);
  });

  it('says the same with a server as without', async (t) => {
    const server = await start(t, demo);
    const url = server.url;
    const local = await pipe(['chat', ...temperate], 'What is a slot?');
    const remote = await pipe(['chat', ...temperate, '--url', url], 'What is a slot?');
    assert.equal(remote.code, 0, remote.stderr);
    assert.equal(remote.stdout, local.stdout);
  });

  it('speaks frames on the local socket, and says the same', async (t) => {
    const socket = path.join(folder, 'frames.sock');
    await start(t, [...demo, '--socket', socket]);
    const local = await pipe(['chat', ...temperate], 'What is a slot?');
    const { code, stdout, stderr } = await pipe(['chat', ...temperate, '--socket', socket], 'What is a slot?');
    assert.equal(code, 0, stderr);
    assert.equal(stdout, local.stdout);
    const long = await pipe(['chat', '--socket', socket], 'word '.repeat(20000));
    assert.equal(long.code, 1);
    assert.match(long.stderr, /context|tokens|bytes/);
    const closed = await pipe(['chat', '--socket', path.join(folder, 'none.sock')], 'hi');
    assert.equal(closed.code, 1);
    assert.match(closed.stderr, /no server listens/);
  });

  it('speaks HTTP on a Unix socket', async (t) => {
    const socket = path.join(folder, 'http.sock');
    await start(t, [...demo, '--unix-socket', socket]);
    const { code, stdout } = await pipe(['chat', ...temperate, '--unix-socket', socket], 'Who are you?');
    assert.equal(code, 0);
    assert.ok(stdout.length > 1);
  });

  for (const [what, args, input, message] of [
    ['without a question', ['chat'], '\n', /no question/],
    ['where no server listens', ['chat', '--url', 'http://127.0.0.1:1'], 'hi', /no server listens/],
    ['with a model that is none', ['chat', '-m', '/dev/null'], 'hi', /not a regular file/],
    ['with a URL that is none', ['chat', '--url', 'gopher://x'], 'hi', /--url/],
  ]) {
    it(`fails ${what} and says why`, async () => {
      const { code, stdout, stderr } = await pipe(args, input);
      assert.equal(code, 1);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    });
  }

  it('passes on what a server says against it', async (t) => {
    const server = createHttpServer((request, response) => {
      const known = request.headers.authorization === 'Bearer secret';
      response.writeHead(known ? 200 : 401);
      response.end(known && request.method === 'POST' ? 'data: {"choices":[{"delta":{"content":"yes"}}]}\n\ndata: [DONE]\n\n' : '{"error":{"message":"Who are you?"}}');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const url = `http://127.0.0.1:${server.address().port}`;
    const { code, stderr } = await pipe(['chat', '--url', url], 'hi');
    assert.equal(code, 1);
    assert.match(stderr, /401: Who are you\?/);
    const good = await pipe(['chat', '--url', url, '--api-key', 'secret'], 'hi');
    assert.equal(good.code, 0, good.stderr);
    assert.equal(good.stdout, 'yes\n');
  });
});

// A server whose answers never end.
async function endless(t) {
  const server = createHttpServer((request, response) => {
    if (request.method === 'GET') return response.end('{"data":[{"id":"endless"}]}');
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = `data: ${JSON.stringify({ choices: [{ delta: { content: 'on and ' } }] })}\n\n`;
    const timer = setInterval(() => response.write(chunk), 20);
    response.on('close', () => clearInterval(timer));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

describe('chasqui chat in a terminal', inTerminal, async () => {
  it('shows Markdown, unless told not to', async (t) => {
    const server = await start(t, sim);
    const shown = async (args, pattern) => {
      const terminal = new Terminal(t, ['chat', ...temperate, '--url', server.url, ...args, 'say: - one **two** and `three` and 2*3']);
      const screen = await terminal.shows(pattern);
      assert.match(screen, /ended 0/);
    };
    await shown([], /^ ?• one two and three and 2\*3\n[^]*ended 0/m);
    await shown(['--plain'], /^ ?- one \*\*two\*\* and `three` and 2\*3\n[^]*ended 0/m);
  });

  it('is edited, remembers, saves, loads and tells its figures', async (t) => {
    const saved = path.join(folder, 'saved.json');
    const history = path.join(folder, 'state', 'history');
    const terminal = new Terminal(t, ['chat', '--temp', '0', '--history', history]);
    await terminal.shows(/^>$/m);
    terminal.enter('/help');
    await terminal.shows(/\/system TEXT/);
    terminal.type('What is Chasquiz');
    terminal.press('BSpace');
    terminal.enter('?');
    await terminal.shows(/What is Chasqui\?\n[^>]*Chasqui[^>]*\n>$/m);
    terminal.enter('/stats');
    await terminal.shows(/last answer: \d+ tokens in[^]*>$/m);
    terminal.enter(`/save ${saved}`);
    await terminal.shows(/2 messages saved/);
    const { messages } = JSON.parse(readFileSync(saved, 'utf8'));
    assert.deepEqual(messages.map((m) => m.role), ['user', 'assistant']);
    assert.equal(messages[0].content, 'What is Chasqui?');
    terminal.enter('/clear');
    await terminal.shows(/forgotten/);
    terminal.enter(`/load ${saved}`);
    await terminal.shows(/2 messages loaded/);
    terminal.enter('/nope');
    await terminal.shows(/no command \/nope/);
    terminal.press('Up', 'Up', 'Up', 'Up'); // /nope, /load, /clear, /save
    await terminal.shows(new RegExp(`> /save ${saved}\\s*$`));
    terminal.press('C-u');
    terminal.type('/sy\t');
    await terminal.shows(/> \/system\s*$/);
    terminal.enter(' Be brief.');
    await terminal.shows(/system message set/);
    terminal.enter('/quit');
    await terminal.shows(/ended 0/);
    assert.match(readFileSync(history, 'utf8'), /Chasqui/);
    assert.equal(statSync(history).mode & 0o077, 0, 'what was typed is for its user alone');
  });

  it('joins lines', async (t) => {
    const saved = path.join(folder, 'lines.json');
    const terminal = new Terminal(t, ['chat', '--no-history', '-n', '4']);
    await terminal.shows(/^>$/m);
    terminal.enter('"""');
    await terminal.shows(/^\.\.\.$/m);
    terminal.enter('one');
    terminal.enter('two');
    terminal.enter('"""');
    await terminal.shows(/^\.\.\. """\n[^]*^>$/m);  // an answer of a token or two may end by itself
    terminal.enter(`/save ${saved}`);
    await terminal.shows(/messages saved/);
    assert.equal(JSON.parse(readFileSync(saved, 'utf8')).messages[0].content, 'one\ntwo');
  });

  it('ends an answer with Ctrl-C, and itself with two at the prompt', async (t) => {
    const url = await endless(t);
    const terminal = new Terminal(t, ['chat', '--no-history', '--url', url]);
    await terminal.shows(/^>$/m);
    terminal.enter('Tell me a very long story');
    await terminal.shows(/story\non and on/);
    terminal.press('C-c');
    await terminal.shows(/\[interrupted\]\n>$/m);
    terminal.press('C-c');
    await terminal.shows(/once more to leave/);
    terminal.press('C-c');
    await terminal.shows(/ended 0/);
  });

  it('interrupts an answer that comes in frames, and asks again on the same connection', async (t) => {
    const socket = path.join(folder, 'interrupted.sock');
    // A long answer of slow steps: else it may have ended by then.
    const server = await start(t, [...sim, '--sim-step', '20', '--ignore-eos', '--socket', socket]);
    const terminal = new Terminal(t, ['chat', '--no-history', '--socket', socket]);
    await terminal.shows(/^>$/m);
    terminal.enter('Tell me a very long story');
    await terminal.shows(/story\n\S+/);
    terminal.press('C-c');
    await terminal.shows(/\[interrupted\]\n>$/m);
    await server.until((metrics) => metrics.value('chasqui_requests_finished_total', { reason: 'cancelled' }) === 1);
    terminal.enter('/stats');
    await terminal.shows(/last answer: [1-9]\d* tokens in[^]*>$/m);
    assert.equal((await server.metrics()).value('chasqui_socket_connections_accepted_total'), 1);
    terminal.enter('/quit');
    await terminal.shows(/ended 0/);
  });

  it('has colours, and none with NO_COLOR', async (t) => {
    const colours = new Terminal(t, ['chat', '--no-history']);
    await colours.shows(/^>$/m);
    assert.match(colours.paintedScreen(), /\x1b\[\d*m?/);
    const plain = new Terminal(t, ['chat', '--no-history'], { env: { NO_COLOR: '1' } });
    await plain.shows(/^>$/m);
    assert.doesNotMatch(plain.paintedScreen(), /\x1b/);
  });
});

describe('chasqui chat in a narrow terminal', inTerminal, async () => {
  it('breaks lines between words', async (t) => {
    const server = await start(t, sim);
    const said = 'several uncommonly long words, misunderstandings and characteristics, are written between margins';
    const terminal = new Terminal(t, ['chat', '--no-history', '--url', server.url, `say: ${said}`], { columns: 40 });
    await terminal.shows(/ended 0/);
    const lines = terminal.screen().split('ended 0')[0].trim().split('\n').map((line) => line.trim());
    assert.equal(lines.join(' '), said);
    assert.ok(lines.length > 2, 'in several lines');
  });
});

describe('chasqui serve in a terminal', inTerminal, async () => {
  it('shows how far loading and trying threads are, and leaves a line of each', async (t) => {
    const terminal = new Terminal(t, ['serve', ...demo, '--port', '0', '--workers', '2', '-np', '2', '--no-log-requests']);
    await terminal.shows(/loading the model \[#{24}\] 100 % +\d+\.\d s\n[^]*trying compute threads \[#{24}\] 100 % +\d+\.\d s\n[^]*serving chasqui-demo/);
    terminal.press('C-c');
    await terminal.shows(/ended 0/);
  });

  it('logs text with warnings in yellow, unless colours are unwanted', async (t) => {
    const flags = ['serve', ...sim, '--port', '0', '--defrag-thold', '0.1'];
    const painted = new Terminal(t, flags, { env: { NO_COLOR: '' } });
    await painted.shows(/Z W --defrag-thold has no effect/);
    assert.match(painted.paintedScreen(), /Z \x1b\[33mW\x1b\[\d*m --defrag-thold/);
    for (const env of [{ NO_COLOR: '1' }, { CHASQUI_LOG_FORMAT: 'json' }]) {
      const plain = new Terminal(t, flags, { env });
      await plain.shows(/--defrag-thold has no effect/);
      assert.doesNotMatch(plain.paintedScreen(), /\x1b\[33m/);
    }
  });

  it('is told by the log where there is no terminal', async (t) => {
    const server = await start(t, demo);
    await server.until(() => /I done: trying compute threads seconds=\d/.test(server.stderr), 'the log tells it');
    assert.match(server.stderr, /I done: loading the model seconds=\d/);
    assert.doesNotMatch(server.stderr, /\[#|\x1b/);
  });
});

describe('chasqui doctor', async () => {
  it('finds this machine well enough for the demo model', async () => {
    const { code, stdout } = await run(['doctor', '--port', '0', '--json']);
    const { ok, checks } = JSON.parse(stdout);
    assert.equal(ok, true, stdout);
    assert.equal(code, 0);
    for (const name of ['cpu', 'cores', 'memory', 'files', 'memlock', 'model', 'template', 'port']) {
      assert.ok(checks.some((check) => check.check === name), name);
    }
  });

  it('says what to do about a port that is taken, a folder that cannot be made and a model that is none', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    t.after(() => taken.close());
    const args = ['doctor', '--port', taken.address().port, '--session-dir', path.join(file('no-folder', ''), 'none'), '-m', '/dev/null', '--json'];
    const { code, stdout } = await run(args.map(String));
    assert.equal(code, 1);
    const bad = JSON.parse(stdout).checks.filter((check) => check.level === 'bad');
    assert.deepEqual(bad.map((check) => check.check).sort(), ['--session-dir', 'model', 'port', 'start']);
    for (const check of bad) assert.ok(check.advice.length > 0, check.check);
  });

  it('warns of keys that others can read', async () => {
    const keys = file('keys', 'k\n');
    chmodSync(keys, 0o644);
    const { code, stdout } = await run(['doctor', '--port', '0', '--api-key-file', keys]);
    assert.equal(code, 0);
    assert.match(stdout, /chmod 600/);
  });

  it('is read in a terminal', inTerminal, async (t) => {
    const terminal = new Terminal(t, ['doctor', '--port', '0']);
    await terminal.shows(/ok +cpu[^]*ok +model[^]*ended 0/);
  });
});

describe('chasqui inspect', async () => {
  it('describes the built-in model as the server does', async (t) => {
    const { code, stdout } = await run(['inspect', '--json']);
    assert.equal(code, 0);
    const seen = JSON.parse(stdout);
    const server = await start(t, demo);
    const props = await (await fetch(`${server.url}/props`)).json();
    assert.equal(seen.plan.slots, props.total_slots);
    assert.equal(seen.plan.cells, props.kv.cells);
    assert.equal(seen.plan.cells_per_slot, props.kv.cells_per_slot);
    assert.equal(seen.plan.trims_anywhere, props.kv.trims_anywhere);
    assert.equal(seen.plan.cuts_snapshots, props.kv.cuts_snapshots);
    assert.equal(seen.chat_template, true);
    const wanted = seen.weights_bytes + 1024 * seen.kv_bytes_per_token;
    assert.equal(seen.memory.find((m) => m.context === 1024 && m.slots === 1).bytes, wanted);
  });

  it('refuses what is no model, without a crash', async () => {
    const half = readFileSync(path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf'));
    for (const [name, bytes] of [
      ['empty.gguf', ''],
      ['text.gguf', 'GGUF is what this begins with, and no more'],
      ['half.gguf', half.subarray(0, half.length / 2)],
    ]) {
      const { code, stdout, stderr } = await run(['inspect', file(name, bytes)]);
      assert.equal(code, 1, name);
      assert.equal(stdout, '');
      assert.match(stderr, new RegExp(name));
    }
  });

  it('draws its table in a terminal', inTerminal, async (t) => {
    const terminal = new Terminal(t, ['inspect']);
    await terminal.shows(/architecture[^]*KV of a token[^]*16 slots[^]*fits +yes[^]*ended 0/);
  });
});

describe('chasqui config', async () => {
  it('prints each setting and where it came from: file, environment, flag, in that order', async () => {
    const toml = file('chasqui.toml', '# mine\nparallel = 3\nctx_size = 3000\n[serve]\nport = 4000\nflash-attn = "off"\nmlock = true\n');
    const env = { CHASQUI_CONFIG: toml, LLAMA_ARG_CTX_SIZE: '4000', LLAMA_ARG_PORT: '4001' };
    const { code, stdout } = await run(['config', '--json', '--port', '4002'], env);
    assert.equal(code, 0);
    const seen = JSON.parse(stdout);
    assert.deepEqual(seen.parallel, { value: '3', origin: `file ${toml}` });
    assert.deepEqual(seen['ctx-size'], { value: '4000', origin: 'environment LLAMA_ARG_CTX_SIZE' });
    assert.deepEqual(seen.port, { value: '4002', origin: 'flag' });
    assert.deepEqual(seen['flash-attn'], { value: 'off', origin: `file ${toml}` });
    assert.equal(seen.mlock.value, 'true');
    assert.deepEqual(seen.workers, { value: '1', origin: 'default' });
  });

  it('prints a file that says the same again', async () => {
    const { stdout } = await run(['config', '-np', '3', '--ttft-target', '1,2,3', '--cache-disk', '/a b']);
    const again = await run(['config', '--config', file('again.toml', stdout)]);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /parallel = 3 .*# file/);
    assert.match(again.stdout, /ttft-target = "1,2,3" .*# file/);
    assert.match(again.stdout, /cache-disk = "\/a b" .*# file/);
  });

  it('prints no default that a file could not have', async () => {
    const { stdout } = await run(['config']);
    const open = stdout.replace(/^# ([a-z0-9-]+ = )/gm, '$1');
    const { code, stderr } = await run(['config', '--config', file('open.toml', open)]);
    assert.equal(code, 0, stderr);
    assert.match(open, /# model is not set/);
    assert.match(open, /# models-memory is three quarters/);
  });

  it('prints a flag that is given several times as a list', async () => {
    const flags = ['-m', '/a.gguf', '-m', '/b.gguf', '-a', 'one,first', '-a', 'two'];
    const { stdout } = await run(['config', ...flags]);
    const again = await run(['config', '--json', '--config', file('several.toml', stdout)]);
    assert.equal(again.code, 0, again.stderr);
    const seen = JSON.parse(again.stdout);
    assert.deepEqual(seen.model.value, ['/a.gguf', '/b.gguf']);
    assert.deepEqual(seen.alias.value, ['one,first', 'two']);
  });

  it('takes an empty list as no setting', async () => {
    const toml = file('empty.toml', 'api-key = []\nmodel = []\nttft-target = []\nmlock = []\nparallel = 3\n');
    const { code, stdout, stderr } = await run(['config', '--json', '--config', toml]);
    assert.equal(code, 0, stderr);
    const seen = JSON.parse(stdout);
    for (const name of ['api-key', 'model', 'ttft-target', 'mlock']) assert.equal(seen[name].origin, 'default', name);
    assert.equal(seen.mlock.value, 'false');
    assert.equal(seen.parallel.value, '3');
  });

  it('never prints a key', async () => {
    const { stdout } = await run(['config', '--api-key', 'topsecret']);
    assert.doesNotMatch(stdout, /topsecret/);
    assert.match(stdout, /hidden/);
  });

  for (const [what, content, message] of [
    ['an unknown key', '# mine\nparallell = 3\n', /bad\.toml: line 2: there is no setting "parallell"/],
    ['an unknown section', '[bench]\nparallel = 3\n', /line 1: .*\[bench\]/],
    ['a key said twice', 'ctx-size = 1\nctx_size = 2\n', /line [12]: .* twice/],
    ['what is no TOML', 'parallel = = 3\n', /line 1/],
    ['a value of another type', 'port = 0\nparallel = 2026-11-21\n', /line 2: "parallel" must be/],
    ['a value that is none', 'parallel = "many"\n', /--parallel/],
  ]) {
    it(`refuses ${what} by its name`, async () => {
      const { code, stderr } = await run(['serve', '--config', file('bad.toml', content)]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }

  it('says where a wrong value came from that was not typed', async () => {
    const toml = (name, content) => ['serve', ...sim, '--config', file(name, content)];
    for (const [args, env, message] of [
      [toml('word.toml', 'port = 0\n\n[serve]\nparallel = "many"\n'), {}, /^--parallel: .*many.* \(\/.*word\.toml, line 4\)$/m],
      [toml('folder.toml', 'port = 0\ncache-disk = "/dev/null"\n'), {}, /--cache-disk: \/dev\/null is no folder.* \(\/.*folder\.toml, line 2\)$/m],
      [['serve'], { LLAMA_ARG_PORT: 'http' }, /^--port: .*http.* \(from LLAMA_ARG_PORT\)$/m],
      [['serve', ...sim, '--port', '0'], { LLAMA_ARG_HOST: 'nowhere' }, /--host nowhere must be .* \(from LLAMA_ARG_HOST\)$/m],
      [['serve', '--turbo'], { LLAMA_ARG_PORT: 'http' }, /--port: .* \(from LLAMA_ARG_PORT\)$/m],
      [['chat', 'hi'], { LLAMA_ARG_THREADS: 'all' }, /^--threads: .* \(from LLAMA_ARG_THREADS\)$/m],
    ]) {
      const { code, stderr } = await run(args, env);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
    for (const flags of [['--port', 'http'], ['--port'], [...sim, '--port', '0', '--host', 'nowhere']]) {
      const { code, stderr } = await run(['serve', ...flags], { LLAMA_ARG_PORT: '1', LLAMA_ARG_HOST: 'elsewhere' });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--port|--host/);
      assert.doesNotMatch(stderr, /from LLAMA_ARG/);
    }
  });

  it('refuses a file without an end', async () => {
    for (const flag of ['--config', '--models-preset']) {
      const { code, stderr } = await run(['serve', flag, '/dev/zero']);
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`${flag} /dev/zero: it has over 4 MiB`));
    }
  });

  it('is what serve runs with', async (t) => {
    const server = await start(t, [...demo, '--config', file('serve.toml', 'parallel = 3\nctx-size = 768\n')]);
    const props = await (await fetch(`${server.url}/props`)).json();
    assert.equal(props.total_slots, 3);
    assert.equal(props.kv.cells_per_slot, 256);
  });

  it('is read in a terminal', inTerminal, async (t) => {
    const terminal = new Terminal(t, ['config', '--port', '4002'], { rows: 100 });
    await terminal.shows(/port = 4002 +# flag[^]*ended 0/);
  });
});

describe('chasqui completion', async () => {
  it('completes commands, flags and their words in bash', async () => {
    const { stdout } = await run(['completion', 'bash']);
    const script = file('completion.bash', stdout);
    const complete = async (...words) => {
      const list = words.map((word) => `'${word}'`).join(' ');
      const command = `source ${script}; COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _chasqui; echo "\${COMPREPLY[*]}"`;
      const child = spawn('bash', ['-c', command], { timeout: hangAfter });
      let text = '';
      child.stdout.on('data', (bytes) => (text += bytes));
      await once(child, 'close');
      return text.trim();
    };
    assert.equal(await complete('chasqui', 'ins'), 'inspect');
    assert.equal(await complete('chasqui', 'serve', '--flash'), '--flash-attn');
    assert.equal(await complete('chasqui', 'serve', '--flash-attn', 'o'), 'off on');
    assert.equal(await complete('chasqui', 'completion', 'f'), 'fish');
  });

  it('has scripts for zsh and fish', async () => {
    assert.match((await run(['completion', 'zsh'])).stdout, /^#compdef chasqui/);
    assert.match((await run(['completion', 'fish'])).stdout, /complete -c chasqui .*-l flash-attn .*auto off on/);
    assert.equal((await run(['completion', 'csh'])).code, 2);
  });
});

describe('chasqui top', async () => {
  const slow = ['--sim-step', '20'];  // an answer is there for as long as one looks

  it('prints one picture of a server', async (t) => {
    const server = await start(t, demo);
    const { code, stdout } = await run(['top', '--once', '-i', '0.1', '--url', server.url]);
    assert.equal(code, 0);
    for (const part of [/chasqui-demo/, /tokens\/s/, /TTFT p50/, /ITL p50/, /decode/, /prefill/, /interactive 0/, /tenants/, /cache +memory/]) {
      assert.match(stdout, part);
    }
    assert.doesNotMatch(stdout, /\x1b/);
  });

  it('fails where no server listens', async () => {
    const { code, stderr } = await run(['top', '--once', '--url', 'http://127.0.0.1:1']);
    assert.equal(code, 1);
    assert.match(stderr, /no server listens/);
  });

  it('lives in a terminal, fits into it, and leaves it as it was', inTerminal, async (t) => {
    const server = await start(t, [...sim, ...slow]);
    const terminal = new Terminal(t, ['top', '-i', '0.2', '--url', server.url]);
    await terminal.shows(/running 0/);
    const leaves = new AbortController();
    const request = fetch(`${server.url}/v1/completions`, {
      method: 'POST', signal: leaves.signal,
      body: JSON.stringify({ prompt: 'Tell me a long story', max_tokens: 3000, ignore_eos: true }),
    }).catch(() => {});
    await terminal.shows(/running 1/);
    await terminal.shows(/tokens\/s +[1-9][\d.]* +.*[▁▂▃▄▅▆▇█]/);
    terminal.resize(60, 8);
    await terminal.shows(/^chasqui top[^]*running/);
    leaves.abort();
    await request;
    await terminal.shows(/running 0/);
    terminal.press('q');
    const screen = await terminal.shows(/ended 0/);
    assert.doesNotMatch(screen, /running/);
  });

  for (const [signal, number] of [['SIGTERM', 15], ['SIGHUP', 1]]) {
    it(`leaves the terminal as it was when ${signal} ends it`, inTerminal, async (t) => {
      const server = await start(t, sim);
      const terminal = new Terminal(t, ['top', '--url', server.url]);
      await terminal.shows(/running 0/);
      assert.deepEqual([terminal.tell('alternate_on'), terminal.tell('cursor_flag')], ['1', '0']);
      terminal.signal(signal);
      const screen = await terminal.shows(new RegExp(`ended ${128 + number}`));
      assert.doesNotMatch(screen, /running/);
      assert.deepEqual([terminal.tell('alternate_on'), terminal.tell('cursor_flag')], ['0', '1']);
      terminal.type('seen');
      await terminal.shows(/seen/);
    });
  }

  it('lists tenants and sequences', inTerminal, async (t) => {
    const keys = file('top-keys', 'k-alice name=alice\nk-bob name=bob class=background\nk-root name=root admin=yes\n');
    const server = await start(t, [...sim, ...slow, '-np', '2', '--api-key-file', keys]);
    server.key = 'k-root';
    const leaves = new AbortController();
    const ask = (key) => fetch(`${server.url}/v1/completions`, {
      method: 'POST', headers: { authorization: `Bearer ${key}` }, signal: leaves.signal,
      body: JSON.stringify({ prompt: 'Tell me a long story', max_tokens: 3000, ignore_eos: true }),
    }).catch(() => {});
    const terminal = new Terminal(t, ['top', '-i', '0.2', '--url', server.url, '--api-key', 'k-root'], { columns: 120 });
    const asked = [ask('k-alice'), ask('k-alice'), ask('k-bob')];
    await terminal.shows(/^tenant +running +waiting +tokens\/s\n +alice +2 +0 +[1-9][\d.]*\n +bob +0 +1 /m);
    await terminal.shows(/alice +standard +writing +[1-9][\d.]* +\d+\/3000 +[\d.]+ s +(\d+)\/\1 +\d+/);
    await terminal.shows(/bob +background +waiting +0\.0 +0\/\d+ .* 0\/\d+/);
    terminal.press('t');
    await terminal.shows(/^chasqui top[^\n]*\nrunning[^\n]*\n\ntenant[^\n]*\n +alice[^\n]*\n +bob[^\n]*\s*$/);
    terminal.press('s');
    await terminal.shows(/^chasqui top[^\n]*\nrunning[^\n]*\n\nsequence[^\n]*\n(.*alice.*\n){2}.*bob.*\s*$/);
    terminal.press('o');
    await terminal.shows(/ITL p50/);
    const stranger = await fetch(`${server.url}/debug/sequences`, { headers: { authorization: 'Bearer k-alice' } });
    assert.equal(stranger.status, 403);
    leaves.abort();
    await Promise.all(asked);
    await terminal.shows(/running 0/);
    terminal.press('q');
    await terminal.shows(/ended 0/);
  });

  it('lists the models of a server with several, and the sequences of all', inTerminal, async (t) => {
    const server = await start(t, [...sim, ...slow, '-m', 'left.gguf', '-m', 'right.gguf']);
    const leaves = new AbortController();
    const ask = (model) => fetch(`${server.url}/v1/completions`, {
      method: 'POST', signal: leaves.signal,
      body: JSON.stringify({ model, prompt: 'Tell me a long story', max_tokens: 3000, ignore_eos: true }),
    }).catch(() => {});
    const terminal = new Terminal(t, ['top', '-i', '0.2', '--url', server.url], { columns: 120 });
    const asked = [ask('right'), ask('right'), ask('left')];
    await terminal.shows(/^chasqui top.* 2 models/);
    await terminal.shows(/^model +state +running +waiting +tokens\/s +memory\n +left +loaded +1 +0 +[1-9].*\n +right +loaded +2 +0 +[1-9]/m);
    await terminal.shows(/^sequence.* model\n(.* left\n)(.* right\n){2}/m);
    terminal.press('m');
    await terminal.shows(/^chasqui top[^\n]*\nrunning[^\n]*\n\nmodel[^\n]*\n +left[^\n]*\n +right[^\n]*\s*$/);
    const count = async (query) => (await (await fetch(`${server.url}/debug/sequences${query}`)).json()).total;
    assert.deepEqual([await count(''), await count('?model=left'), await count('?model=right')], [3, 1, 2]);
    assert.equal((await fetch(`${server.url}/debug/sequences?model=middle`)).status, 404);
    leaves.abort();
    await Promise.all(asked);
    terminal.press('q');
    await terminal.shows(/ended 0/);
  });

  it('goes on when the server has come back', inTerminal, async (t) => {
    const socket = path.join(folder, 'back.sock');
    const first = await start(t, [...demo, '--unix-socket', socket]);
    const terminal = new Terminal(t, ['top', '-i', '0.2', '--url', `unix:${socket}`]);
    await terminal.shows(/running 0/);
    await first.stop();
    await terminal.shows(/! .*no server listens/);
    assert.ok(!existsSync(socket));
    await start(t, [...demo, '--unix-socket', socket]);
    await terminal.shows(/^chasqui top[^!]*running 0/);
    terminal.press('q');
    await terminal.shows(/ended 0/);
  });
});
