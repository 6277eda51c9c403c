// Starts this server and llama-server with the same flags and one model, asks both the same, and prints where they do
// not agree, or where a flag has changed nothing though it should; and which flags of docs/llama_flags.md that have an
// effect nothing here or elsewhere drives. Not a part of `make test`, for it needs a llama-server, and for adapters and
// drafts the demo model (models/demo/chasqui-demo.gguf) and mkmodel:
//
//   node tests/compare/flags.mjs LLAMA-SERVER MODEL.gguf [part of a flag]
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { binary } from '../e2e/server.mjs';

const [peer, model, wanted = ''] = process.argv.slice(2);
if (!model) {
  console.error('usage: flags.mjs LLAMA-SERVER MODEL.gguf [PART OF A FLAG]');
  process.exit(2);
}
const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-compare-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
const file = (name, text) => {
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
};

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const draft = path.join(root, 'models/demo/chasqui-draft.gguf');
const adapter = path.join(folder, 'tone.gguf');
execFileSync(path.join(path.dirname(binary), 'mkmodel'), ['--adapter', model, adapter, '--seed', '1'], { stdio: 'ignore' });

const thinking = file('thinking.jinja', `{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' and m.reasoning_content and (preserve_reasoning is not defined or preserve_reasoning) -%}{{- '<think>' + m.reasoning_content + '</think>' -}}{%- endif -%}
{{- m.content + '<|im_end|>\\n' -}}{%- endfor -%}
{%- if note is defined -%}{{- '[' ~ note ~ ']' -}}{%- endif -%}{%- if reasoning_effort is defined -%}{{- reasoning_effort -}}{%- endif -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}{%- endif -%}`);

// What is asked, and what of the answer is to be the same.
const user = [{ role: 'user', content: 'What is Chasqui?' }];
const text = ['/completion', { prompt: 'What is Chasqui?', n_predict: 24, temperature: 0, samplers: ['penalties', 'dry', 'top_k', 'temperature'] },
  ({ content, stop_type }) => `${stop_type}: ${content}`];
// What the model says of itself over again, and what it is not sure of; short, for the two servers compute by kernels of
// their own, whose last bits decide where two tokens are nearly as likely.
const repeated = ['/completion', { prompt: 'the the the the the the', n_predict: 6, temperature: 0 }, ({ content }) => content];
const unsure = ['/completion', { prompt: 'Once upon', n_predict: 6, top_p: 1 }, ({ content }) => content];
const short = ['/completion', { ...text[1], n_predict: 5 }, ({ content }) => content];
const shifted = ['/completion', { prompt: 'What is Chasqui?', n_predict: 500, temperature: 0, ignore_eos: true },
  ({ content, truncated, tokens_predicted: count }) => `${truncated} ${count} ${content}`];
// A text that stands further ahead than before.
const moved = ['/completion', { prompt: `${'The bridge is made of grass. '.repeat(8)}`, n_predict: 2, temperature: 0 },
  ({ timings }) => timings.cache_n > 20, { before: { prompt: `Two runners. Three knots.\n${'The bridge is made of grass. '.repeat(8)}`, n_predict: 2 } }];
const plain = ['/completion', { prompt: 'What is Chasqui?', n_predict: 24, ignore_eos: false }, ({ content }) => content];
const tokens = ['/tokenize', { content: 'x', add_special: true }, ({ tokens: list }) => `${list}`];
const settings = (...names) => ['/props', null, ({ default_generation_settings: { params } }) =>
  JSON.stringify(names.map((name) => (typeof params[name] === 'number' ? Math.fround(params[name]) : params[name])))];
const prompt = (fields = {}) => ['/apply-template', { messages: user, ...fields }, (body) => body.prompt];
const chat = (fields = {}) => ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Tell me a story' }], max_tokens: 24, temperature: 0, ...fields },
  ({ choices: [{ message }] }) => JSON.stringify([message.reasoning_content ?? null, message.content])];
