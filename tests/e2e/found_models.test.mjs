// Models where people have them already: made-up folders of Ollama, of Hugging Face and of llama.cpp, and a folder of files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { ask } from './client.mjs';
import { folder } from './frames.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const gguf = (name) => path.join(import.meta.dirname, `../../models/demo/chasqui-${name}.gguf`);
const small = [...demo, '-np', '1', '-c', '512'];

// What is in them is linked, not copied.
async function home(context) {
  const root = fs.realpathSync(await folder(context));
  const link = (file, below) => {
    fs.mkdirSync(path.dirname(path.join(root, below)), { recursive: true });
    fs.symlinkSync(file, path.join(root, below));
  };
  const write = (below, text) => {
    fs.mkdirSync(path.dirname(path.join(root, below)), { recursive: true });
    fs.writeFileSync(path.join(root, below), text);
  };
  const env = { HOME: root, OLLAMA_MODELS: path.join(root, '.ollama/models'), HF_HOME: '', HF_HUB_CACHE: '', HUGGINGFACE_HUB_CACHE: '', XDG_CACHE_HOME: '' };
  return { root, link, write, env };
}

async function withAll(context) {
  const made = await home(context);
  const digest = 'a'.repeat(64);
  made.link(gguf('demo'), `.ollama/models/blobs/sha256-${digest}`);
  made.write('.ollama/models/manifests/registry.ollama.ai/library/messenger/1b', JSON.stringify({
    layers: [{ mediaType: 'application/vnd.ollama.image.model', digest: `sha256:${digest}` }],
  }));
  const repo = '.cache/huggingface/hub/models--andes--runner-GGUF';
  made.write(`${repo}/refs/main`, 'c0ffee');
  made.link(gguf('demo'), `${repo}/snapshots/c0ffee/runner-Q8_0.gguf`);
  made.link(gguf('draft'), `${repo}/snapshots/c0ffee/runner-Q4_0.gguf`);
  made.link(gguf('demo'), '.cache/llama.cpp/coast_swimmer-GGUF_swimmer-Q8_0.gguf');
  made.write('.cache/llama.cpp/manifest=coast=swimmer-GGUF=latest.json', '{}');
  return made;
}

const props = async (server) => (await server.fetch('/props')).json();
const where = async (server) => (await props(server)).model_path;
const chat = (server, model) =>
  ask(server, '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'What is Chasqui?' }], max_tokens: 4 });

describe('chasqui list', () => {
  it('shows names, sizes, formats and where they are from', async (t) => {
    const { env } = await withAll(t);
    const { code, stdout } = await run(['list'], env);
    assert.equal(code, 0);
    const rows = stdout.trim().split('\n').map((line) => line.split(/ {2,}/));
    assert.deepEqual(rows.map(([name, , ...more]) => [name, more.at(-1)]), [
      ['NAME', 'FROM'],
      ['andes/runner-GGUF:Q4_0', 'Hugging Face'],
      ['andes/runner-GGUF:Q8_0', 'Hugging Face'],
      ['coast/swimmer-GGUF:Q8_0', 'llama.cpp'],
      ['messenger:1b', 'Ollama'],
    ]);
  });

  it('says the same in JSON, with paths', async (t) => {
    const { env, root } = await withAll(t);
    const listed = JSON.parse((await run(['list', '--json'], env)).stdout);
    const one = listed.find(({ name }) => name === 'andes/runner-GGUF:Q8_0');
    assert.deepEqual(one, {
      name: 'andes/runner-GGUF:Q8_0',
      bytes: fs.statSync(gguf('demo')).size,
      format: 'Q8_0',
      from: 'Hugging Face',
      path: path.join(root, '.cache/huggingface/hub/models--andes--runner-GGUF/snapshots/c0ffee/runner-Q8_0.gguf'),
    });
  });

  it('says where it looked when there is nothing', async (t) => {
    const { env, root } = await home(t);
    const { code, stdout, stderr } = await run(['list'], env);
    assert.deepEqual([code, stdout], [0, '']);
    assert.match(stderr, new RegExp(`no models in .*${root}/\\.cache/huggingface/hub`));
    assert.equal((await run(['list', '--json'], env)).stdout, '[]\n');
    const nowhere = await run(['list', '--models-dir', `${root}/nowhere`], env);
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.stderr, /nowhere: No such file or directory/);
  });
});

