// HTTP as bytes on a socket, for what a decent client would never send.
import net from 'node:net';

import { checkError } from './client.mjs';
import { hangAfter } from './server.mjs';

export function connect(server) {
  const socket = net.connect(server.port, '127.0.0.1');
  socket.setTimeout(hangAfter, () => socket.destroy(new Error('the server said nothing for too long')));
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      socket.on('error', () => {}); // a reset is an end like any other; what was received counts
      resolve(socket);
    });
  });
}

// Sends the bytes and reads until the server closes. With `end`, our side of the connection ends first.
export async function exchange(server, bytes, { end = false } = {}) {
  const socket = await connect(server);
  const parts = [];
  socket.on('data', (part) => parts.push(part));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const ended = new Promise((resolve) => socket.once('end', resolve));
  socket.write(bytes);
  if (end) socket.end();
  await Promise.race([ended, closed]);
  socket.destroy();
  return Buffer.concat(parts).toString();
}

export function request(method, target, headers = {}, body = '') {
  const all = { Host: 'localhost', Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

export function parse(text) {
  const match = /^HTTP\/1\.1 (\d{3}) [^\r\n]+\r\n(.*?)\r\n\r\n(.*)$/s.exec(text);
  if (!match) throw new Error(`no HTTP response: ${JSON.stringify(text.slice(0, 200))}`);
  const headers = Object.fromEntries(match[2].split('\r\n').map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  }));
  return { status: Number(match[1]), headers, body: match[3] };
}

// The error that these bytes are answered with.
export async function refusal(server, bytes, status, options) {
  const response = parse(await exchange(server, bytes, options));
  if (response.status !== status) throw new Error(`${status} expected, seen ${response.status} ${response.body}`);
  return { ...response, error: checkError(JSON.parse(response.body), status) };
}