const vector = ['/v1/embeddings', { input: 'x' }, ({ data }) => data[0].embedding.slice(0, 8).map((value) => value.toPrecision(4)).join(' ')];
const answered = [...user, { role: 'assistant', content: 'It is', reasoning_content: 'Hm.' }];
const template = ['--chat-template-file', thinking];
const size = ['/props', null, ({ default_generation_settings: { n_ctx: cells }, total_slots: slots }) => `${slots} × ${cells}`];
const named = ['/v1/models', null, ({ data }) => JSON.stringify([data[0].id, data[0].aliases, [...(data[0].tags ?? [])].sort()])];
const adapters = ['/lora-adapters', null, (list) => JSON.stringify(list.map(({ id, scale }) => [id, scale]))];
const length = ['/completion', { prompt: 'x', temperature: 0, ignore_eos: true }, (body) => body.tokens_predicted];
const again = ['/completion', { prompt: 'A prompt that is long enough to be worth keeping for the next one', n_predict: 2, temperature: 0 },
  ({ timings }) => timings.cache_n > 0, { times: 2 }];
// Of the answer as it is, whatever its status.
const status = (route, body = null, headers = {}) => [route, body, ({ status: code }) => code, { headers, raw: true }];
const header = (route, name, headers) => [route, null, (response) => response.headers.get(name), { headers, raw: true }];
const drafted = ['-md', draft, '--spec-draft-n-max', '4'];
const foreign = { origin: 'https://a.example' };

