// Sends one body for each route and field (tests/e2e/bodies.mjs) to this server and to llama-server, which both serve the
// same model, and prints what differs and is not in deliberate.mjs: the status, members that one of them alone has, types
// of members, and settings that both tell. Texts, times and ids differ anyway. Not a part of `make test`, for it needs a
// llama-server:
//
//   build/bin/chasqui serve -m M --port 18101 -c 4096 -np 2 --slots &
//   llama-server -m M --port 18102 -c 4096 -np 2 --props --slots &
//   node tests/compare/compare.mjs http://127.0.0.1:18101 http://127.0.0.1:18102 [--all] [part of a name]
import { bodies, parsed } from '../e2e/bodies.mjs';
import { isDeliberate } from './deliberate.mjs';

const all = process.argv.includes('--all');
const [here, there, wanted = ''] = process.argv.slice(2).filter((word) => word !== '--all');
if (!there) {
  console.error('usage: compare.mjs URL-OF-CHASQUI URL-OF-LLAMA-SERVER [--all] [PART OF A NAME]');
  process.exit(2);
}

// Settings whose values are to be the same, not only their types.
const settings = /generation_settings|\.params\.|finish_reason|stop_type|stop_reason|\.object$|\.role$/;

async function answer(url, { method, path, body }) {
  const response = await fetch(url + path, {
    method,
    headers: body ? { 'content-type': 'application/json' } : {},
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(60_000),
  });
  return { status: response.status, body: parsed(await response.text()) };
}

// "choices[].message.role" → what stands there. Events of a stream and items of an array are one place each.
function places(value, path = '', out = new Map()) {
  if (Array.isArray(value)) {
    for (const item of value) places(item, `${path}[]`, out);
  } else if (value !== null && typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) places(member, `${path}.${key}`, out);
  } else {
    const kinds = out.get(path) ?? { types: new Set(), value };
    if (value !== null) kinds.types.add(typeof value);
    out.set(path, kinds);
  }
  return out;
}

// Numbers that are the same as floats.
const same = (a, b) => a === b || (typeof a === 'number' && typeof b === 'number' && Math.fround(a) === Math.fround(b));

function differences(ours, theirs) {
  if (ours.status !== theirs.status) return [`status ${ours.status}, llama-server ${theirs.status}`];
  const [a, b] = [places(ours.body), places(theirs.body)];
  const out = [...b.keys()].filter((path) => !a.has(path)).map((path) => `only llama-server: ${path}`);
  out.push(...[...a.keys()].filter((path) => !b.has(path)).map((path) => `only here: ${path}`));
  for (const [path, { types, value }] of a) {
    const other = b.get(path);
    if (!other) continue;
    const differ = types.size > 0 && other.types.size > 0 && ![...types].some((type) => other.types.has(type));
    if (differ) out.push(`${path}: ${[...types]}, llama-server ${[...other.types]}`);
    else if (settings.test(path) && !same(value, other.value)) out.push(`${path}: ${value}, llama-server ${other.value}`);
  }
  return out;
}

let differing = 0;
for (const one of bodies.filter(({ name }) => name.includes(wanted))) {
  const found = differences(await answer(here, one), await answer(there, one))
    .filter((difference) => all || !isDeliberate(one.name, difference));
  if (found.length === 0) continue;
  ++differing;
  console.log(`${one.name}\n${found.map((line) => `    ${line}\n`).join('')}`);
}
console.log(`${differing} answers differ${all ? '' : ' in ways that deliberate.mjs does not have'}`);
