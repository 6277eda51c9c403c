// Sends the same chats with pictures and sounds to this server and to llama-server, one at a time, temperature 0 and
// nothing cached, for each projector that `make test-models` has made, and says where the tokens differ:
//
//   node tests/compare/media.mjs LLAMA-SERVER [PART OF "PROJECTOR: CASE"]
//
// Not a part of `make test`, for it needs a llama-server, built from the same libllama. CHASQUI_BIN names another
// binary of ours. Each case is asked twice:
//
// - With `-fa off` on both sides attention is summed alike, so that what they say of each token has to be the same but
//   for rounding, `kAlike`. This tells a real difference: another picture, another position, another mask.
// - With each side's default, where this server has kernels of its own (third_party/libllama), the tokens have to be
//   the same, too, except in a near tie: the first case passes, and where the tokens part, the two that were chosen are
//   on both sides no further apart than twice what llama-server's own likelihoods change in this answer by its
//   `-fa off`. Each of the two may move by as much, and towards the other.
//
// All have one slot, one thread, and as many rows in a batch as this server has by default (`-b 512 -ub 512`;
// llama-server's own -b is 2048). Exit status 1 where there is a real difference.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { png, projectors, wav } from '../e2e/pictures.mjs';
import { binary, testModel } from '../e2e/server.mjs';

const [peer, wanted = ''] = process.argv.slice(2);
if (!peer) {
  console.error('usage: media.mjs LLAMA-SERVER [PART OF "PROJECTOR: CASE"]');
  process.exit(2);
}
const kTokens = 48;
const kTop = 20; // likelihoods of a token, the most that both tell
const kAlike = 1e-4; // nats
const common = ['-np', '1', '-c', '4096', '-t', '1', '-b', '512', '-ub', '512', '--cache-ram', '0'];

const corpus = path.join(path.dirname(fileURLToPath(import.meta.url)), '../fuzz/corpus/media');
const file = (name) => readFileSync(path.join(corpus, name));
const say = (text) => ({ type: 'text', text });
const what = say('What is it?');
const picture = (bytes, type = 'png') =>
  ({ type: 'image_url', image_url: { url: `data:image/${type};base64,${bytes.toString('base64')}` } });
const slope = (width, height, seed = width) => picture(png(width, height, seed));
const sound = (bytes, format = 'wav') => ({ type: 'input_audio', input_audio: { data: bytes.toString('base64'), format } });

// [name, content of the message]
const texts = [['text alone', [what]], ['long text', [say('The sun and the moon. '.repeat(60))]]];
const pictures = [
  ...[[112, 112], [300, 120], [64, 64], [2, 2], [640, 480], [1024, 768], [37, 911], [1000, 50], [1600, 1200]]
    .map(([width, height]) => [`${width} × ${height}`, [slope(width, height), what]]),
  ['inside a text', [say('Look:'), slope(200, 150), what]],
  ['two of one size', [slope(112, 112, 1), slope(112, 112, 2), what]],
  ['two of one size, large', [slope(500, 400, 1), slope(500, 400, 2), what]],
  ['three sizes', [slope(112, 112), say('and'), slope(300, 300), say('and'), slope(50, 400), what]],
  ['one twice', [slope(112, 112), slope(112, 112), what]],
  ['JPEG', [picture(file('jpeg1.jpg'), 'jpeg'), what]], ['GIF', [picture(file('two.gif'), 'gif'), what]],
  ['BMP', [picture(file('rgb.bmp'), 'bmp'), what]], ['16 bits of grey', [picture(file('grey16.png')), what]],
];
const sounds = [
  ...[0.5, 1, 3, 10, 31, 65].map((seconds) => [`${seconds} s`, [sound(wav(seconds, 220 + 40 * seconds)), what]]),
  ['two sounds', [sound(wav(1)), sound(wav(2, 300)), what]], ['sound and picture', [sound(wav(1)), slope(112, 112), what]],
  ['MP3', [sound(file('silence.mp3'), 'mp3'), what]], ['FLAC', [sound(file('short.flac'), 'flac'), what]],
  ['A-law, another rate', [sound(file('alaw.wav')), what]],
];
const shapes = projectors.map(([model, projector]) => [testModel(model), projector]);