// [flags, what is asked, flags that both have in any case]
const rows = [
  ...[['--temp', '0.25', 'temperature'], ['--top-k', '7', 'top_k'], ['--top-p', '0.5', 'top_p'], ['--min-p', '0.2', 'min_p'],
    ['--top-nsigma', '1.25', 'top_n_sigma'], ['--xtc-probability', '0.5', 'xtc_probability'], ['--xtc-threshold', '0.25', 'xtc_threshold'],
    ['--typical', '0.75', 'typical_p'], ['--repeat-last-n', '32', 'repeat_last_n'], ['--repeat-penalty', '1.5', 'repeat_penalty'],
    ['--presence-penalty', '0.5', 'presence_penalty'], ['--frequency-penalty', '0.25', 'frequency_penalty'],
    ['--dry-multiplier', '0.5', 'dry_multiplier'], ['--dry-base', '2.5', 'dry_base'], ['--dry-allowed-length', '3', 'dry_allowed_length'],
    ['--dry-penalty-last-n', '48', 'dry_penalty_last_n'], ['--dynatemp-range', '0.5', 'dynatemp_range'],
    ['--dynatemp-exp', '1.5', 'dynatemp_exponent'], ['--mirostat', '2', 'mirostat'], ['--mirostat-lr', '0.25', 'mirostat_eta'],
    ['--mirostat-ent', '4', 'mirostat_tau'], ['--adaptive-target', '0.25', 'adaptive_target'], ['--seed', '11', 'seed'],
    ['--samplers', 'top_k;temperature', 'samplers'], ['--sampling-seq', 'kt', 'samplers'],
  ].map(([flag, value, name]) => [[flag, value], settings(name)]),
  [['--repeat-penalty', '1.8'], text], [['--presence-penalty', '9'], repeated], [['--dry-multiplier', '4'], repeated],
  [['--logit-bias', '268+100'], text], [['-r', 'a'], text], [['--grammar', 'root ::= "yes" | "no"'], text],
  [['-j', '{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}'], text],
  [['--temp', '0'], unsure], [['--seed', '5', '--top-k', '1'], unsure],
  [['--rope-scaling', 'linear', '--rope-scale', '4'], short], [['--rope-freq-base', '500'], text], [['--rope-freq-scale', '0.3'], text],
  [['--rope-scaling', 'yarn', '--rope-scale', '4', '--yarn-orig-ctx', '64'], text],
  [['--rope-scaling', 'yarn', '--rope-scale', '8', '--yarn-ext-factor', '0.5', '--yarn-attn-factor', '2', '--yarn-beta-slow', '2', '--yarn-beta-fast', '16'], text],
  [['--override-kv', 'tokenizer.ggml.add_bos_token=bool:true,tokenizer.ggml.bos_token_id=int:5'], tokens],
  [['-ctk', 'q4_0', '-ctv', 'q4_0', '-fa', 'on'], text, [], 'may'], [['-ctk', 'q8_0'], text, [], 'may'], [['-ctk', 'bf16', '-ctv', 'bf16'], text, [], 'may'],
  [['-ot', '.*=CPU'], text, [], 'may'], [['--no-repack'], text, [], 'may'], [['--no-host'], text, [], 'may'], [['-cmoe'], text, [], 'may'],
  [['--cpu-mask', '1', '--cpu-strict', '1'], text, [], 'may'], [['--load-mode', 'none'], text, [], 'may'], [['--check-tensors'], text, [], 'may'],
  [['--reasoning', 'off'], prompt(), template], [['--chat-template-kwargs', '{"note":"kept"}'], prompt(), template],
  [['--chat-template-kwargs', '{"note":"kept"}'], prompt({ chat_template_kwargs: { other: 1 } }), template],
  [['--reasoning-effort', 'high'], prompt(), template], [['--no-prefill-assistant'], prompt({ messages: answered }), template],
  [['--no-reasoning-preserve'], prompt({ messages: [...answered, ...user] }), template],
  [['--chat-template', '{{ messages[0].content }}!'], prompt()], [['--chat-template', 'chatml'], prompt(), [], 'may'],
  [['--reasoning-format', 'none'], chat({ max_tokens: 7 }), template], [['--reasoning-budget', '4'], chat(), template],
  [['--reasoning-budget', '4', '--reasoning-budget-message', ' Enough.'], chat({ max_tokens: 13 }), template], [['--skip-chat-parsing'], chat({ max_tokens: 7 }), template],
  [['--context-shift', '-c', '256', '-np', '1'], shifted], [['--context-shift', '-c', '256', '-np', '1', '--keep', '5'], shifted],
  [['--no-context-shift', '-c', '256', '-np', '1'], shifted],
  [['-n', '5'], length], [['-c', '1024'], size], [['-c', '4096', '-np', '2', '--no-kv-unified'], size], [['-kvu', '--kv-unified-per-slot', '512'], size],
  [['-a', 'inca,maya', '--tags', 'small,fast'], named], [['--api-key', 'secret'], status('/props')], [['--api-key-file', file('keys', 'secret\n')], status('/props')],
  [['--api-prefix', '/llm'], status('/llm/health')], [['--no-slots'], status('/slots')], [['--no-ui'], status('/')],
  [['--cors-origins', 'https://a.example'], header('/health', 'access-control-allow-origin', foreign)],
  [['--slot-save-path', folder], status('/slots/0?action=save', { filename: '../a' })], [['--no-cache-prompt'], again], [['--cache-reuse', '16'], moved],
  [['-jf', file('schema.json', '{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}')], text],
  [['--grammar-file', file('a.gbnf', 'root ::= "yes" | "no"')], text], [['--no-escape'], text, ['-r', '\\nChasqui']],
  [['--lora', adapter], text], [['--lora', adapter], adapters], [['--lora', adapter], vector, ['--embeddings', '--pooling', 'mean']], [['--lora-scaled', `${adapter}:0.5`], adapters], [['--lora-scaled', `${adapter}:3`], short],
  // Nothing that is asked here may change.
  ...[['-tb', '1'], ['-Cr', '0-0'], ['-Cb', '1'], ['-Crb', '0-0'], ['--cpu-strict-batch', '1'], ['--prio', '0'], ['--prio-batch', '0'], ['--poll', '0'],
    ['--poll-batch', '0'], ['-b', '64', '-ub', '64'], ['--swa-full'], ['-cram', '0'], ['-kvu'], ['-lzm', 'off'], ['-dev', 'none'], ['-ncmoe', '2'],
    ['-ncffn', '2'], ['-ngl', '0'], ['-ts', '1'], ['-sm', 'none'], ['-mg', '0'], ['--no-op-offload'], ['-nkvo'], ['-to', '60'], ['--sse-ping-interval', '1'],
    ['--sleep-idle-seconds', '600'], ['--log-file', path.join(folder, 'log')], ['--log-disable'], ['-v'], ['-lv', '1'], ['-fa', 'off'], ['-ctxcp', '4'], ['-cms', '64'], ['-fitt', '512'],
    ['-fitc', '512'], ['--no-warmup'], ['--slots'], ['--metrics'], ['--spec-type', 'ngram-simple'], drafted, [...drafted, '-otd', '.*=CPU'], [...drafted, '-cmoed'],
    [...drafted, '-ncmoed', '1'], [...drafted, '--spec-draft-n-min', '1'], [...drafted, '-ctkd', 'q8_0', '-ctvd', 'q8_0'], [...drafted, '-ngld', '0'], [...drafted, '-devd', 'none'],
    [...drafted, '-td', '1', '-tbd', '1'], [...drafted, '-Cd', '1', '-Cbd', '1'], [...drafted, '-Crd', '0-0', '-Crbd', '0-0'],
    [...drafted, '--spec-draft-cpu-strict', '0', '--spec-draft-cpu-strict-batch', '0'], [...drafted, '--spec-draft-prio', '0', '--spec-draft-prio-batch', '0'],
    [...drafted, '--spec-draft-poll', '1', '--spec-draft-poll-batch', '1'], ['--load-mode', 'dio'], ['--fit', 'off'],
    ['--spec-default'], ['--spec-type', 'ngram-simple', '--spec-ngram-simple-size-n', '5', '--spec-ngram-simple-size-m', '16'], ['--warmup'], ['--ui'], ['-no-kvu'],
  ].map((flags) => [flags, text, [], 'may']),
  [['--embd-normalize', '-1'], vector, ['--embeddings', '--pooling', 'mean']], [['--embd-normalize', '0'], vector, ['--embeddings', '--pooling', 'mean']],
];

