// A router as far as it reads KV events: ZMTP 3.0 over a plain socket, MessagePack, and an index of the blocks that a
// node says it holds.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';

const block = 64;

// One connection to a socket of ZeroMQ, without security. Frames of a message come together.
export class Peer {
  static async open(endpoint, kind) {
    const peer = new Peer();
    const { hostname, port } = new URL(endpoint.replace('tcp:', 'http:'));
    peer.socket = net.connect(Number(port), hostname);
    peer.bytes = Buffer.alloc(0);
    peer.frames = [];
    peer.messages = [];
    peer.wake = () => {};
    peer.socket.on('error', () => {}); // it is cut off
    peer.closed = new Promise((resolve) => peer.socket.on('close', resolve));
    await once(peer.socket, 'connect');
    const greeting = Buffer.alloc(64);
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting.write('NULL', 12);
    peer.socket.write(greeting);
    peer.greeted = peer.ready = false;
    peer.socket.on('data', (bytes) => peer.read(bytes));
    const name = Buffer.from('Socket-Type');
    const value = Buffer.from(kind);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(value.length);
    peer.write(4, Buffer.concat([Buffer.from('\x05READY'), Buffer.from([name.length]), name, length, value]));
    while (!peer.ready) await new Promise((resolve) => (peer.wake = resolve)); // nothing may be sent before
    return peer;
  }

  write(flags, body) {
    const head = body.length < 256 ? Buffer.from([flags, body.length]) : Buffer.alloc(9);
    if (body.length >= 256) {
      head[0] = flags | 2;
      head.writeBigUInt64BE(BigInt(body.length), 1);
    }
    this.socket.write(Buffer.concat([head, body]));
  }

  send(...frames) {
    frames.forEach((frame, i) => this.write(i + 1 < frames.length ? 1 : 0, frame));
  }

  read(bytes) {
    this.bytes = Buffer.concat([this.bytes, bytes]);
    if (!this.greeted) {
      if (this.bytes.length < 64) return;
      assert.equal(this.bytes.toString('latin1', 12, 16), 'NULL');
      this.bytes = this.bytes.subarray(64);
      this.greeted = true;
    }
    for (;;) {
      const long = (this.bytes[0] & 2) !== 0;
      const head = long ? 9 : 2;
      if (this.bytes.length < head) return;
      const length = long ? Number(this.bytes.readBigUInt64BE(1)) : this.bytes[1];
      if (this.bytes.length < head + length) return;
      const flags = this.bytes[0];
      const body = this.bytes.subarray(head, head + length);
      this.bytes = this.bytes.subarray(head + length);
      if (flags & 4) {
        if (body.toString('latin1', 1, 5) === 'PING') {
          this.write(4, Buffer.concat([Buffer.from('\x04PONG'), body.subarray(7)]));
          continue;
        }
        assert.equal(body.toString('latin1', 1, 6), 'READY');
        this.ready = true;
        this.wake();
        continue;
      }
      this.frames.push(body);
      if (flags & 1) continue;
      this.messages.push(this.frames);
      this.frames = [];
      this.wake();
    }
  }

  async next() {
    while (this.messages.length === 0) await new Promise((resolve) => (this.wake = resolve));
    return this.messages.shift();
  }

  close() {
    this.socket.destroy();
  }
}

// The value that begins at `at.at`.
function unpack(bytes, at = { at: 0 }) {
  const take = (length) => bytes.subarray(at.at, (at.at += length));
  const number = (length) => Number(length === 8 ? take(8).readBigUInt64BE() : take(length).readUIntBE(0, length));
  const list = (length) => Array.from({ length }, () => unpack(bytes, at));
  const head = number(1);
  if (head < 0x80) return head;
  if (head >> 4 === 9) return list(head & 15);
  if (head >> 5 === 5) return take(head & 31).toString();
  switch (head) {
    case 0xc0: return null;
    case 0xcb: return take(8).readDoubleBE();
    case 0xcc: case 0xcd: case 0xce: return number(1 << (head - 0xcc));
    case 0xcf: return take(8).readBigUInt64BE();
    case 0xd9: case 0xda: case 0xdb: return take(number(1 << (head - 0xd9))).toString();
    case 0xdc: case 0xdd: return list(number(2 << (head - 0xdc)));
    default: throw new Error(`no value begins with ${head}`);
  }
}

