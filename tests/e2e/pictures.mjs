// Pictures and sounds as files, made here.
import zlib from 'node:zlib';

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length);
  body.copy(out, 4);
  out.writeUInt32BE(zlib.crc32(body), body.length + 4);
  return out;
}

// A slope of grey that depends on the seed.
export function png(width, height, seed) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 0], 8);
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) rows[y * (width + 1) + 1 + x] = x * (seed + 1) + y * 3;
  }
  const parts = [chunk('IHDR', head), chunk('IDAT', zlib.deflateSync(rows)), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), ...parts]);
}

// A tone, 16-bit mono at 16 kHz.
export function wav(seconds, pitch = 440) {
  const samples = Math.round(16_000 * seconds);
  const out = Buffer.alloc(44 + 2 * samples);
  out.write('RIFF', 0);
  out.writeUInt32LE(36 + 2 * samples, 4);
  out.write('WAVEfmt ', 8);
  out.writeUInt32LE(16, 16);
  out.writeUInt16LE(1, 20);
  out.writeUInt16LE(1, 22);
  out.writeUInt32LE(16_000, 24);
  out.writeUInt32LE(32_000, 28);
  out.writeUInt16LE(2, 32);
  out.writeUInt16LE(16, 34);
  out.write('data', 36);
  out.writeUInt32LE(2 * samples, 40);
  for (let i = 0; i < samples; ++i) out.writeInt16LE(Math.round(8000 * Math.sin((2 * Math.PI * pitch * i) / 16_000)), 44 + 2 * i);
  return out;
}

// A message's parts: a picture, and words.
export const about = (picture, words) => [
  { type: 'image_url', image_url: { url: `data:image/png;base64,${picture.toString('base64')}` } }, { type: 'text', text: words }];

export const encodings = async (server) => (await server.metrics()).value('chasqui_media_encoded_total');

// Of the random models: model, projector, how many places a picture of 300 × 120 takes, and how many parts are encoded.
export const projectors = [
  ['24m-f16', 'mmproj-random-24m', 64, 1],
  ['24m-f16', 'mmproj-random-24m-mutual', 16, 1],
  ['24m-f16', 'mmproj-random-24m-tiles', 7 * 16, 7],
  ['mrope', 'mmproj-random-mrope', 11 * 4, 1],
];
