// A TCP proxy in front of a store or Redis that can be made to fail while connections are open.
import { once } from 'node:events';
import net from 'node:net';

// What happens to what comes; set `mode` at any time, which holds for open connections as well:
//   pass     everything goes through
//   refuse   connections are closed at once, those that are open, too
//   hang     connections are accepted, and nothing goes through, until another mode is set
//   half     each answer ends in its middle: the connection is closed after half of the first piece that comes
//   corrupt  in each piece of an answer behind its head, or all of it where it has none, one bit is another
//   slow     answers come with `rate` bytes per second
export class ToxicProxy {
  #server;
  #links = new Set();
  #mode = 'pass';
  connections = 0; // accepted so far
  rate = 100;

  static modes = ['pass', 'refuse', 'hang', 'half', 'corrupt', 'slow'];

  static async start(context, target) {
    const proxy = new ToxicProxy();
    proxy.#server = net.createServer({ allowHalfOpen: true }, (client) => proxy.#accept(client, target));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    proxy.port = proxy.#server.address().port;
    context.after(() => proxy.stop());
    return proxy;
  }

  get mode() {
    return this.#mode;
  }

  set mode(mode) {
    if (!ToxicProxy.modes.includes(mode)) throw new Error(`a mode is one of ${ToxicProxy.modes}: ${mode}`);
    this.#mode = mode;
    for (const link of this.#links) link.modeChanged();
  }

  async stop() {
    this.#server.close();
    for (const link of this.#links) link.close();
    await once(this.#server, 'close');
  }

  #accept(client, target) {
    ++this.connections;
    if (this.#mode === 'refuse') return client.on('error', () => {}).destroy();
    const link = new Link(this, client, target, () => this.#links.delete(link));
    this.#links.add(link);
  }
}

// One connection. The server is called once something may go to it.
class Link {
  #proxy;
  #client;
  #target;
  #server;
  #waiting = []; // pieces of answers of the slow mode
  #timer;
  #gone;

  constructor(proxy, client, target, gone) {
    [this.#proxy, this.#client, this.#target, this.#gone] = [proxy, client, target, gone];
    client.on('error', () => this.close()).on('close', () => this.close());
    this.modeChanged();
  }

  modeChanged() {
    const { mode } = this.#proxy;
    if (mode === 'refuse') return this.close();
    if (mode === 'hang') {
      this.#client.pause();
      this.#server?.pause();
      return undefined;
    }
    if (!this.#server) this.#connect();
    if (mode !== 'slow') this.#flush();
    this.#client.resume();
    return this.#server.resume();
  }

  close() {
    clearInterval(this.#timer);
    this.#client.destroy();
    this.#server?.destroy();
    this.#gone();
  }

  #connect() {
    this.#server = net.connect(this.#target);
    this.#server.on('error', () => this.close()).on('close', () => this.#ended());
    this.#server.on('data', (piece) => this.#answer(piece));
    this.#client.on('data', (piece) => this.#server.write(piece)).on('end', () => this.#server.end());
  }

  // The server has said all that it will.
  #ended() {
    if (this.#waiting.length === 0) this.#client.end();
  }

  #answer(piece) {
    if (this.#proxy.mode === 'half') {
      this.#client.end(piece.subarray(0, piece.length / 2));
      this.#server.destroy();
    } else if (this.#proxy.mode === 'slow') {
      this.#waiting.push(piece);
      this.#timer ??= setInterval(() => this.#drip(), 100);
    } else {
      this.#client.write(this.#proxy.mode === 'corrupt' ? corrupted(piece) : piece);
    }
  }

  #drip() {
    const all = Buffer.concat(this.#waiting);
    const size = Math.max(1, Math.floor(this.#proxy.rate / 10));
    this.#client.write(all.subarray(0, size));
    this.#waiting = all.length > size ? [all.subarray(size)] : [];
    if (this.#waiting.length === 0) this.#flush();
  }

  #flush() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const piece of this.#waiting) this.#client.write(piece);
    this.#waiting = [];
    if (this.#server.closed) this.#client.end();
  }
}

function corrupted(piece) {
  const head = piece.indexOf('\r\n\r\n');
  const from = piece.subarray(0, 5).toString('latin1') === 'HTTP/' && head >= 0 ? head + 4 : 0;
  if (from === piece.length) return piece;
  const out = Buffer.from(piece);
  out[from + Math.floor((out.length - from) / 2)] ^= 1;
  return out;
}
