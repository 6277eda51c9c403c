// Mutated JSON bodies for every POST route: whatever comes, the answer is 2xx or 4xx, and the server goes on. Seeded.
// By hand, against the binary that CHASQUI_BIN names, with a count and a seed:
//     node fuzz_bodies.mjs 100000 1
import { mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { random } from './random.mjs';
import { Server } from './server.mjs';

export const flags = ['--engine', 'sim', '-np', '8', '-c', '32768', '-n', '8', '--request-timeout', '0.3',
  '--session-ttl', '1', '--sessions-max', '200000', '--slot-save-path', mkdtempSync(path.join(os.tmpdir(), 'chasqui-fuzz-')),
  '--batch-dir', mkdtempSync(path.join(os.tmpdir(), 'chasqui-fuzz-')),
  '--log-level', 'error'];

const chat = { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'go on' }], max_tokens: 4 };
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } } }];
// Valid bodies to begin with, by what the path ends in.
const seeds = [
  [/messages(\/count_tokens)?$/, [{ ...chat, messages: chat.messages.slice(1), system: 'x', stop_sequences: ['y'] }]],
  [/responses(\/input_tokens)?$/, [{ input: 'go on', max_output_tokens: 4 }, { input: [{ role: 'user', content: 'x' }], stream: true, store: true }]],
  [/control$/, [{ id: 'chatcmpl-x', action: 'reasoning_end' }]],
  [/chat\/|apply-template$/, [chat, { ...chat, stream: true, tools, tool_choice: 'auto' },
    { ...chat, logprobs: true, top_logprobs: 3, n: 2, seed: 1, stop: ['a'], logit_bias: { 5: 1 } },
    { ...chat, response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object', properties: { a: { type: 'integer' } } } } } }]],
  [/infill$/, [{ input_prefix: 'a', input_suffix: 'b', input_extra: [{ filename: 'f', text: 't' }], n_predict: 4 }]],
  [/detokenize$/, [{ tokens: [300, 301, 302] }]],
  [/tokenize$/, [{ content: 'some text', with_pieces: true, add_special: true }]],
  [/lookup$/, [{ conversation_ids: ['a', 'b'] }]],
  [/append$/, [{ input: 'x' }, { messages: chat.messages }]],
  [/fork$|cancel$/, [{}]],
  [/generate$/, [{ prompt: 'x', max_tokens: 4, stream: false }, { input: 'x', max_tokens: 4 }]],
  [/sessions$/, [{ messages: chat.messages }, { prompt: 'x', ttl_seconds: 1 }]],
  [/./, [{ prompt: 'once upon', max_tokens: 4, n_predict: 4 }, { prompt: ['a', 'b'], logprobs: 2, echo: true, max_tokens: 2 },
    { prompt: [300, 301], stream: true, grammar: 'root ::= "a"+', max_tokens: 4 }]],
];
const odd = [null, true, false, 0, -1, 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e308, -1e308, 1e-320, 0.5, '', 'x', '\u0000', '\ud83d\ude80',
  '<|im_end|>', 'a'.repeat(5000), [], [[]], {}, { a: {} }, [null], ['x'], [1, 2], [-1], { type: 'x' }, { '': 1 }, Array(200).fill('x'), Array(200).fill(7)];

// Every place in a value: the object or array, and the key in it.
function places(value, out = []) {
  if (value && typeof value === 'object') {
    for (const key of Object.keys(value)) {
      out.push([value, key]);
      places(value[key], out);
    }
  }
  return out;
}

function mutateValue(dice, body, fields) {
  const all = places(body);
  const [where, key] = all.length ? dice.of(all) : [body, 'x'];
  switch (dice.below(7)) {
    case 0: delete where[key]; break;
    case 1: where[key] = structuredClone(dice.of(odd)); break;
    case 2: body[dice.of(fields)] = structuredClone(dice.of(odd)); break;
    case 3: if (Array.isArray(where)) where.push(structuredClone(where[key])); else where[`${key}x`] = where[key]; break;
    case 4: where[key] = { nested: structuredClone(where[key]) }; break;
    case 5: where[key] = [structuredClone(where[key])]; break;
    default: body[dice.of(fields)] = dice.next() * 200 - 50; break;
  }
}

function mutateBytes(dice, text) {
  const bytes = [...Buffer.from(text)];
  for (let n = 1 + dice.below(4); n > 0; --n) {
    const at = dice.below(bytes.length + 1);
    switch (dice.below(4)) {
      case 0: bytes.splice(at, 1 + dice.below(8)); break;
      case 1: bytes.splice(at, 0, dice.below(256)); break;
      case 2: bytes[at] = dice.below(256); break;
      default: bytes.splice(at, 0, ...Buffer.from(dice.of(['{', '}', '[', ']', ',', ':', '"', '\\', '\\u0000', '1e999', '-', 'null']))); break;
    }
  }
  return Buffer.from(bytes);
}

export function makeBody(dice, path, fields) {
  const body = structuredClone(dice.of(seeds.find(([pattern]) => pattern.test(path))[1]));
  for (let n = dice.below(4); n > 0; --n) mutateValue(dice, body, fields);
  const text = JSON.stringify(body);
  return dice.below(4) === 0 ? mutateBytes(dice, text) : Buffer.from(text);
}

const canaryBody = JSON.stringify({ messages: [{ role: 'user', content: 'say: unharmed' }], temperature: 0, max_tokens: 12 });
async function canary(server) {
  const response = await server.fetch('/v1/chat/completions', { method: 'POST', body: canaryBody });
  return (await response.json()).choices[0].message.content;
}

// What was wrong, with the body that did it; empty when nothing was. `say` hears how far it is.
export async function fuzz(server, count, seed, say = () => {}) {
  const document = await (await server.fetch('/openapi.json')).json();
  const fields = Object.keys(document.components.schemas.GenerationFields.properties);
  const { id } = await (await server.fetch('/v1/sessions', { method: 'POST', body: '{"prompt":"x","ttl_seconds":86400}' })).json();
  // They look at no body: 501 whatever comes, /models/* where all models are loaded at start, and a session moves only
  // between nodes that share it.
  const without = ['/props', '/models/load', '/models/unload', '/v1/sessions/{id}/move'];
  const paths = Object.keys(document.paths).filter((path) => document.paths[path].post && !without.includes(path)).map((path) => path.replace('{id}', id));
  const before = await canary(server);
  const wrong = [];
  const statuses = {};
  let sent = 0;
  const send = async (lane) => {
    const dice = random(seed * 1000 + lane);
    for (let n = lane; n < count && wrong.length < 10; n += lanes) {
      const path = paths[n % paths.length];
      const body = makeBody(dice, path, fields);
      const text = body.toString('latin1');
      try {
        const response = await server.fetch(path, { method: 'POST', body });
        const answer = await response.text();
        statuses[response.status] = (statuses[response.status] ?? 0) + 1;
        if (response.status >= 500 || response.status < 200) wrong.push({ path, text, status: response.status, answer });
        else if (/"type":"server_error"/.test(answer)) wrong.push({ path, text, status: 'in the stream', answer });
      } catch (error) {
        wrong.push({ path, text, status: String(error) });
      }
      if (++sent % 5000 === 0) say(`${sent} sent`);
    }
  };
  const lanes = 8;
  await Promise.all(Array.from({ length: lanes }, (_, lane) => send(lane)));
  const after = await canary(server);
  if (after !== before) wrong.push({ path: 'canary', text: before, status: after });
  return { wrong, statuses, paths };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = new Server(flags, {});
  await server.listening();
  const { wrong, statuses } = await fuzz(server, Number(process.argv[2] ?? 100_000), Number(process.argv[3] ?? 1), console.log);
  console.log(statuses);
  for (const one of wrong) console.error(one);
  await server.stop();
  process.exit(wrong.length === 0 ? 0 : 1);
}
