// How the copies of a conversation that several tabs have become one, without a browser.
import assert from 'node:assert/strict';
import test from 'node:test';

import { addAnswer, addNode, lastId, newConversation, pathOf, removeNode } from '../src/conversation.js';
import { merge, seenOf } from '../src/merge.js';

// A tab has a copy, and what it has seen of the store; both in the way of store.js.
class Copy {
  constructor(store) {
    this.store = store;
    this.mine = structuredClone(store.kept);
    this.seen = seenOf(store.kept, this.mine);
  }

  keep() {
    const record = merge(this.mine, structuredClone(this.store.kept), this.seen);
    this.seen = seenOf(record, this.mine, this.seen);
    this.store.kept = structuredClone(record);
  }

  read() {
    const stored = structuredClone(this.store.kept);
    merge(this.mine, stored, this.seen);
    this.seen = seenOf(stored, this.mine, this.seen);
  }

  say(content) {
    return addNode(this.mine, lastId(this.mine), { content });
  }

  get texts() {
    return pathOf(this.mine).map(({ content }) => content);
  }
}

// Two tabs that have the same two messages.
function copies() {
  const conversation = newConversation('');
  addNode(conversation, addNode(conversation, '', { content: 'one' }).id, { role: 'assistant', content: 'two' });
  const store = { kept: conversation };
  return [store, new Copy(store), new Copy(store)];
}

const contents = ({ nodes }) => Object.values(nodes).map(({ content }) => content).sort();

test('what two tabs add is kept, and neither is shown what it has not chosen', () => {
  const [store, a, b] = copies();
  a.say('of a');
  b.say('of b');
  a.keep();
  b.keep();
  assert.deepEqual(contents(store.kept), ['of a', 'of b', 'one', 'two']);
  a.read();
  assert.deepEqual([a.texts.at(-1), b.texts.at(-1)], ['of a', 'of b']);
  assert.deepEqual(contents(a.mine), contents(b.mine));
});

test('a tab that has nothing of its own goes on where the other is', () => {
  const [, a, b] = copies();
  a.say('three');
  a.keep();
  b.read();
  assert.deepEqual(b.texts, ['one', 'two', 'three']);
});

test('deleted messages stay deleted, and come back where that is undone', () => {
  const [store, a, b] = copies();
  const bringBack = removeNode(a.mine, pathOf(a.mine)[1]);
  a.read(); // the other tab has written in between
  a.keep();
  b.keep();
  assert.deepEqual([contents(store.kept), b.texts], [['one'], ['one']]);
  bringBack();
  a.keep();
  b.keep();
  assert.deepEqual(contents(store.kept), ['one', 'two']);
  b.read();
  assert.deepEqual(b.texts, ['one', 'two']);
});

test('a message that was deleted stays where another tab has written below it', () => {
  for (const order of [[0, 1], [1, 0]]) {
    const [store, ...both] = copies();
    removeNode(both[0].mine, pathOf(both[0].mine)[0]);
    both[1].say('three');
    for (const i of order) both[i].keep();
    assert.deepEqual(contents(store.kept), ['one', 'three', 'two']);
    for (const copy of both) copy.read();
    assert.deepEqual(both.map(({ texts }) => texts.length), [3, 3]);
  }
});

test('names and prompts are those that were changed last', () => {
  const [store, a, b] = copies();
  a.mine.title = 'renamed';
  a.keep();
  b.mine.system = 'Be brief.';
  b.keep();
  assert.deepEqual([store.kept.title, store.kept.system], ['renamed', 'Be brief.']);
  assert.equal(b.mine.title, 'renamed');
});

test('an answer that is coming is written by the tab that reads it, and given to others when it has ended', () => {
  const [store, a, b] = copies();
  const node = addAnswer(a.mine, a.say('three').id);
  a.keep();
  b.read();
  assert.deepEqual(b.texts, ['one', 'two', 'three']);
  Object.assign(node, { content: 'four', pieces: 1 });
  b.keep();
  a.keep();
  assert.equal(store.kept.nodes[node.id].content, 'four');
  node.state = 'done';
  a.keep();
  b.keep();
  assert.deepEqual(b.texts, ['one', 'two', 'three', 'four']);
  // It is continued: what the other has of it is older.
  Object.assign(node, { content: 'four, five', state: 'streaming', pieces: 0, begun: node.begun + 1 });
  a.keep();
  b.keep();
  assert.equal(store.kept.nodes[node.id].content, 'four, five');
  assert.deepEqual(b.texts.at(-1), 'four');
});