async function freePort() {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

// Runs `use` with a function that posts to the server.
async function withServer(command, flags, use) {
  const port = await freePort();
  const child = spawn(command[0], [...command.slice(1), ...flags, '--port', `${port}`], { stdio: 'ignore' });
  let ended = false;
  const end = once(child, 'exit').then(() => (ended = true));
  const url = `http://127.0.0.1:${port}`;
  try {
    for (;;) {
      if (ended) throw new Error(`it does not start: ${command.join(' ')} ${flags.join(' ')}`);
      if ((await fetch(`${url}/health`).catch(() => null))?.status === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return await use(async (route, body) => {
      const sent = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
      const response = await fetch(url + route, { ...sent, signal: AbortSignal.timeout(300_000) });
      if (response.status !== 200) throw new Error(`${response.status} ${(await response.text()).slice(0, 200)}`);
      return response.json();
    });
  } finally {
    child.kill();
    await end;
  }
}

// What the server makes of a chat: the text of its template, its size, and the tokens of its answer with the likeliest
// in place of each. Tokens have ids in /completion alone; it gets the text of the template and the same files.
async function answer(ask, content) {
  const messages = [{ role: 'user', content }];
  const brief = { max_tokens: 1, temperature: 0, ignore_eos: true, cache_prompt: false };
  const chat = await ask('/v1/chat/completions', { messages, ...brief });
  const { prompt } = await ask('/apply-template', { messages });
  const { media_marker: marker } = await ask('/props');
  const files = content.filter(({ type }) => type !== 'text')
    .map(({ image_url: image, input_audio: audio }) => audio?.data ?? image.url.split(',')[1]);
  const text = prompt.replace(/<__media_\w*__>/g, '<__media__>');
  const body = { prompt: { prompt_string: text.replaceAll('<__media__>', marker), multimodal_data: files }, n_predict: kTokens,
    n_probs: kTop, return_tokens: true, ...brief, max_tokens: undefined };
  const said = await ask('/completion', files.length > 0 ? body : { ...body, prompt: text });
  // A token that is a part of a letter has no likelihoods in llama-server.
  const rows = [];
  for (const token of said.tokens) {
    const told = said.completion_probabilities[rows.filter((row) => row.top).length];
    const top = told?.id === token ? new Map(told.top_logprobs.map(({ id, logprob }) => [id, logprob])) : null;
    rows.push({ token, top });
  }
  return { text, size: chat.usage.prompt_tokens, evaluated: said.tokens_evaluated, rows };
}

async function answers(command, [model, projector], flags, cases) {
  const all = ['-m', model, '--mmproj', projector, ...common, ...flags];
  return withServer(command, all, async (ask) => {
    const out = [];
    for (const [, content] of cases) out.push(await answer(ask, content).catch((error) => ({ error: error.message })));
    return out;
  });
}

// How far two answers agree: up to `at`, where the tokens differ first (null: nowhere), by `most` at most in the
// likelihoods of the same tokens; `gaps`: on each side between the two that were chosen there.
function compare(a, b) {
  for (const key of ['error', 'text', 'size', 'evaluated']) {
    if (a[key] !== b[key]) return { real: `${key}: ${a[key]}, llama-server: ${b[key]}` };
  }
  if (a.error) return { real: a.error };
  let most = 0;
  for (let at = 0; at < kTokens; ++at) {
    const [one, other] = [a.rows[at], b.rows[at]];
    for (const [id, value] of one.top ?? []) {
      if (other.top?.has(id)) most = Math.max(most, Math.abs(value - other.top.get(id)));
    }
    if (one.token === other.token) continue;
    const gap = ({ token, top }, { token: second }) => (top?.has(second) ? top.get(token) - top.get(second) : Infinity);
    return { at, most, gaps: [gap(one, other), gap(other, one)] };
  }
  return { at: null, most };
}

function judge(summed, usual, own) {
  const real = summed.real ?? usual.real;
  if (real) return ['differs', real];
  if (summed.at !== null && Math.max(...summed.gaps) > 2 * kAlike) return ['differs', `token ${summed.at} with -fa off`];
  if (summed.most > kAlike) return ['differs', `likelihoods by ${summed.most.toPrecision(2)} with -fa off`];
  if (usual.at === null) return ['equal', ''];
  const [ours, theirs] = usual.gaps.map((gap) => gap.toPrecision(2));
  const where = `token ${usual.at}, gaps ${ours} and ${theirs}; -fa off alone changes ${own.most.toPrecision(2)}`;
  return [Math.max(...usual.gaps) <= 2 * own.most ? 'near tie' : 'differs', where];
}

const shown = (value) => (value === undefined ? '-' : value.toExponential(1));
let differing = 0;
for (const [model, name] of shapes) {
  const projector = path.join(path.dirname(model), 'projectors', `${name}.gguf`);
  if (!existsSync(projector)) throw new Error(`${projector} is missing: run \`make test-models\``);
  const hears = name === 'mmproj-random-24m';
  const cases = [...texts, ...pictures, ...(hears ? sounds : [])].filter(([what]) => `${name}: ${what}`.includes(wanted));
  if (cases.length === 0) continue;
  const ask = (command, flags) => answers(command, [model, projector], flags, cases);
  const off = ['-fa', 'off'];
  const [ours, theirs] = [await ask([binary, 'serve'], []), await ask([peer], [])];
  const [oursOff, theirsOff] = [await ask([binary, 'serve'], off), await ask([peer], off)];
  const counts = { equal: 0, 'near tie': 0, differs: 0 };
  let [mostOff, mostUsual, mostOwn] = [0, 0, 0];
  for (const [i, [what]] of cases.entries()) {
    const [summed, usual, own] = [compare(oursOff[i], theirsOff[i]), compare(ours[i], theirs[i]), compare(theirs[i], theirsOff[i])];
    const [verdict, why] = judge(summed, usual, own);
    ++counts[verdict];
    [mostOff, mostUsual, mostOwn] = [[mostOff, summed], [mostUsual, usual], [mostOwn, own]].map(([a, b]) => Math.max(a, b.most ?? 0));
    console.log(`${name}: ${what}, ${ours[i].size} tokens: ${verdict}${why && ` (${why})`}; likelihoods differ by ` +
      `${shown(summed.most)} with -fa off, ${shown(usual.most)} as usual; llama-server's own by ${shown(own.most)}`);
  }
  differing += counts.differs;
  console.log(`${name}: ${cases.length} cases, ${counts.equal} equal, ${counts['near tie']} near ties, ${counts.differs} differ; ` +
    `at most ${shown(mostOff)} with -fa off, ${shown(mostUsual)} as usual, ${shown(mostOwn)} llama-server's own\n`);
}
process.exitCode = differing > 0 ? 1 : 0;
