// The command line: what starts, what does not, and what it says then.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer } from './client.mjs';
import { run, sim, start } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const file = (name, content) => {
  writeFileSync(path.join(folder, name), content);
  return path.join(folder, name);
};

describe('the command line', async () => {
  it('explains itself', async () => {
    for (const args of [['--help'], ['serve', '--help']]) {
      const { code, stdout } = await run(args);
      assert.equal(code, 0);
      assert.match(stdout, args.length === 1 ? /serve/ : /--ctx-size[^]*LLAMA_ARG_CTX_SIZE/);
      assert.ok(stdout.split('\n').every((line) => line.length <= 200));
    }
  });

  it('shows what most people set first, each flag once, and examples that work', async () => {
    const { stdout } = await run(['serve', '--help']);
    assert.match(stdout, /\nUsage: chasqui serve .*\n\nMost used:\n {2}-m,--model [^]*\nOptions:\n[^]*\nModel:\n[^]*\nExamples:\n/);
    const top = stdout.slice(0, stdout.indexOf('\nOptions:\n'));
    const flags = (text) => [...text.matchAll(/^ {2}(?:-\w,)?(--[a-z][\w-]*)/gm)].map(([, flag]) => flag);
    assert.deepEqual(flags(top), ['--model', '--hf-repo', '--host', '--port', '--api-key', '--api-key-file', '--ctx-size', '--parallel', '--threads', '--cache-disk']);
    assert.deepEqual(flags(stdout).length, new Set(flags(stdout)).size);
    const page = await run(['config', '--flags']);
    assert.equal(flags(stdout).length, page.stdout.match(/^\| `-/gm).length + 2, 'all of docs/flags.md, --help and --version');
    const examples = [...stdout.matchAll(/^ {2}chasqui serve( .*?)? {2,}\S/gm)].map(([, words = '']) => words.split(' ').filter(Boolean));
    assert.ok(examples.length >= 4);
    for (const words of examples) {
      const { code, stderr } = await run(['config', ...words]);
      assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
    }
  });

  it('shows the commands in groups', async () => {
    const { stdout } = await run(['--help']);
    const groups = [...stdout.matchAll(/^(\w.*):\n((?: {2}.*\n)+)/gm)].map(([, name, lines]) => [name, lines.match(/(?<=^ {2})[a-z-]+/gm)]);
    assert.deepEqual(groups.map(([name]) => name), ['Options', 'Servers and models', 'Chats and batches', 'Checks and views', 'Measurements', 'Other']);
    for (const [index, command] of [[1, 'serve'], [1, 'ps'], [2, 'chat'], [3, 'doctor'], [4, 'bench'], [5, 'man']]) {
      assert.ok(groups[index][1].includes(command), command);
    }
    assert.match(stdout, /\nOptions:\n.*--help.*\n.*--version/);
  });

  it('says what a mistyped command or flag was meant to be', async () => {
    for (const [args, message] of [
      [['serv'], /no subcommand 'serv'; did you mean 'serve'\?/],
      [['hlep'], /did you mean 'help'\?/],
      [['create'], /no subcommand 'create'; `chasqui help` lists all/],
      [[], /a subcommand is required: `chasqui serve`/],
      [['help', 'serv'], /did you mean 'serve'\?/],
      [['serve', '--prot', '8081'], /chasqui serve has no flag --prot; did you mean '--port'\?/],
      [['serve', '--paralel=4'], /did you mean '--parallel'\?/],
      [['top', '--intervall', '3'], /chasqui top has no flag --intervall; did you mean '--interval'\?/],
      [['serve', '--turbo'], /chasqui serve has no flag --turbo; `chasqui serve --help` lists all/],
      [['serve', '--aaa', '1', '--bbb', '2'], /chasqui serve has no flag --aaa;/],
      [['serve', '--port', '0', 'what', '--bbb', '--aaa'], /chasqui serve has no flag --bbb;/],
    ]) {
      const { code, stdout, stderr } = await run(args);
      assert.deepEqual([code, stdout], [2, ''], args.join(' '));
      assert.match(stderr, message);
    }
  });

  it('listens on each address of --host', async (t) => {
    const socket = path.join(folder, 'both.sock');
    const server = await start(t, [...sim, '--host', `127.0.0.1, ::1,${socket}`, '--port', '0']);
    assert.deepEqual(server.addresses.map((address) => address.replace(/:\d+$/, '')), ['http://127.0.0.1', 'http://[::1]', `unix:${socket}`]);
    for (const address of server.addresses.slice(0, 2)) assert.equal((await fetch(`${address}/health`)).status, 200);
    const { code, stderr } = await run(['serve', ...sim, '--host', '127.0.0.1,nowhere', '--port', '0']);
    assert.equal(code, 2);
    assert.match(stderr, /--host nowhere must be/);
  });

  it('asks for cells where they are not to be chosen', async (t) => {
    const { code, stderr } = await run(['serve', '--fit', 'off', '--port', '0']);
    assert.equal(code, 2);
    assert.match(stderr, /--fit off .*--ctx-size/);
    await start(t, [...sim, '--fit', 'off', '-c', '4096']);
  });

  it('has help as a command, and run as another name of chat', async () => {
    const help = await run(['help']);
    assert.deepEqual(help, await run(['--help']));
    const serve = await run(['help', 'serve']);
    assert.deepEqual(serve, await run(['serve', '--help']));
    const chat = await run(['chat', '--help']);
    assert.equal((await run(['run', '--help'])).stdout, chat.stdout);
    assert.equal((await run(['help', 'run'])).code, 0);
    assert.match(serve.stdout, /--session-ttl SECONDS \(1 to 86400; default: 3600\) \(Env:CHASQUI_SESSION_TTL\)/);
    assert.match(serve.stdout, /--port PORT \(0 to 65535; default: 8080\)/);
    assert.doesNotMatch(serve.stdout + chat.stdout, /FLOAT|INT in/);
  });

  it('says its version', async () => {
    for (const args of [['--version'], ['version']]) {
      const { code, stdout } = await run(args);
      assert.equal(code, 0);
      assert.match(stdout, /^chasqui \d+\.\d+\.\d+\n$/);
    }
  });

  for (const [what, args, message] of [
    ['no subcommand', [], /subcommand/],
    ['an unknown subcommand', ['fly'], /fly|subcommand|expected/i],
    ['an unknown flag', ['serve', '--turbo'], /--turbo/],
    ['a flag without its value', ['serve', '--port'], /--port/],
    ['a port that is no number', ['serve', '--port', 'http'], /--port.*http|http.*--port/],
    ['a port out of range', ['serve', '--port', '70000'], /--port.*65535/],
    ['too many slots', ['serve', '-np', '1000'], /--parallel.*256/],
    ['a negative context', ['serve', '-c', '-5'], /--ctx-size/],
    ['an unknown engine', ['serve', '--engine', 'steam'], /--engine.*sim/],
    ['an unknown way to wake', ['serve', '--wakeup', 'bugle'], /--wakeup.*eventfd/],
    ['a key file that is not there', ['serve', '--api-key-file', '/nowhere/keys'], /\/nowhere\/keys/],
    ['an empty key', ['serve', '--port', '0', '--api-key', ''], /--api-key/],
    ['a key file without keys', ['serve', '--port', '0', '--api-key-file', file('keys', '# none yet\n\n')],
      /--api-key/],
  ]) {
    it(`refuses ${what} with exit code 2`, async () => {
      const { code, stdout, stderr } = await run(args);
      assert.equal(code, 2, stdout + stderr);
      assert.match(stderr, message);
      assert.equal(stdout, '');
    });
  }

  it('refuses words for flags that are neither true nor false, from variables as well', async () => {
    for (const [args, env] of [
      [['--no-mmap=perhaps'], {}],
      [[], { LLAMA_ARG_NO_MMAP: 'perhaps' }],
      [[], { LLAMA_ARG_NO_MMAP: '9'.repeat(30) }],
    ]) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', ...args], env);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--no-mmap: must be true or false; got (perhaps|9+)/);
    }
  });

  it('takes what llama-server takes, by variables as well, and flags win', async (t) => {
    const environment =
      { LLAMA_ARG_N_PARALLEL: '5', LLAMA_ARG_CTX_SIZE: '5000', LLAMA_ARG_PORT: '0', LLAMA_ARG_ALIAS: 'mine' };
    const props = async (flags, variables = environment) => {
      const server = await start(t, flags, variables);
      assert.ok(![8080, 1].includes(server.port), 'port 0 is neither the default nor that of the losing variable');
      return (await server.fetch('/props')).json();
    };
    const shown = ({ total_slots, kv, model_alias }) => [total_slots, kv.cells, model_alias];
    assert.deepEqual(shown(await props(sim)), [5, 5000, 'mine']);
    const fromFlags = await props([...sim, '--port', '0', '-np', '2', '--ctx-size', '3000', '-a', 'yours'],
      { ...environment, LLAMA_ARG_PORT: '1' });
    assert.deepEqual(shown(fromFlags), [2, 3000, 'yours']);
  });
});

describe('what is measured at start', async () => {
  const one = ['-c', '512', '-np', '1', '-t', '2'];
  const again = async (t, flags, env) => {
    const server = await start(t, flags, env);
    await server.stop();
    return server.stderr;
  };

  it('is measured once, whatever becomes of the file in between', async (t) => {
    const kept = path.join(mkdtempSync(path.join(folder, 'tuning-')), 'of', 'all');
    const env = { CHASQUI_TUNING_CACHE: kept };
    const files = () => (existsSync(kept) ? readdirSync(kept) : []);
    let stderr = '';
    // Nothing is kept where a step had to be cut, as on a machine that does other things.
    for (let i = 0; i < 20 && files().length === 0; ++i) stderr = await again(t, one, env);
    assert.match(stderr, /compute threads measured/);
    assert.equal(files().length, 1);
    assert.match(await again(t, one, env), /compute threads as measured before/);
    const damaged = path.join(kept, files()[0]);
    const other = await again(t, ['--poll', '0', ...one], env);
    assert.match(other, /compute threads measured/, 'that was of another context');
    writeFileSync(damaged, readFileSync(damaged).subarray(0, 100));
    assert.match(await again(t, one, env), /is ignored[^]*it is damaged[^]*compute threads measured/);
  });

  it('is kept nowhere unless it is asked for', async (t) => {
    const kept = mkdtempSync(path.join(folder, 'tuning-'));
    for (const [flags, env] of [
      [['--no-tuning-cache'], { CHASQUI_TUNING_CACHE: kept }],
      [[], { CHASQUI_TUNING_CACHE: kept, CHASQUI_NO_TUNING_CACHE: '1' }],
    ]) {
      assert.match(await again(t, [...flags, ...one], env), /compute threads measured/);
      assert.deepEqual(readdirSync(kept), []);
    }
  });
});

describe('a start', async () => {
  it('greets with the address, the model and a request to try', async (t) => {
    const server = await start(t, []);
    assert.match(server.stdout[0], /^listening on http:\/\/127\.0\.0\.1:\d+$/);
    assert.match(server.stdout[1], /^serving chasqui-demo \(.+\), 16 slots of \d+ tokens$/);
    // All the flags at their defaults, threads too.
    assert.ok((await answer(server, 'What is Chasqui?', { max_tokens: 2 })).text.length > 0);
  });

  it('says how much memory the model of a file takes, as /v1/models does', async (t) => {
    const model = path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf');
    const server = await start(t, ['-m', model, '-np', '2', '-c', '2048', '-t', '1']);
    const { data: [{ memory_bytes: bytes }] } = await (await server.fetch('/v1/models')).json();
    const [, said] = /^serving chasqui-demo \(.+\), 2 slots of 1024 tokens, (\d+) MiB of memory$/.exec(server.stdout[1]) ?? [];
    assert.equal(Number(said), Math.round(bytes / 2 ** 20), server.stdout[1]);
  });

  it('on an address that strangers reach needs a key', async (t) => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1']) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--host', host]);
      assert.equal(code, 2);
      assert.match(stderr, /--api-key/);
      assert.match(stderr, /--no-auth/);
    }
    for (const flags of [['--api-key', 'secret'], ['--no-auth']]) {
      const server = await start(t, [...sim, '--port', '0', '--host', '0.0.0.0', ...flags]);
      if (flags.length === 2) server.key = 'secret';
      assert.equal((await server.fetch('/health')).status, 200);
    }
  });

  it('on what is no address fails, and says what is', async () => {
    for (const host of ['256.1.1.1', 'nohost.invalid']) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--host', host]);
      assert.equal(code, 2);
      assert.match(stderr, /--host .* must be an IPv4 or IPv6 address/);
    }
  });

  it('of more slots than the context has room for fails, and says which flags', async () => {
    for (const engine of [[], sim]) {
      const { code, stderr } = await run(['serve', ...engine, '--port', '0', '-c', '8', '-np', '16']);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--ctx-size.*--parallel/);
    }
  });

  it('on a taken port fails, and says which', async (t) => {
    const server = await start(t, sim);
    const { code, stderr } = await run(['serve', ...sim, '--port', String(server.port)]);
    assert.equal(code, 2);
    assert.match(stderr, /choose another port with --port/);
    assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${server.port}.*in use`, 'i'));
  });

  it('on a taken port fails before the model is read', async (t) => {
    const server = await start(t, sim);
    const { code, stderr } = await run(['serve', '-m', '/nowhere/model.gguf', '--port', String(server.port)]);
    assert.equal(code, 2);
    assert.match(stderr, /Cannot listen/);
    assert.doesNotMatch(stderr, /nowhere/);
  });

  const keyFile = "# mine\r\n\r\n \t# more\nsha256:" + 'ab'.repeat(32) + ' name=a\r\n \ts3cret\tname=b\r\nother-key\n';
  for (const [what, flags, env, shell] of [
    ['without keys', [], {}, {}],
    ['with a key of the environment', [], { LLAMA_API_KEY: 's3cret' }, { LLAMA_API_KEY: 's3cret' }],
    ['with keys of the environment', [], { LLAMA_API_KEY: 's3cret,other-key' }, { LLAMA_API_KEY: 's3cret,other-key' }],
    ['with a key file', ['--api-key-file', file("it's a key file", keyFile)], {}, {}],
    ['with a key file and a key that was typed', ['--api-key', 'other', '--api-key-file', file('keys of two', 's3cret')], {}, {}],
    ['with a key that was typed', ['--api-key', 's3cret'], {}, { API_KEY: 's3cret' }],
  ]) {
    it(`prints a request that works as it is printed, ${what}`, async (t) => {
      const open = what === 'without keys' ? [] : ['--host', '0.0.0.0', '--port', '0'];
      const server = await start(t, [...sim, ...open, ...flags], env);
      if (open.length > 0) server.key = 's3cret';
      await server.until(() => server.stdout.some((text) => text.startsWith('try: ')), 'it says what to try');
      const line = server.stdout.find((text) => text.startsWith('try: '));
      assert.doesNotMatch(line, /0\.0\.0\.0|What is Chasqui/);
      assert.doesNotMatch(server.stdout.join('\n') + server.stderr, /s3cret|other-key/, 'no key is printed');
      assert.equal(server.stdout.some((text) => text.endsWith('read -r API_KEY')), 'API_KEY' in shell);
      const all = { ...process.env, LLAMA_API_KEY: '', API_KEY: '', ...shell };
      const { status, stdout, stderr } = spawnSync('sh', ['-c', `${line.slice(5)} -sS`], { encoding: 'utf8', env: all });
      assert.equal(status, 0, stderr);
      assert.match(stdout, /data: \[DONE\]/);
    });
  }

  it('on a socket path where another server answers fails, and leaves that one alone', async (t) => {
    const socket = path.join(folder, 'taken.sock');
    const server = await start(t, [...sim, '--port', '0', '--unix-socket', socket]);
    const { code, stderr } = await run(['serve', ...sim, '--host', socket]);
    assert.equal(code, 2);
    assert.match(stderr, /another server/);
    assert.equal((await server.fetch('/health')).status, 200);
  });

  it('on a socket path that a killed server left behind takes it over', async (t) => {
    const socket = path.join(folder, 'left.sock');
    const killed = await start(t, [...sim, '--host', socket]);
    killed.signal('SIGKILL');
    assert.deepEqual(await killed.ended, { code: null, signal: 'SIGKILL' });
    assert.ok(existsSync(socket));
    const next = await start(t, [...sim, '--port', '0', '--unix-socket', socket]);
    assert.deepEqual(next.addresses.at(-1), `unix:${socket}`);
  });

  it('never removes a file that is no socket', async () => {
    const plain = file('plain.sock', 'precious');
    const { code, stderr } = await run(['serve', ...sim, '--host', plain]);
    assert.equal(code, 2);
    assert.match(stderr, /no socket/);
    assert.equal(readFileSync(plain, 'utf8'), 'precious');
  });

  for (const [what, name, content, exits] of [
    ['that is not there', '/nowhere/model.gguf', null, 2],
    ['that is text', 'text.gguf', 'this is no model\n'.repeat(100), 1],
    ['that is empty', 'empty.gguf', '', 1],
    ['that is cut off', 'cut.gguf', Buffer.from('GGUF\u0003\u0000\u0000\u0000\u0001\u0000\u0000\u0000', 'latin1'), 1],
    ['that is a folder', os.tmpdir(), null, 2],
  ]) {
    it(`with a model ${what} fails with a message that names it`, async () => {
      const model = content === null ? name : file(name, content);
      const { code, stdout, stderr } = await run(['serve', '--port', '0', '-m', model]);
      assert.equal(code, exits, stderr);
      assert.ok(stderr.includes(model), stderr);
      assert.doesNotMatch(stdout, /listening/);
    });
  }

  it('with a chat template that is not there fails with a message that names it', async () => {
    const { code, stderr } = await run(['serve', '--port', '0', '--chat-template-file', '/nowhere/template']);
    assert.equal(code, 2);
    assert.match(stderr, /\/nowhere\/template/);
  });

  it('finds every mistake in flags and files before it reads the model', async () => {
    // A model that cannot be read: whatever is said of it would come after the flags.
    const unread = ['serve', '--port', '0', '-m', file('unread.gguf', 'no model')];
    for (const [flags, said] of [
      [['--spec-type', 'draft'], /--spec-type draft needs a file: --model-draft FILE/],
      [['--spec-type', 'eagle3'], /--spec-type eagle3 needs a file: --model-draft FILE/],
      [['--model-draft', '/nowhere/draft.gguf'], /--model-draft: \/nowhere\/draft\.gguf/],
      [['--chat-template-file', '/nowhere/template'], /--chat-template-file: \/nowhere\/template/],
      [['--lora', '/nowhere/adapter.gguf'], /--lora: \/nowhere\/adapter\.gguf/],
      [['--cache-disk', os.tmpdir(), '--cache-ram', '0'], /--cache-ram must not be 0/],
      [['--slot-save-path', os.tmpdir(), '--cache-ram', '0'], /--slot-save-path/],
      [['--cache-disk', '/dev/null'], /--cache-disk: \/dev\/null is no folder/],
      [['--session-dir', '/dev/null/sessions'], /--session-dir: \/dev\/null\/sessions/],
      [['--batch-dir', '/dev/null'], /--batch-dir: \/dev\/null is no folder/],
      [['-np', '5', '--workers', '2'], /--parallel 5 .*--workers 2/],
    ]) {
      const { code, stderr } = await run([...unread, ...flags]);
      assert.equal(code, 2, `${flags}: ${stderr}`);
      assert.match(stderr, said);
      assert.doesNotMatch(stderr, /unread\.gguf/);
    }
  });

  it('is planned by doctor as well', async () => {
    const { code, stdout } = await run(['doctor', '--port', '0', '--spec-type', 'draft', '--json']);
    assert.equal(code, 1);
    const start = JSON.parse(stdout).checks.find((finding) => finding.check === 'start');
    assert.equal(start.level, 'bad');
    assert.match(start.found, /--spec-type draft needs a file/);
  });

  it('logs to standard error, as JSON into a pipe or when asked, and greets in text', async (t) => {
    for (const [flags, env] of [[['--log-format', 'json'], {}], [[], { CHASQUI_LOG_FORMAT: '' }], [['--log-format', 'auto'], {}]]) {
      const server = await start(t, [...sim, ...flags], env);
      assert.match(server.stdout[1], /^serving sim /);
      await server.stop();
      const lines = server.stderr.trim().split('\n').map((line) => JSON.parse(line));
      assert.ok(lines.some(({ message }) => message === 'draining'));
    }
  });

  it('logs text into a pipe when asked, without colours', async (t) => {
    const server = await start(t, [...sim, '--log-format', 'text', '--defrag-thold', '0.1'], { CHASQUI_LOG_FORMAT: 'json' });
    await server.stop();
    assert.match(server.stderr, /^\S+Z W --defrag-thold has no effect[^]*^\S+Z I draining /m);
    assert.ok(!server.stderr.includes('\u001b'));
  });
});