describe('a name of a model', () => {
  it('is one of Ollama', async (t) => {
    const { env, root } = await withAll(t);
    const server = await start(t, [...small, '-m', 'messenger:1b'], env);
    assert.equal(await where(server), `${root}/.ollama/models/blobs/sha256-${'a'.repeat(64)}`);
    assert.equal((await chat(server, 'messenger:1b')).model, 'messenger:1b');
  });

  it('is a repository of Hugging Face, with -m and with -hf', async (t) => {
    const { env } = await withAll(t);
    const server = await start(t, [...small, '-m', 'hf.co/andes/runner-GGUF:q8_0', '-hf', 'coast/swimmer-GGUF'], env);
    assert.match(await where(server), /snapshots\/c0ffee\/runner-Q8_0\.gguf$/);
    const listed = await (await server.fetch('/v1/models')).json();
    assert.deepEqual(listed.data.map(({ id }) => id), ['hf.co/andes/runner-GGUF:q8_0', 'coast/swimmer-GGUF']);
    assert.equal((await chat(server, 'coast/swimmer-GGUF')).model, 'coast/swimmer-GGUF');
  });

  it('is found for the draft model, for one file, by variables and by inspect', async (t) => {
    const { env } = await withAll(t);
    const flags = [...small, '--hf-file', 'runner-Q8_0.gguf', '-hfd', 'andes/runner-GGUF:Q4_0', '-a', 'x'];
    const server = await start(t, flags, { ...env, LLAMA_ARG_HF_REPO: 'andes/runner-GGUF' });
    assert.match(await where(server), /runner-Q8_0\.gguf$/);
    assert.equal((await chat(server, 'x')).model, 'x');
    const seen = await run(['inspect', '--json', 'messenger:1b'], env);
    assert.equal(seen.code, 0, seen.stderr);
    assert.equal(JSON.parse(seen.stdout).file_bytes, fs.statSync(gguf('demo')).size);
  });

  it('that is not there ends the start with those that are near', async (t) => {
    const { env } = await withAll(t);
    const cases = [
      [['-m', 'messenger:3b'], /--model messenger:3b: there is neither such a file nor a model of this name in .*; messenger:1b, .* are there/],
      [['-hf', 'andes/runner-GGUF:Q2_K'], /--hf-repo andes\/runner-GGUF:Q2_K: .* has no Q2_K; it has runner-Q4_0\.gguf, runner-Q8_0\.gguf/],
      [['-hf', 'andes/walker'], /andes\/walker is in no cache of Hugging Face: looked in /],
      [['-hf', 'walker'], /called USER\/REPO or USER\/REPO:QUANT; got walker/],
      [['-hfd', 'andes/walker'], /--hf-repo-draft andes\/walker: /],
      [['--hf-file', 'x.gguf'], /--hf-file is a file of one repository: give --hf-repo once, not 0 times/],
      [['-m', 'messenger.gguf'], /messenger\.gguf/],
    ];
    for (const [flags, message] of cases) {
      const { code, stderr } = await run(['serve', '--port', '0', ...flags], env);
      assert.equal(code, 2, flags.join(' '));
      assert.match(stderr, message, flags.join(' '));
    }
    const unseen = await run(['inspect', 'messenger:3b'], env);
    assert.equal(unseen.code, 1);
    assert.match(unseen.stderr, /messenger:1b/);
  });
});

describe('chasqui run', () => {
  const few = ['-n', '4', '--temp', '0', '--no-history', '-t', '1', '-c', '512'];

  it('takes a model and a question, as Ollama does', async (t) => {
    const { env, root } = await withAll(t);
    const asked = await run(['chat', ...few, '-m', 'messenger:1b', 'What is Chasqui?'], env);
    assert.equal(asked.code, 0, asked.stderr);
    fs.symlinkSync(gguf('demo'), path.join(root, 'here.gguf'));
    for (const model of ['messenger:1b', 'andes/runner-GGUF:Q8_0', path.join(root, 'here.gguf')]) {
      assert.deepEqual(await run(['run', ...few, model, 'What', 'is', 'Chasqui?'], env), asked, model);
    }
  });

  it('takes what is no name for the question', async (t) => {
    const { env } = await withAll(t);
    const asked = await run(['chat', ...few, 'What is Chasqui?'], env);
    assert.equal(asked.code, 0, asked.stderr);
    assert.deepEqual(await run(['run', ...few, 'What is Chasqui?'], env), asked);
    assert.deepEqual(await run(['run', ...few, 'What', 'is', 'Chasqui?'], env), asked);
    const word = await run(['chat', ...few, 'messenger:1b'], env);
    assert.equal(word.code, 0, word.stderr);
    assert.deepEqual(await run(['run', ...few, '-m', 'messenger:1b', 'messenger:1b'], env), word);
  });

  it('refuses a name that is not there', async (t) => {
    const { env } = await withAll(t);
    for (const name of ['messenger:3b', 'andes/walker', 'nowhere.gguf', './nowhere/model']) {
      const { code, stdout, stderr } = await run(['run', ...few, name, 'hi'], env);
      assert.deepEqual([code, stdout], [1, ''], name);
      assert.ok(stderr.startsWith(`chasqui run: ${name}: there is neither a model`), stderr);
      assert.match(stderr, /`chasqui list` .*`chasqui pull USER\/REPO`/);
    }
  });
});

