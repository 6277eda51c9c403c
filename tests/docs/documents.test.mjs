// What the documentation says, tried with the real binary: its commands are run or at least understood, and the flags,
// metrics, variables, routes and make verbs that it names exist. (tools/tidy.py checks links and their anchors.)
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { binary, demo, hangAfter, run, start } from '../e2e/server.mjs';
import { blocksOf, chasquiLines, inlineCode, pagesOf } from './pages.mjs';

const { describe, it } = test;
const root = path.resolve(import.meta.dirname, '../..');
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
const pages = pagesOf(root);

// Where commands run: `model.gguf` and what else they name are there.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'chasqui-docs-'));
test.after(() => fs.rmSync(folder, { recursive: true, maxRetries: 20 }));
for (const name of ['model.gguf', 'qwen.gguf', 'bge.gguf']) {
  fs.symlinkSync(path.join(root, 'models/demo/chasqui-demo.gguf'), path.join(folder, name));
}

const server = await start(test, [...demo, '-np', '2', '-c', '4096', '--slot-save-path', folder]);

// A script as a reader would paste it, with the address of this server. Fails like curl and chasqui do.
async function shell(script) {
  const tools = `set -eo pipefail
curl() { command curl -sS --fail-with-body -m 60 "$@"; }
chasqui() { '${binary}' "$@"; }
`;
  const text = script.replaceAll('build/bin/chasqui', 'chasqui').replaceAll('http://127.0.0.1:8080', server.url);
  const child = spawn('bash', ['-c', tools + text], { cwd: folder, timeout: hangAfter, stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, CHASQUI_NO_TUNING_CACHE: '1', HOME: folder } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (bytes) => (said += bytes));
  const [code] = await once(child, 'close');
  return { code, said };
}

const fails = (said) => /"error"\s*:/.test(said);

// Blocks that need more than a server: why, or what stands for a part of them here.
const notRun = [
  [/conv_id=NAME/, 'needs a stream that was cut: resume.test.mjs'],
  [/models\/load/, 'replaces a served file: models_swap.test.mjs'],
  [/load_lora_adapter/, 'needs an adapter of this model: lora_runtime.test.mjs'],
  [/9090\/drain/, 'needs the admin listener: operations.test.mjs'],
  [/photo\.png/, 'needs a model with a projector: media.test.mjs'],
  [/speech\.wav/, 'needs a model with a projector: transcriptions.test.mjs'],
];
const standIns = [
  ['S=$URL/sess_3kV…', "S=$URL/$(curl $URL | grep -o 'sess_[A-Za-z0-9_-]*' | head -n 1)"],
  ['seconds=5', 'seconds=1'],
  ['| jq .usage', "| grep '\"usage\"'"],
];

describe('requests of the documentation', () => {
  const withCurl = pages.flatMap((page) => blocksOf(page).filter(({ text }) => /^\s*curl /m.test(text)));
  assert.ok(withCurl.length >= 12, `${withCurl.length} blocks`);
  for (const { page, line, text } of withCurl) {
    const why = notRun.find(([pattern]) => pattern.test(text))?.[1];
    it(`${page}:${line}`, { skip: why }, async () => {
      const script = standIns.reduce((all, [there, here]) => all.replaceAll(there, here), text);
      const { code, said } = await shell(script);
      assert.equal(code, 0, `${script}\n${said}`);
      assert.ok(!fails(said), said);
    });
  }
});

const lines = pages.flatMap(chasquiLines);
const helps = new Map();
async function flagsOf(command) {
  if (!helps.has(command)) {
    const { code, stdout } = await run([command, '--help']);
    helps.set(command, code === 0 ? new Set(stdout.match(/(?<![\w-])--?[A-Za-z][\w-]*/g)) : undefined);
  }
  return helps.get(command);
}
const ofLlama = new Set(read('docs/llama_flags.md').match(/(?<![\w-])--?[A-Za-z][\w-]*/g));
const servesFlags = (command) => ['serve', 'doctor', 'config'].includes(command);

describe('command lines of the documentation', () => {
  assert.ok(lines.length >= 40, `${lines.length} lines`);
  for (const { page, line, words } of lines) {
    it(`${page}:${line} chasqui ${words.join(' ')}`, async () => {
      const [command, ...rest] = words;
      if (command === 'help' || command.startsWith('-')) return;
      const flags = await flagsOf(command);
      assert.ok(flags, `there is no chasqui ${command}`);
      for (const word of rest.filter((each) => /^-{1,2}[A-Za-z]/.test(each))) {
        const flag = word.split('=')[0];
        assert.ok(flags.has(flag) || (servesFlags(command) && ofLlama.has(flag)), `chasqui ${command} has no ${flag}`);
      }
    });
  }
});

