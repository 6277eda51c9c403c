// A loop of tools that the simulated voice leads an agent through: it says what the last `say:HEX;` of its prompt asks
// for, so each step's result carries what it says next.
import { writeFileSync } from 'node:fs';
import path from 'node:path';

const say = (text) => `say:${Buffer.from(text).toString('hex')};`;
// As templates write JSON, and the models that were trained on them: with spaces.
function spaced(value) {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${spaced(one)}`).join(', ')}}`;
}

// As the template of Qwen2.5 has its models write calls.
const call = ([name, args]) => `<tool_call>\n${spaced({ name, arguments: args })}\n</tool_call>`;

export const farewell = 'All steps are done.';

// Lays the steps down in `folder`: a file to read, one to show with a command and one to write, in turns. Returns what to
// ask the agent for; it has walked all `turns` when `last` exists.
export function layLoop(folder, tools, turns) {
  let next = farewell;
  const last = path.join(folder, `written${turns}.txt`);
  const kinds = { read: (file) => call(tools.read(file)), run: (file) => call(tools.run(`cat ${file}`)) };
  for (let turn = turns; turn >= 1; --turn) {
    if (turn === turns || turn % 3 === 0) {
      next = call(tools.write(path.join(folder, `written${turn}.txt`), say(next)));
      continue;
    }
    const file = path.join(folder, `step${turn}.txt`);
    writeFileSync(file, `${say(next)}\n`);
    next = kinds[turn % 3 === 1 ? 'read' : 'run'](file);
  }
  return { prompt: `Do the steps. ${say(next)}`, last };
}
