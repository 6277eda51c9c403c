// A Redis server of a test that can be ended and started again, and told what to do.
import net from 'node:net';

import { Broker } from './brokers.mjs';

export class Redis extends Broker {
  static async start(context) {
    const redis = await Redis.create('redis');
    await redis.begin();
    redis.endsWith(context);
    return redis;
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
