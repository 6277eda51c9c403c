// `chasqui pull` against a hub of the tests: what it fetches and where that lies, that it goes on after whatever has ended
// it, that it keeps nothing that is wrong, and that its token stays with the hub.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { ask } from './client.mjs';
import { folder } from './frames.mjs';
import { cut, Hub } from './hub.mjs';
import { binary, demo, hangAfter, run, start } from './server.mjs';
import { hasTmux, Terminal } from './terminal.mjs';

const { describe, it } = test;
const bytesOf = (name) => fs.readFileSync(path.join(import.meta.dirname, `../../models/demo/chasqui-${name}.gguf`));
const demoBytes = bytesOf('demo');
const draftBytes = bytesOf('draft');
const repo = 'andes/runner-GGUF';
const files = { 'README.md': '# Runner', 'runner-Q4_0.gguf': draftBytes, 'runner-Q8_0.gguf': demoBytes };
const none = { HF_TOKEN: '', HF_TOKEN_PATH: '', HF_HOME: '', HF_HUB_CACHE: '', HUGGINGFACE_HUB_CACHE: '', XDG_CACHE_HOME: '', MODEL_ENDPOINT: '',
  http_proxy: '', https_proxy: '', HTTPS_PROXY: '', all_proxy: '', ALL_PROXY: '', CURL_CA_BUNDLE: '', SSL_CERT_FILE: '' };

// A hub with one repository, and a home without any model.
async function world(t, options) {
  const hub = await Hub.start(t, options);
  const commit = hub.put(repo, files);
  const home = fs.realpathSync(await folder(t));
  const cache = path.join(home, '.cache/huggingface/hub');
  const at = path.join(cache, 'models--andes--runner-GGUF');
  const env = { ...none, HOME: home, OLLAMA_MODELS: path.join(home, 'ollama'), HF_ENDPOINT: hub.url };
  const oid = (name) => hub.file(repo, name).oid;
  return {
    hub, commit, home, cache, at, env, oid,
    blob: (name) => path.join(at, 'blobs', oid(name)),
    partial: (name) => path.join(at, 'blobs', `${oid(name)}.incomplete`),
    named: (name) => path.join(at, 'snapshots', commit, name),
    pull: (args, more = {}) => run(['pull', ...args], { ...env, ...more }),
    ref: (name = 'main') => fs.readFileSync(path.join(at, 'refs', name), 'utf8'),
    blobs: () => fs.readdirSync(path.join(at, 'blobs')),
  };
}

function good({ code, stderr }) {
  assert.equal(code, 0, stderr);
}

// Runs it until the hub has sent so many bytes and they are in the file; then a signal comes.
async function endedBy(signal, { hub, env, partial }, name, bytes) {
  const held = hub.hold(bytes);
  const child = spawn(binary, ['pull', repo, '--hf-file', name], { env: { ...process.env, ...env } });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const ended = once(child, 'close');
  await held;
  await grown(partial(name), bytes);
  child.kill(signal);
  const [code, by] = await ended;
  return { code, by, stderr };
}

// Its folder tells when it changes.
async function grown(file, bytes) {
  const large = () => fs.existsSync(file) && fs.statSync(file).size >= bytes;
  const seen = new AbortController();
  const signal = AbortSignal.any([seen.signal, AbortSignal.timeout(hangAfter)]);
  const changes = fs.promises.watch(path.dirname(file), { signal });
  let change = changes.next(); // from now on nothing is missed
  for (; !large(); change = changes.next()) await change;
  change.catch(() => {}); // nothing waits for this one
  seen.abort();
}