// Flags that have no row here, and what tries them.
const elsewhere = {
  '--help': 'cli.test.mjs', '--version': 'cli.test.mjs', '--spm-infill': 'infill.test.mjs', '--control-vector': 'llama_control_vector_test.cpp',
  '--control-vector-scaled': 'llama_control_vector_test.cpp', '--control-vector-layer-range': 'llama_control_vector_test.cpp', '--numa': 'llama_params_test.cpp',
  '--host': 'start.test.mjs', '--port': 'every row', '--model': 'every row', '--parallel': 'every row', '--threads': 'every row', '--cors-methods': 'web_pages.test.mjs',
  '--cors-headers': 'web_pages.test.mjs', '--cors-credentials': 'web_pages.test.mjs', '--rerank': 'ranking.test.mjs', '--reranking': 'ranking.test.mjs',
  '--ssl-key-file': 'tls.test.mjs', '--ssl-cert-file': 'tls.test.mjs', '--spec-synth-rates': 'llama_flags.test.mjs', '--draft': 'the same as --spec-draft-n-max',
  '--hf-repo': 'pull.test.mjs', '--hf-file': 'found_models.test.mjs', '--hf-repo-draft': 'found_models.test.mjs', '--models-dir': 'models_on_demand.test.mjs',
  '--models-max': 'models_on_demand.test.mjs', '--models-autoload': 'models_on_demand.test.mjs',
  '--draft-min': 'the same as --spec-draft-n-min', '--log-jsonl': 'request_log.test.mjs', '--no-log-jsonl': 'request_log.test.mjs', '--embeddings': 'rows of vectors',
  '--pooling': 'rows of vectors', '--chat-template-file': 'rows of templates', '--direct-io': 'llama_flags_test.cpp', '--models-preset': 'models.test.mjs', '--lora-init-without-apply': 'lora.test.mjs', '--mlock': 'a flag of older servers',
  '--no-mmap': 'a flag of older servers', '--mmap': 'a flag of older servers', '--draft-n': 'a flag of older servers', '--draft-n-min': 'a flag of older servers', '--special': 'llama_flags.test.mjs', '--ignore-eos': 'llama_flags.test.mjs',
  '--dry-sequence-breaker': 'llama_flags.test.mjs', '--adaptive-decay': 'llama_flags.test.mjs', '--rpc': 'rpc.test.mjs',
};

