// Pictures and sounds that go with a message: told by how their bytes begin, made as small as a model reads them, kept as
// base64, as the server takes them, so that a conversation can be kept, exported and sent again.
import { h } from './dom.js';

const longest = 2048; // pixels of a side: models read no more
const asIs = 2 * 1024 * 1024; // bytes up to which a picture is sent as it was

const forms = [
  ['picture', 'image/png', /^\x89PNG/],
  ['picture', 'image/jpeg', /^\xff\xd8\xff/],
  ['picture', 'image/webp', /^RIFF[^]{4}WEBP/],
  ['picture', 'image/gif', /^GIF8[79]a/],
  ['picture', 'image/avif', /^[^]{4}ftyp(avif|hei|mif1)/],
  ['picture', 'image/tiff', /^(II\*\0|MM\0\*)/],
  ['sound', 'audio/wav', /^RIFF[^]{4}WAVE/],
  ['sound', 'audio/mpeg', /^(ID3|\xff[\xfb\xf3\xf2])/],
  ['sound', 'audio/flac', /^fLaC/],
];

// { kind, type }, or nothing for what is neither; the type that the sender's system claims counts for pictures alone.
export function mediaOf(bytes, claimed = '') {
  const begin = String.fromCharCode(...bytes.subarray(0, 16));
  const found = forms.find(([, , form]) => form.test(begin));
  if (found) return { kind: found[0], type: found[1] };
  return /^image\/(?!svg)/.test(claimed) ? { kind: 'picture', type: claimed } : null;
}

// The server takes PNG and JPEG; a browser reads more, and photos are larger than what a model sees of them.
async function fitting(file, type, name) {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${name} is no picture that this browser can read.`);
  });
  const scale = Math.min(1, longest / Math.max(bitmap.width, bitmap.height));
  const plain = type === 'image/png' || type === 'image/jpeg';
  if (plain && scale === 1 && file.size <= asIs) return new Blob([file], { type });
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
  canvas.getContext('2d').drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: type === 'image/jpeg' ? type : 'image/png', quality: 0.9 });
}

function base64Of(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

// { name, size, type, data }; throws an Error whose message says why it cannot be attached.
export async function readMedia(file, { kind, type }, name) {
  const blob = kind === 'picture' ? await fitting(file, type, name) : new Blob([file], { type });
  return { name, size: blob.size, type: blob.type, data: await base64Of(blob) };
}

const isPicture = ({ type }) => type.startsWith('image/');
const addressOf = ({ type, data }) => `data:${type};base64,${data}`;
const soundFormats = { 'audio/wav': 'wav', 'audio/mpeg': 'mp3', 'audio/flac': 'flac' };

// What may have come from a file that was imported; nothing where it is no such attachment.
export function checkedMedia({ name, type, data }) {
  const known = ['image/png', 'image/jpeg', ...Object.keys(soundFormats)].includes(type);
  if (!known || typeof data !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return null;
  return { name, size: Math.floor(data.length / 4 * 3), type, data };
}

// As a part of a message of OpenAI's chat.
export const partOf = (media) => (isPicture(media)
  ? { type: 'image_url', image_url: { url: addressOf(media) } }
  : { type: 'input_audio', input_audio: { data: media.data, format: soundFormats[media.type] } });

export const imageOf = (media, attributes) => isPicture(media) && h('img', { src: addressOf(media), ...attributes });

// In Markdown, and what reads it back.
export const markdownOf = (media) => `![${media.name.replace(/[[\]\\]/g, ' ')}](${addressOf(media)})\n\n`;
export const markdownForm = /!\[([^\]\n]*)\]\(data:([\w/+-]+);base64,([A-Za-z0-9+/=]+)\)\n\n?/y;
