// One conversation that several tabs have open, each with a copy of its own. What a tab writes is joined with what the
// store has, message by message. A tab knows which messages it has seen in the store, so that no list of deleted ones is
// needed: what the store has no more was deleted by another tab, what the tab has no more was deleted here, and whatever
// either has beyond that is new.
import { childrenOf } from './conversation.js';

const fields = ['title', 'system', 'model'];
const ended = (node) => node.state !== 'streaming';

// Of one answer: a later stream of it, then its end, then more of it. Other messages never change.
function isLater(a, b) {
  return ((a.begun ?? 0) - (b.begun ?? 0) || ended(a) - ended(b) || (a.pieces ?? 0) - (b.pieces ?? 0)) > 0;
}

// What `mine` has seen of `stored`, the conversation in the store; `before` is what it had seen until then.
export function seenOf(stored, mine, before) {
  const ids = Object.keys(stored.nodes).filter((id) => mine.nodes[id] || before?.ids.has(id));
  return { ids: new Set(ids), title: stored.title, system: stored.system, model: stored.model };
}

// Gives what the store is to have, and brings `mine` up to date. `before`: what seenOf() said the last time.
export function merge(mine, stored, before) {
  for (const name of fields) {
    if (before && mine[name] === before[name]) mine[name] = stored[name];
  }
  mine.updated = Math.max(mine.updated, stored.updated);
  const nodes = mergeNodes(mine.nodes, stored.nodes, (id) => before?.ids.has(id));
  const chosen = { ...stored.chosen, ...mine.chosen };
  adopt(mine.nodes, nodes);
  mine.chosen = valid(chosen, mine.nodes);
  return { ...stored, ...mine, nodes, chosen: valid(chosen, nodes) };
}

function mergeNodes(mine, stored, seen) {
  const nodes = {};
  for (const node of Object.values(stored)) {
    if (mine[node.id] || !seen(node.id)) nodes[node.id] = node;
  }
  for (const node of Object.values(mine)) {
    const theirs = stored[node.id];
    if (theirs ? !isLater(theirs, node) : !seen(node.id)) nodes[node.id] = node;
  }
  // A message that one tab deleted while another wrote below it stays, for what was written would not be seen without.
  for (const node of Object.values(nodes)) {
    for (let id = node.parent; id && !nodes[id]; id = nodes[id].parent) {
      const above = stored[id] ?? mine[id];
      if (!above) break;
      nodes[id] = above;
    }
  }
  return nodes;
}

// An answer that is coming belongs to the tab that reads its stream: others get it when it has ended.
function adopt(mine, nodes) {
  for (const id of Object.keys(mine)) {
    if (!nodes[id]) delete mine[id];
  }
  for (const node of Object.values(nodes).filter(ended)) {
    const own = (mine[node.id] ??= node);
    if (own !== node && ended(own)) Object.assign(own, node); // in place, for the views have it
  }
}

function valid(chosen, nodes) {
  const out = {};
  for (const [parent, child] of Object.entries(chosen)) {
    if (parent && !nodes[parent]) continue;
    const id = nodes[child] ? child : childrenOf({ nodes }, parent).at(-1)?.id;
    if (id) out[parent] = id;
  }
  return out;
}
