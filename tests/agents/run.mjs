// Real coding agents against the server, each through a loop of twenty of its own tools with the simulated voice, then
// with a question for the demo model: node run.mjs [AGENT…]. `make agents` installs them first, under build/agents, and
// runs this without a network. Prints a table, and exits with 1 where an agent did not come to its end, a request was
// refused, or a turn computed what an earlier one had.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { Server, sim } from '../e2e/server.mjs';
import { agents } from './agents.mjs';
import { farewell, layLoop } from './loop.mjs';
import { Witness } from './witness.mjs';

const turns = 20;
const reusedMin = 0.98; // of what the turn before had in the cache
const installed = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../build/agents/node_modules/.bin');
const sources = path.join(process.env.CHASQUI_CACHE ?? path.join(homedir(), '.cache/chasqui'), 'src');

// Of the pinned llama.cpp source, the newest that is there.
function qwenTemplate() {
  const folder = readdirSync(sources).filter((name) => name.startsWith('llama.cpp-')).sort().at(-1);
  return path.join(sources, folder, 'models/templates/Qwen-Qwen2.5-7B-Instruct.jinja');
}

// `limit`: milliseconds; an agent that takes longer hangs. Some begin with 35,000 tokens, which the demo model reads for
// minutes where others compute, too.
const scenes = {
  'a loop of tools': {
    flags: [...sim, '-c', '262144', '-np', '4', '--chat-template-file', qwenTemplate()],
    limit: 180_000,
    lay: (folder, tools) => layLoop(folder, tools, turns),
    ended: ({ said, last }) => said.includes(farewell) && existsSync(last),
  },
  'the demo model': {
    flags: ['-c', '262144', '-np', '4', '-n', '48'],
    limit: 600_000,
    lay: () => ({ prompt: 'What is the capital of Peru? Answer in one word.' }),
    ended: ({ code, notes }) => code === 0 && notes.length > 0,
  },
};

async function runAgent(name, url, home, work, prompt, limit) {
  const agent = agents[name];
  const env = { PATH: process.env.PATH, HOME: home, TERM: 'dumb', NO_COLOR: '1', ...agent.setup(home, url) };
  const child = spawn(path.join(installed, agent.program), agent.args(prompt, home), { cwd: work, env, detached: true,
    stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (text) => (said += text));
  const timer = setTimeout(() => {
    said += '\n(killed: it did not end)';
    process.kill(-child.pid, 'SIGKILL');
  }, limit);
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  return { code, said };
}

// Of the requests that offer tools, each goes on from the one before: how much of what that one left was found.
function reuse(notes) {
  const shares = [];
  const loop = notes.filter((one) => one.tools > 0 && one.status === 200);
  for (let i = 1; i < loop.length; ++i) {
    const known = loop[i - 1].prompt + loop[i - 1].completion;
    if (loop[i].prompt > loop[i - 1].prompt) shares.push(Math.min(1, loop[i].cached / known));
  }
  return { requests: loop.length, shares, ofPrompt: loop.length > 1 ? loop.at(-1).cached / loop.at(-1).prompt : 0 };
}

async function play(name, title) {
  const scene = scenes[title];
  const folder = mkdtempSync(path.join(tmpdir(), `agent-${name}-`));
  const server = new Server(scene.flags, {});
  await server.listening();
  const witness = new Witness(server.port);
  const url = await witness.listen();
  const [home, work] = ['home', 'work'].map((part) => path.join(folder, part));
  for (const part of [home, work]) mkdirSync(part);
  const { prompt, last } = scene.lay(work, agents[name].tools);
  const begun = performance.now();
  const { code, said } = await runAgent(name, url, home, work, prompt, scene.limit);
  const seconds = (performance.now() - begun) / 1000;
  witness.close();
  await server.stop();
  const { notes } = witness;
  const refused = notes.filter((one) => one.status >= 400);
  const { requests, shares, ofPrompt } = reuse(notes);
  const least = shares.length > 0 ? Math.min(...shares) : 1;
  const ended = scene.ended({ code, said, notes, last });
  console.log(`| ${name} | ${title} | ${ended ? 'yes' : 'NO'} | ${requests} | ${refused.length} | ${least.toFixed(3)} | ` +
    `${ofPrompt.toFixed(3)} | ${seconds.toFixed(0)} |`);
  for (const one of refused) console.log(`  ${one.status} ${one.url} ${one.refusal}`);
  const good = ended && refused.length === 0 && least >= reusedMin;
  if (!good) console.log(`  shares ${shares.map((share) => share.toFixed(3)).join(' ')}\n  exit ${code}, said: ${said.trim().slice(-600)}`);
  rmSync(folder, { recursive: true, force: true });
  return good;
}

let all = true;
console.log('| agent | scene | ended | requests with tools | refused | least found of the turn before | found of the last prompt | s |');
console.log('|---|---|---|---|---|---|---|---|');
for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(agents)) {
  for (const title of Object.keys(scenes)) all = (await play(name, title)) && all;
}
process.exit(all ? 0 : 1);