export const numbered = (number) => {
  const out = Buffer.alloc(8);
  out.writeBigUInt64BE(BigInt(number));
  return out;
};

// Builds an index from the events, as routers do: by the tokens, with the node's hashes only to find blocks again.
export class Router {
  // `context`: a test, with which it leaves.
  constructor(context) {
    context?.after(() => this.leave());
    this.blocks = new Map(); // hash → the adapter and all tokens up to its end, as a text
    this.held = new Map(); // medium → hashes
    this.next = 0; // the batch that it needs
    this.arrived = 0; // behind the last that has come, taken or not
    this.cleared = 0;
    this.removed = 0;
  }

  // Until it is told everything.
  async subscribe(endpoint, topic = 'kv@') {
    this.peer = await Peer.open(endpoint, 'SUB');
    this.peer.send(Buffer.concat([Buffer.from([1]), Buffer.from(topic)]));
    const { cleared } = this;
    while (this.cleared === cleared) await this.read();
  }

  leave() {
    this.peer?.close();
    this.peer = undefined;
  }

  // One batch. A gap is an error: who expects one asks for what was missed.
  async read() {
    const [topic, number, payload] = await this.peer.next();
    this.topic = topic.toString();
    const at = Number(number.readBigUInt64BE());
    if (this.cleared > 0) assert.equal(at, this.next, 'a batch is missing');
    this.arrived = at + 1;
    this.take(at, payload);
  }

  // One batch that does not come to its knowledge.
  async lose() {
    const [, number] = await this.peer.next();
    this.arrived = Number(number.readBigUInt64BE()) + 1;
  }

  // What the node repeats from a batch on: how many batches those were.
  async replay(endpoint, from = this.next) {
    const peer = await Peer.open(endpoint, 'DEALER');
    peer.send(Buffer.alloc(0), numbered(from));
    let batches = 0;
    for (;; batches++) {
      const [empty, number, payload] = await peer.next();
      assert.equal(empty.length, 0);
      if (payload.length === 0) {
        assert.equal(number.readBigInt64BE(), -1n);
        break;
      }
      this.take(Number(number.readBigUInt64BE()), payload);
    }
    peer.close();
    return batches;
  }

  take(number, payload) {
    const [seconds, events, rank] = unpack(payload);
    assert.ok(seconds > 1.6e9 && rank === 0);
    for (const event of events) this.apply(event);
    this.next = number + 1;
  }

  apply([tag, ...rest]) {
    if (tag === 'AllBlocksCleared') {
      this.held.clear();
      this.cleared += 1;
    } else if (this.cleared === 0) {
      // Changes of what it is about to be told.
    } else if (tag === 'BlockRemoved') {
      const [hashes, medium] = rest;
      for (const hash of hashes) assert.ok(this.held.get(medium).delete(hash), 'it was not held');
      this.removed += hashes.length;
    } else {
      assert.equal(tag, 'BlockStored');
      const [hashes, parent, tokens, size, loraId, medium, adapter] = rest;
      assert.deepEqual([size, loraId, tokens.length], [block, null, block * hashes.length]);
      let before = parent === null ? `${adapter ?? ''}|` : this.blocks.get(parent);
      assert.notEqual(before, undefined, 'a block before it is told first');
      if (!this.held.has(medium)) this.held.set(medium, new Set());
      hashes.forEach((hash, i) => {
        before += `${tokens.slice(i * block, (i + 1) * block)};`;
        this.blocks.set(hash, before);
        this.held.get(medium).add(hash);
      });
    }
  }

  // Blocks at the beginning of these tokens that the node holds, of the model or of one of its adapters.
  blocksOf(tokens, medium = 'GPU', adapter = '') {
    const held = new Set([...this.held.get(medium) ?? []].map((hash) => this.blocks.get(hash)));
    let text = `${adapter}|`;
    for (let n = 0; ; n++) {
      if ((n + 1) * block > tokens.length) return n;
      text += `${tokens.slice(n * block, (n + 1) * block)};`;
      if (!held.has(text)) return n;
    }
  }

  count() {
    return [...this.held.values()].reduce((sum, hashes) => sum + hashes.size, 0);
  }

  state() {
    return [...this.held].map(([medium, hashes]) => [medium, [...hashes].sort()]).filter(([, list]) => list.length > 0);
  }
}
