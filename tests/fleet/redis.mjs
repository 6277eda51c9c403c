// A Redis server of a test that can be ended and started again, and told what to do.
import { once } from 'node:events';
import net from 'node:net';

import { hangAfter } from '../e2e/server.mjs';
import { Broker } from './brokers.mjs';

export class Redis extends Broker {
  static async start(context) {
    const redis = await Redis.create('redis');
    await redis.begin();
    redis.endsWith(context);
    return redis;
  }

  // What clients and scripts ask of it from now on.
  watch(context) {
    let text = '';
    const socket = net.connect(this.port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
    socket.setEncoding('utf8').on('error', () => {}).on('data', (part) => { text += part; });
    context.after(() => socket.destroy());
    return { until: async (wish) => {
      const signal = AbortSignal.timeout(hangAfter);
      while (!wish.test(text)) await once(socket, 'data', { signal });
      return text;
    } };
  }

  // One line for one line.
  command(...words) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.port, '127.0.0.1', () => socket.write(`${words.join(' ')}\r\n`));
      socket.setEncoding('utf8');
      let text = '';
      socket.on('data', (part) => {
        text += part;
        if (text.endsWith('\r\n')) socket.end();
      });
      socket.on('close', () => resolve(text.trimEnd()));
      socket.on('error', reject);
    });
  }
}