describe('commands that end by themselves', () => {
  for (const [command, pattern] of [
    ['chasqui chat "What is a slot?"', /slot/i],
    ['echo "What is a slot?" | chasqui chat', /slot/i],
    ['chasqui chat --url http://127.0.0.1:8080 "What is a slot?"', /slot/i],
    ['chasqui run "What is Chasqui?"', /Chasqui/],
    ['chasqui run model.gguf "What is Chasqui?"', /Chasqui/],
    ['build/bin/chasqui inspect model.gguf', /architecture/],
    ['build/bin/chasqui doctor -m model.gguf --port 0', /ok +model/],
    ['chasqui list', /^$|NAME|no models/],
    ['chasqui ps --url http://127.0.0.1:8080', /chasqui-demo +loaded/],
    ['chasqui show chasqui-demo --url http://127.0.0.1:8080', /architecture +\w+/],
    ['chasqui show ./model.gguf', /architecture/],
    ['chasqui top --url http://127.0.0.1:8080 --once', /running 0/],
    ['source <(chasqui completion bash) && complete -p chasqui', /_chasqui/],
    ['chasqui completion fish', /complete -c chasqui/],
    ['chasqui config --limits', /^# /],
    ['chasqui metrics', /^# /],
    ['chasqui licenses --list', /llama\.cpp +\S+ +MIT/],
    ['chasqui man serve', /^\.TH CHASQUI-SERVE 1/],
    ['chasqui help COMMAND', /no subcommand/],
    ['chasqui bench --url http://127.0.0.1:8080 --load clients=2,requests=4,max-tokens=4', /tokens/],
    ['chasqui simulate --requests 2000 --rate 3 --output 8 --prompt 16-64', /TTFT|ttft/],
  ]) {
    it(command, async () => {
      const { said } = await shell(command);
      assert.match(said, pattern);
    });
  }
});

describe('names in the documentation', () => {
  const codes = pages.flatMap((page) => inlineCode(page).map((code) => ({ page: page.file, code })));
  const unknown = (pattern, known) => codes
    .flatMap(({ page, code }) => (code.match(pattern) ?? []).map((name) => ({ page, name })))
    .filter(({ name }) => !known.has(name))
    .map(({ page, name }) => `${page}: ${name}`);

  it('are flags of a command, of llama-server or of a tool', async () => {
    const { stdout } = await run(['--help']);
    const known = new Set(ofLlama);
    for (const [, command] of stdout.matchAll(/^ {2}([a-z][a-z-]+)(?:, ?[a-z]+)? +/gm)) {
      for (const flag of (await flagsOf(command)) ?? []) known.add(flag);
    }
    const ofTools = ['--e2e', '--unit', '--seconds', '--checks', '--fleet', '--browser', '--provider', '--auto', '--adapter'];
    for (const flag of ofTools) known.add(flag);
    const others = /^docs\/(dependencies|cuda|llama_flags|compatibility)\.md/; // CMake's, npm's, and llama-server's flags that are not here
    assert.deepEqual(unknown(/(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?![\w-])/g, known).filter((each) => !others.test(each)), []);
  });

  it('are metrics that the server has', () => {
    const known = new Set(read('docs/metrics.md').match(/chasqui_[a-z0-9_]+/g));
    assert.deepEqual(unknown(/(?<![\w/.-])chasqui_[a-z0-9_]*[a-z0-9](?![\w.(])/g, known), []);
  });

  it('are routes of the server', () => {
    const { paths } = JSON.parse(read('docs/openapi.json'));
    const known = [...Object.keys(paths), '/drain'].map((route) => new RegExp(`^${route.replace(/\{[^}]+\}/g, '[^/]+')}$`));
    const named = codes.flatMap(({ page, code }) => [...code.matchAll(/^(?:GET|POST|DELETE) (\/[\w/.{}:-]+)/g)].map(([, route]) => ({ page, route })));
    assert.ok(named.length >= 20, `${named.length} routes`);
    const missing = named.filter(({ route }) => !known.some((pattern) => pattern.test(route.replace(/\{[^}]+\}|[A-Z]{2,}/g, 'x'))));
    assert.deepEqual(missing, []);
  });

  it('are verbs of the Makefile', () => {
    const verbs = new Set(read('Makefile').match(/^[a-z][\w-]*(?=:)/gm));
    const named = codes.flatMap(({ page, code }) => [...code.matchAll(/^make ([a-z-]+)/g)].map(([, verb]) => ({ page, verb })));
    assert.ok(named.length >= 10, `${named.length} verbs`);
    assert.deepEqual(named.filter(({ verb }) => !verbs.has(verb)), []);
  });
});