describe('chasqui show', () => {
  it('says what inspect says of a model that is here, where no server answers', async (t) => {
    if (await fetch('http://127.0.0.1:8080/').then(() => true, () => false)) return t.skip('a server listens on port 8080');
    const { env } = await withAll(t);
    const seen = await run(['inspect', '--json', 'messenger:1b'], env);
    assert.equal(seen.code, 0, seen.stderr);
    const shown = await run(['show', '--json', 'messenger:1b'], env);
    assert.equal(shown.code, 0, shown.stderr);
    for (const key of ['architecture', 'file_bytes', 'weights_bytes']) {
      assert.deepEqual(JSON.parse(shown.stdout)[key], JSON.parse(seen.stdout)[key], key);
    }
    assert.match(shown.stderr, /^chasqui show: 127\.0\.0\.1:8080: no server listens there; this is what its file says\n$/);
    const none = await run(['show', 'messenger:3b'], env);
    assert.deepEqual([none.code, none.stdout], [1, '']);
    assert.match(none.stderr, /no server listens there; messenger:3b: there is neither such a file nor a model of this name/);
  });

  it('asks the server that was named, and no other', async (t) => {
    const { env } = await withAll(t);
    for (const [args, more] of [[['--url', 'http://127.0.0.1:1'], {}], [[], { CHASQUI_URL: 'http://127.0.0.1:1' }]]) {
      const { code, stdout, stderr } = await run(['show', 'messenger:1b', ...args], { ...env, ...more });
      assert.deepEqual([code, stdout, stderr], [1, '', 'chasqui show: 127.0.0.1:1: no server listens there\n']);
    }
  });
});

describe('--models-dir', () => {
  it('serves each file and each folder in it', async (t) => {
    const { link, root } = await home(t);
    link(gguf('demo'), 'dir/b.gguf');
    link(gguf('draft'), 'dir/a-Q4_0-00001-of-00001.gguf');
    link(gguf('demo'), 'dir/inner/model.gguf');
    link(gguf('demo'), 'dir/inner/mmproj-model.gguf');
    const server = await start(t, [...small, '--models-dir', `${root}/dir`]);
    const listed = await (await server.fetch('/v1/models')).json();
    assert.deepEqual(listed.data.map(({ id }) => id), ['a-Q4_0', 'b', 'inner']);
    assert.equal((await chat(server, 'inner')).model, 'inner');
    assert.equal((await chat(server)).model, 'a-Q4_0');
  });

  it('goes with --model and with a preset', async (t) => {
    const { write, root } = await home(t);
    for (const name of ['a', 'b', 'c']) write(`dir/${name}.gguf`, '');
    write('models.ini', '[*]\nctx-size = 2048\n[b]\nctx-size = 1024\nalias = second\n[other]\nmodel = x.gguf\n');
    const server = await start(t, [...sim, '--models-dir', `${root}/dir`, '--models-preset', `${root}/models.ini`]);
    const listed = await (await server.fetch('/v1/models')).json();
    assert.deepEqual(listed.data.map(({ id }) => id), ['b', 'other', 'a', 'c']);
    const cells = async (name) => (await (await server.fetch(`/props?model=${name}`)).json()).kv.cells;
    assert.deepEqual([await cells('second'), await cells('c')], [1024, 2048]);
    const beside = await start(t, [...sim, '-m', 'x.gguf', '-a', 'first', '--models-dir', `${root}/dir`]);
    const all = await (await beside.fetch('/v1/models')).json();
    assert.deepEqual(all.data.map(({ id }) => id), ['first', 'a', 'b', 'c']);
  });

  it('has to be there and to have models', async (t) => {
    const { root } = await home(t);
    for (const [dir, message] of [[`${root}/nowhere`, /--models-dir .*nowhere: No such file/], [root, /there is no GGUF file in it/]]) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--models-dir', dir]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
  });
});