// Rows of docs/llama_flags.md with an effect.
function undriven() {
  const driven = new Set([...rows.flatMap(([flags, , common = []]) => [...flags, ...common]), ...Object.keys(elsewhere)]);
  const lines = readFileSync(path.join(root, 'docs/llama_flags.md'), 'utf8').split('\n');
  return lines.map((line) => /^\| (`-[^|]*`) \|.*\| (applied|ours|written):/.exec(line)?.[1].match(/[^`, ]+/g))
    .filter((names) => names && !names.some((name) => driven.has(name)));
}

async function asked(command, flags, [route, body, pick, { headers = {}, raw = false, times = 1, before = null } = {}]) {
  const port = 18_110 + Math.floor(Math.random() * 800);
  const child = spawn(command[0], [...command.slice(1), '-m', model, '--port', `${port}`, '-c', '2048', '-np', '1', '-t', '1', ...flags],
    { stdio: 'ignore' });
  let ended = false;
  child.once('exit', () => (ended = true));
  try {
    for (;;) {
      if (ended) return 'it does not start';
      const prefix = flags.includes('--api-prefix') ? flags[flags.indexOf('--api-prefix') + 1] : '';
      const health = await fetch(`http://127.0.0.1:${port}${prefix}/health`).catch(() => null);
      if (health?.status === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const options = body ? { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) } : { headers };
    const send = () => fetch(`http://127.0.0.1:${port}${route}`, { ...options, signal: AbortSignal.timeout(120_000) });
    for (let i = 1; i < times; ++i) await (await send()).text();
    if (before) await (await fetch(`http://127.0.0.1:${port}${route}`, { ...options, body: JSON.stringify(before) })).text();
    const response = await send();
    if (raw) return await response.text().then(() => pick(response));
    const answer = await response.json();
    return response.status === 200 ? pick(answer) : `${response.status} ${JSON.stringify(answer).slice(0, 200)}`;
  } finally {
    child.kill();
    while (!ended) await new Promise((resolve) => setTimeout(resolve, 20));  // the next one may get its port
  }
}

// What a server without the flags answers; the same for many rows.
const plainAnswers = new Map();
function without(common, question) {
  const key = JSON.stringify([common, question]) + question[2];
  if (!plainAnswers.has(key)) plainAnswers.set(key, asked([binary, 'serve'], common, question));
  return plainAnswers.get(key);
}

let differing = 0;
for (const [flags, question, common = [], effect = 'must'] of rows.filter(([flags]) => flags.join(' ').includes(wanted))) {
  const all = [...common, ...flags];
  const [ours, theirs] = await Promise.all([asked([binary, 'serve'], all, question), asked([peer], all, question)]);
  const plain = effect === 'must' ? await without(common, question) : 'not asked';
  const problem = ours !== theirs ? 'differs' : ours === plain ? 'has no effect' : '';
  if (!problem) continue;
  ++differing;
  console.log(`${flags.join(' ')} ${problem}\n    here:         ${ours}\n    llama-server: ${theirs}\n    without:      ${plain}`);
}
for (const names of undriven()) {
  ++differing;
  console.log(`${names.join(', ')} has an effect that nothing here tries`);
}
console.log(`${rows.length} rows, ${differing} to look at`);
process.exitCode = differing > 0 ? 1 : 0;