describe('chasqui pull', () => {
  it('brings a model to where list, serve and Hugging Face find it', async (t) => {
    const { hub, commit, at, env, pull, named, oid, ref, blobs } = await world(t);
    const done = await pull([`hf.co/${repo}:q8_0`]);
    good(done);
    assert.equal(done.stdout, `${named('runner-Q8_0.gguf')}\n`);
    assert.deepEqual(fs.readFileSync(named('runner-Q8_0.gguf')), demoBytes);
    assert.equal(fs.readlinkSync(named('runner-Q8_0.gguf')), `../../blobs/${oid('runner-Q8_0.gguf')}`);
    assert.deepEqual([ref(), blobs()], [commit, [oid('runner-Q8_0.gguf')]]);
    assert.deepEqual(fs.readdirSync(at).sort(), ['blobs', 'refs', 'snapshots']);
    assert.equal(hub.sent, demoBytes.length);

    const listed = JSON.parse((await run(['list', '--json'], env)).stdout);
    assert.deepEqual(listed.map(({ name, path: file }) => [name, file]), [[`${repo}:Q8_0`, named('runner-Q8_0.gguf')]]);
    const server = await start(t, [...demo, '-np', '1', '-c', '512', '-hf', `${repo}:Q8_0`], env);
    const answer = await ask(server, '/v1/chat/completions', { messages: [{ role: 'user', content: 'What is Chasqui?' }], max_tokens: 4 });
    assert.equal(answer.usage.completion_tokens, 4);
    // What opens connections is not even in its memory.
    assert.doesNotMatch(fs.readFileSync(`/proc/${server.pid}/maps`, 'utf8'), /libcurl/);
  });

  it('fetches nothing that is there', async (t) => {
    const { hub, pull, named } = await world(t);
    good(await pull([repo]));
    const sent = hub.sent;
    const again = await pull([repo, '--json']);
    good(again);
    assert.match(again.stderr, /runner-Q8_0\.gguf: is here already/);
    assert.equal(hub.sent, sent);
    const { commit: _, ...told } = JSON.parse(again.stdout);
    assert.deepEqual(told, { name: `${repo}:Q8_0`,
      files: [{ name: 'runner-Q8_0.gguf', bytes: demoBytes.length, fetched_bytes: 0, path: named('runner-Q8_0.gguf') }] });
  });

  it('fetches all parts, and the projector unless it is not wanted', async (t) => {
    const { hub, cache, env, pull } = await world(t);
    hub.put('andes/eye', { 'q8/eye-Q8_0-00001-of-00002.gguf': 'GGUF one', 'q8/eye-Q8_0-00002-of-00002.gguf': 'GGUF two', 'mmproj-eye-F16.gguf': 'GGUF eye' });
    hub.pageSize = 2;
    const names = (done) => (good(done), JSON.parse(done.stdout).files.map(({ name }) => name));
    const parts = ['q8/eye-Q8_0-00001-of-00002.gguf', 'q8/eye-Q8_0-00002-of-00002.gguf'];
    assert.deepEqual(names(await pull(['andes/eye', '--no-mmproj', '--json'])), parts);
    assert.deepEqual(names(await pull(['andes/eye', '--json'])), [...parts, 'mmproj-eye-F16.gguf']);
    assert.deepEqual(names(await pull(['andes/eye', '-hff', 'mmproj-eye-F16.gguf', '--json'])), ['mmproj-eye-F16.gguf']);
    assert.deepEqual(names(await pull([repo, '--hf-file', 'README.md', '--json'])), ['README.md']);
    const found = await run(['list'], env);
    assert.match(found.stdout, /andes\/eye:Q8_0 +16 B/);
    assert.ok(fs.existsSync(path.join(cache, 'models--andes--eye')));
  });

  it('goes to LLAMA_CACHE where that is set', async (t) => {
    const { home, pull, env } = await world(t);
    const cache = { LLAMA_CACHE: path.join(home, 'elsewhere') };
    const done = await pull([repo], cache);
    good(done);
    assert.ok(done.stdout.startsWith(`${home}/elsewhere/models--andes--runner-GGUF/`));
    assert.match((await run(['list'], { ...env, ...cache })).stdout, /andes\/runner-GGUF:Q8_0/);
  });

  it('shows a bar at a terminal', { skip: hasTmux ? false : 'no tmux' }, async (t) => {
    const { hub, env } = await world(t);
    const held = new Promise((resolve) => hub.plans.push({ bytes: demoBytes.length >> 1, then: resolve }));
    const terminal = new Terminal(t, ['pull', `${repo}:Q8_0`], { env, columns: 100 });
    const response = await held;
    await terminal.shows(/runner-Q8_0\.gguf \[#*\.+\] +\d+ % /);
    response.end(demoBytes.subarray(demoBytes.length >> 1));
    await terminal.shows(/runner-Q8_0\.gguf \[#+\] 100 % .*\n[^]*serve it with `chasqui serve -hf andes\/runner-GGUF:Q8_0`[^]*ended 0/);
  });

  it('says what serves just that, also beside another main', { skip: hasTmux ? false : 'no tmux' }, async (t) => {
    const { hub, env, at } = await world(t);
    const says = (args, pattern) => new Terminal(t, ['pull', ...args], { env, columns: 300 }).shows(pattern);
    await says([`${repo}:Q4_0`], /serve it with `chasqui serve -hf andes\/runner-GGUF:Q4_0`[^]*ended 0/);
    const commit = hub.put(repo, { 'runner-Q4_0.gguf': demoBytes, 'mmproj-runner-F16.gguf': 'GGUF eye' }, { branch: 'next' });
    const named = `${at}/snapshots/${commit}/runner-Q4_0.gguf`;
    await says([`${repo}:Q4_0`, '--revision', 'next'], new RegExp(`serve it with \`chasqui serve -m ${named}\`[^]*ended 0`));
    const eye = await says([repo, '--hf-file', 'mmproj-runner-F16.gguf', '--revision', 'next'], /ended 0/);
    assert.doesNotMatch(eye, /serve it/);
  });

  it('follows a repository to its new name', async (t) => {
    const { hub, pull } = await world(t);
    hub.put('andes/old', {}, { movedTo: repo });
    good(await pull(['andes/old:Q4_0']));
    assert.equal(hub.sent, draftBytes.length);
  });

  it('keeps what has not changed where a branch goes on', async (t) => {
    const { hub, pull, env, ref } = await world(t);
    good(await pull([`${repo}:Q4_0`]));
    const commit = hub.put(repo, { ...files, 'README.md': '# Runner, again' });
    good(await pull([`${repo}:Q8_0`]));
    assert.equal(ref(), commit);
    assert.equal(hub.sent, draftBytes.length + demoBytes.length);
    assert.match((await run(['list'], env)).stdout, /:Q4_0 [^]*:Q8_0 /);
    hub.put(repo, { ...files, 'runner-Q4_0.gguf': demoBytes }, { branch: 'refs/pr/1' });
    good(await pull([repo, '--hf-file', 'runner-Q4_0.gguf', '--revision', 'refs/pr/1']));
    assert.notEqual(ref('refs/pr/1'), commit);
    assert.equal(ref(), commit);
    assert.equal(hub.sent, draftBytes.length + demoBytes.length, 'that content was there');
  });
});

describe('chasqui pull goes on', () => {
  const name = 'runner-Q8_0.gguf';
  const part = 300_000;

  for (const [signal, end] of [['SIGKILL', { code: null, by: 'SIGKILL' }], ['SIGINT', { code: 130, by: null }], ['SIGTERM', { code: 143, by: null }]]) {
    it(`after ${signal}, with the bytes that are missing`, async (t) => {
      const the = await world(t);
      const { stderr, ...ended } = await endedBy(signal, the, name, part);
      assert.deepEqual(ended, end);
      if (signal !== 'SIGKILL') assert.match(stderr, /stopped; the same command goes on from here/);
      assert.equal(fs.statSync(the.partial(name)).size, part);
      assert.match((await run(['list'], the.env)).stderr, /no models/);
      const sent = the.hub.sent;
      good(await the.pull([`${repo}:Q8_0`]));
      assert.equal(the.hub.of('contents').at(-1).headers.range, `bytes=${part}-`);
      assert.equal(the.hub.sent - sent, demoBytes.length - part);
      assert.deepEqual(fs.readFileSync(the.named(name)), demoBytes);
      assert.deepEqual(the.blobs(), [the.oid(name)]);
    });
  }

  it('by itself where connections break, servers are busy and bytes trickle', async (t) => {
    const { hub, pull, named } = await world(t);
    hub.plans.push(cut(100_000), { status: 503 }, { ...cut(200_000), pieces: 50 }, { pieces: 100 });
    const done = await pull([`${repo}:Q8_0`]);
    good(done);
    assert.match(done.stderr, /the hub answers 503; going on/);
    assert.deepEqual(hub.of('contents').map(({ headers }) => headers.range), [undefined, 'bytes=100000-', 'bytes=100000-', 'bytes=300000-']);
    assert.equal(hub.sent, demoBytes.length);
    assert.deepEqual(fs.readFileSync(named(name)), demoBytes);
  });

  it('from the beginning where a server knows no ranges', async (t) => {
    const { hub, pull, named } = await world(t);
    hub.plans.push(cut(100_000), { noRanges: true });
    good(await pull([`${repo}:Q8_0`]));
    assert.equal(hub.sent, 100_000 + demoBytes.length);
    assert.deepEqual(fs.readFileSync(named(name)), demoBytes);
  });

  it('once more as a whole where what was there does not fit', async (t) => {
    const { hub, pull, partial, at, named } = await world(t);
    fs.mkdirSync(path.join(at, 'blobs'), { recursive: true });
    fs.writeFileSync(partial(name), Buffer.alloc(1000));
    const done = await pull([`${repo}:Q8_0`]);
    good(done);
    assert.match(done.stderr, /its parts do not fit together/);
    assert.equal(hub.sent, 2 * demoBytes.length - 1000);
    assert.deepEqual(fs.readFileSync(named(name)), demoBytes);
    // One that is too long is no beginning.
    fs.rmSync(at, { recursive: true });
    fs.mkdirSync(path.join(at, 'blobs'), { recursive: true });
    fs.writeFileSync(partial(name), Buffer.alloc(demoBytes.length + 1));
    good(await pull([`${repo}:Q8_0`]));
  });

  it('no more often than it may', async (t) => {
    const { hub, pull, partial } = await world(t);
    hub.plans.push(cut(10), cut(10), cut(10));
    const { code, stderr } = await pull([`${repo}:Q8_0`, '--retries', '1']);
    assert.equal(code, 1, stderr);
    assert.equal(hub.of('contents').length, 2);
    assert.equal(fs.statSync(partial(name)).size, 20, 'what came stays');
  });

  it('where another process has begun, and both end well', async (t) => {
    const { hub, env, pull, named, partial } = await world(t);
    let release;
    const held = new Promise((resolve) => hub.plans.push({ bytes: 1000, then: (response) => resolve((release = response)) }));
    const first = pull([`${repo}:Q8_0`]);
    await held;
    await grown(partial(name), 1000);
    const child = spawn(binary, ['pull', `${repo}:Q8_0`], { env: { ...process.env, ...env } });
    const ended = once(child, 'close');
    child.stderr.setEncoding('utf8');
    let stderr = '';
    for await (const text of child.stderr) {
      stderr += text;
      if (release && /another process fetches it; waiting/.test(stderr)) {
        release.end(demoBytes.subarray(1000));
        release = undefined;
      }
    }
    good(await first);
    assert.equal((await ended)[0], 0, stderr);
    assert.match(stderr, /is here already/);
    assert.equal(hub.of('contents').length, 1);
    assert.deepEqual(fs.readFileSync(named(name)), demoBytes);
  });
});

describe('chasqui pull keeps nothing', () => {
  const name = 'runner-Q8_0.gguf';

  it('that has another checksum, or is longer', async (t) => {
    const { hub, pull, at, blobs } = await world(t);
    const other = Buffer.from(demoBytes);
    other[other.length >> 1] ^= 1;
    for (const content of [other, Buffer.concat([demoBytes, demoBytes])]) {
      hub.plans.push({ content });
      const { code, stderr } = await pull([`${repo}:Q8_0`]);
      assert.equal(code, 1);
      assert.match(stderr, content === other ? /runner-Q8_0\.gguf is damaged: its checksum is [0-9a-f]{64} instead of / : /is longer than the \d+ bytes/);
      assert.ok(!fs.existsSync(path.join(at, 'refs/main')));
      if (content === other) assert.deepEqual(blobs(), []);
    }
    hub.file(repo, 'README.md').bytes = Buffer.from('# Runne!');
    assert.match((await pull([repo, '--hf-file', 'README.md'])).stderr, /README\.md is damaged/);
    hub.file(repo, name).linked = 'b'.repeat(64);
    assert.match((await pull([`${repo}:Q8_0`])).stderr, /is another file at the hub by now/);
  });

  it('that has no room, and says how much there is', async (t) => {
    const { hub, pull } = await world(t);
    hub.file(repo, name).size = 2 ** 60;
    const { code, stderr } = await pull([`${repo}:Q8_0`]);
    assert.equal(code, 1);
    assert.match(stderr, /has room for [\d.]+ .iB; [\d.]+ .iB are still to come/);
    assert.equal(hub.of('contents').length, 0);
  });

  it('of a tree that leads out of its folder', async (t) => {
    const { hub, pull, home } = await world(t);
    hub.put('andes/evil', { '../../../../../../evil-Q8_0.gguf': 'GGUF', '/tmp/evil-Q4_0.gguf': 'GGUF', 'ok-F16.gguf': 'GGUF' });
    const { code, stderr } = await pull(['andes/evil:Q8_0']);
    assert.equal(code, 1);
    assert.match(stderr, /has no Q8_0; it has F16/);
    assert.ok(!fs.existsSync(path.join(home, 'evil-Q8_0.gguf')));
  });
});

describe('the token of chasqui pull', () => {
  const token = 'hf_secretsecretsecretsecretsecretsecret';

  it('goes to the hub and to no other host, and is never shown', async (t) => {
    const { hub, pull, home } = await world(t);
    hub.put('andes/private', { 'private-Q8_0.gguf': 'GGUF' }, { token });
    const kept = path.join(home, 'kept');
    fs.writeFileSync(kept, `${token}\n`);
    for (const [args, env] of [[['--token', token], {}], [[], { HF_TOKEN: token }], [[], { HF_TOKEN_PATH: kept }]]) {
      fs.rmSync(path.join(home, '.cache'), { recursive: true, force: true });
      const done = await pull(['andes/private', ...args], env);
      good(done);
      assert.doesNotMatch(done.stderr + done.stdout, /secret/);
    }
    assert.ok(hub.of('hub').every(({ headers }) => headers.authorization === `Bearer ${token}`));
    assert.equal(hub.of('contents').length, 3);
    assert.ok(hub.of('contents').every(({ headers }) => headers.authorization === undefined));
    assert.match((await run(['pull', '--help'], { HF_TOKEN: token })).stdout, /--token/);
    assert.doesNotMatch((await run(['pull', '--help'], { HF_TOKEN: token })).stdout, /secret/);
  });

  it('is asked for where it is missing', async (t) => {
    const { hub, pull } = await world(t);
    hub.put('andes/private', { 'private-Q8_0.gguf': 'GGUF' }, { token });
    hub.put('andes/gated', { 'gated-Q8_0.gguf': 'GGUF' }, { gated: true });
    const cases = [
      [['andes/private'], /the hub answers 401: .* or it is private; for a private one set HF_TOKEN/],
      [['andes/private', '--token', 'wrong'], /401.*the token is not one of its readers/],
      [['andes/gated'], /the hub answers 403: Access to this model is restricted\. Its conditions are at .*andes\/gated; accept them, and set HF_TOKEN/],
      [['andes/nothing', '--token', token], /there is no repository andes\/nothing at http/],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await pull(args);
      assert.equal(code, 1, stderr);
      assert.match(stderr, message);
    }
  });
});

describe('chasqui pull says what is wrong', () => {
  it('with names', async (t) => {
    const { hub, pull } = await world(t);
    hub.put('andes/weights', { 'model.safetensors': 'x' });
    const cases = [
      [[`${repo}:Q4_K_S`], 1, /has no Q4_K_S; it has Q4_0, Q8_0/],
      [[repo, '--hf-file', 'runner-Q8_1.gguf'], 1, /has no file runner-Q8_1\.gguf; it has .*; did you mean runner-Q8_0\.gguf\?/],
      [['andes/weights'], 1, /has no GGUF file; it has model\.safetensors; .* weights-GGUF/],
      [[repo, '--revision', 'v9'], 1, /has no revision v9/],
      [['runner'], 2, /called USER\/REPO or USER\/REPO:QUANT; got runner/],
      [['../x'], 2, /called USER\/REPO/],
      [[repo, '--revision', '../x'], 2, /--revision is a branch, a tag or a commit/],
      [[`${repo}:Q8_0`, '--hf-file', 'x'], 2, /not both/],
      [[repo, '--token', 'a b'], 2, /the token has spaces/],
      [[repo, '--no-mmprj'], 2, /has no flag --no-mmprj; did you mean '--no-mmproj'\?/],
      [[], 2, /model is required/],
    ];
    for (const [args, exit, message] of cases) {
      const { code, stdout, stderr } = await pull(args);
      assert.deepEqual([code, stdout], [exit, ''], stderr);
      assert.match(stderr, message, args.join(' '));
    }
    assert.equal(hub.of('contents').length, 0);
    assert.match((await run(['pul'])).stderr, /did you mean 'pull'\?/);
  });

  it('with the hub', async (t) => {
    const { hub, pull } = await world(t);
    assert.match((await pull([repo], { HF_ENDPOINT: 'ftp://hub' })).stderr, /HF_ENDPOINT is the address of a hub/);
    const away = await pull([repo], { MODEL_ENDPOINT: 'http://127.0.0.1:1/' });
    assert.equal(away.code, 1);
    assert.match(away.stderr, /127\.0\.0\.1:1: .*; is there a network\?/);
    hub.broken = (request, response) => response.end('<html>');
    const strange = await pull([repo], { HF_ENDPOINT: hub.url.replace('//', '//someone:secret@') });
    assert.match(strange.stderr, /http:\/\/127\.0\.0\.1:\d+: the hub's answer is no JSON object: is that a hub\?/);
    assert.doesNotMatch(strange.stderr, /secret/);
    let asked = 0;
    hub.broken = (request, response) => (++asked, response.destroy());
    assert.equal((await pull([repo, '--retries', '1'])).code, 1);
    assert.equal(asked, 2);
  });

  it('with a certificate, and takes one that is named', async (t) => {
    const dir = await folder(t);
    const at = { key: path.join(dir, 'hub.key'), cert: path.join(dir, 'hub.pem') };
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=hub',
      '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', at.key, '-out', at.cert], { stdio: 'ignore' });
    const { hub, pull } = await world(t, { tls: { key: fs.readFileSync(at.key), cert: fs.readFileSync(at.cert) } });
    const refused = await pull([repo]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /certificate.*cannot be trusted.*SSL_CERT_FILE/);
    const trusted = { SSL_CERT_FILE: at.cert };
    good(await pull([`${repo}:Q4_0`], trusted));
    // From a hub with TLS it goes to no host without.
    hub.contentsUrl = hub.contentsUrl.replace('https:', 'http:');
    const open = await pull([`${repo}:Q8_0`, '--retries', '0'], trusted);
    assert.equal(open.code, 1, open.stderr);
    assert.match(open.stderr, /[Pp]rotocol "http"/);
    assert.equal(hub.of('contents').length, 1);
  });

  it('to those who serve what is not here', async (t) => {
    const { env } = await world(t);
    const { code, stderr } = await run(['serve', '--port', '0', '-hf', `${repo}:Q8_0`], env);
    assert.equal(code, 2);
    assert.match(stderr, /is in no cache of Hugging Face: .*; `chasqui pull andes\/runner-GGUF:Q8_0` downloads it/);
    assert.match((await run(['serve', '--port', '0', '-m', repo], env)).stderr, /`chasqui pull andes\/runner-GGUF` downloads one/);
  });
});
