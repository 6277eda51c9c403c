// Small PDFs for the tests: text in a font of one byte a letter that says by ToUnicode which letter that is, in streams
// that are compressed; encrypted ones, ones without text, ones that never end, and ones that want much memory.
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';

const hex = (number, digits) => number.toString(16).padStart(digits, '0');

function stream(text, { encrypt = (bytes) => bytes, more = '' } = {}) {
  const bytes = encrypt(deflateSync(Buffer.from(text, 'latin1')));
  return Buffer.concat([Buffer.from(`<< /Length ${bytes.length} /Filter /FlateDecode ${more} >>\nstream\n`), bytes,
    Buffer.from('\nendstream')]);
}

// The file of numbered objects, the first of which is the catalog. `inside`: of objects that stand in a stream of
// objects, each as the first of it, the number of that stream.
function file(objects, trailer = '', inside = []) {
  const parts = [Buffer.from('%PDF-1.7\n%\xe4\xf6\xfc\xdf\n', 'latin1')];
  const offsets = [];
  let length = parts[0].length;
  const add = (part) => { parts.push(Buffer.from(part)); length += part.length; };
  objects.forEach((object, i) => {
    offsets.push(length);
    add(`${i + 1} 0 obj\n`);
    add(Buffer.from(object));
    add('\nendobj\n');
  });
  const start = length;
  if (inside.length > 0) {
    const row = (kind, value) => `${hex(kind, 2)}${hex(value, 8)}00`;
    const rows = [row(0, 0), ...offsets.map((offset) => row(1, offset)), ...inside.map((number) => row(2, number))];
    add(`${objects.length + 1 + inside.length} 0 obj\n<< /Type /XRef /W [1 4 1] /Size ${rows.length} /Root 1 0 R ` +
      `/Filter /ASCIIHexDecode /Length ${rows.length * 12 + 1} >>\nstream\n${rows.join('')}>\nendstream\nendobj\n` +
      `startxref\n${start}\n%%EOF\n`);
    return Buffer.concat(parts);
  }
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n`);
  for (const offset of offsets) add(`${String(offset).padStart(10, '0')} 00000 n \n`);
  add(`trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`);
  return Buffer.concat(parts);
}

// Letters get numbers in the order in which they come, so only ToUnicode says what they are.
function codesOf(pages) {
  const letters = [...new Set(pages.flat().join(''))];
  const codes = new Map(letters.map((letter, i) => [letter, hex(i + 1, 2)]));
  const rows = letters.map((letter) => `<${codes.get(letter)}> <${hex(letter.codePointAt(0), 4)}>`);
  const map = `/CIDInit /ProcSet findresource begin\nbegincmap\n1 begincodespacerange\n<00> <ff>\nendcodespacerange\n` +
    `${rows.length} beginbfchar\n${rows.join('\n')}\nendbfchar\nendcmap\nend\n`;
  return { map, count: letters.length, write: (line) => [...line].map((letter) => codes.get(letter)).join('') };
}

// `pages`: of each its lines, at most 255 different letters in all. `lastFont`: that of the last page. `encrypt`: see
// `locked`.
export function pdfOf(pages, { encrypt, trailer = '', lastFont = null, more = [] } = {}) {
  const { map, count, write } = codesOf(pages);
  const first = 5; // catalog, pages, font, map
  const kids = pages.map((_, i) => `${first + 2 * i} 0 R`).join(' ');
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 1 ' +
      `/LastChar ${count} /Widths [${'500 '.repeat(count)}] /ToUnicode 4 0 R >>`,
    stream(map, { encrypt: encrypt?.(4) })];
  pages.forEach((lines, i) => {
    const shown = lines.map((line) => `<${write(line)}> Tj T*`).join('\n');
    const font = lastFont && i === pages.length - 1 ? first + 2 * pages.length : 3;
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents ${first + 2 * i + 1} 0 R ` +
      `/Resources << /Font << /F1 ${font} 0 R >> >> >>`);
    objects.push(stream(`BT /F1 12 Tf 14 TL 50 780 Td\n${shown}\nET`, { encrypt: encrypt?.(first + 2 * i + 1) }));
  });
  return file([...objects, ...(lastFont ? [lastFont] : []), ...more], trailer);
}

const md5 = (...parts) => createHash('md5').update(Buffer.concat(parts)).digest();

function rc4(key, bytes) {
  const state = [...Array(256).keys()];
  for (let i = 0, j = 0; i < 256; ++i) {
    j = (j + state[i] + key[i % key.length]) & 255;
    [state[i], state[j]] = [state[j], state[i]];
  }
  let i = 0;
  let j = 0;
  return Buffer.from(bytes.map((byte) => {
    i = (i + 1) & 255;
    j = (j + state[i]) & 255;
    [state[i], state[j]] = [state[j], state[i]];
    return byte ^ state[(state[i] + state[j]) & 255];
  }));
}

// Encrypted as PDF 1.1 does it (the standard handler, revision 2): with '' it opens without a password.
export function locked(pages, password) {
  const filling = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex');
  const padded = Buffer.concat([Buffer.from(password), filling]).subarray(0, 32);
  const owner = rc4(md5(padded).subarray(0, 5), padded);
  const rights = Buffer.from([0xfc, 0xff, 0xff, 0xff]);
  const id = Buffer.alloc(16, 7);
  const key = md5(padded, owner, rights, id).subarray(0, 5);
  const encrypt = (number) => (bytes) => rc4(md5(key, Buffer.from([number, 0, 0, 0, 0])).subarray(0, 10), bytes);
  const user = rc4(key, filling);
  const handler = '<< /Filter /Standard /V 1 /R 2 /P -4 ' +
    `/O <${owner.toString('hex')}> /U <${user.toString('hex')}> >>`;
  const number = 5 + 2 * pages.length;
  return pdfOf(pages, { encrypt, more: [handler],
    trailer: `/Encrypt ${number} 0 R /ID [<${id.toString('hex')}> <${id.toString('hex')}>]` });
}

// Five hundred pages, each of which has millions of operators that show nothing: reading it takes many minutes.
export function endless({ pages = 500, parts = 1 } = {}) {
  const first = 4; // catalog, pages, content
  const kids = Array.from({ length: pages }, (_, i) => `${first + i} 0 R`).join(' ');
  const page = '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << >> ' +
    `/Contents [${'3 0 R '.repeat(parts)}] >>`;
  return file(['<< /Type /Catalog /Pages 2 0 R >>', `<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`,
    stream('q Q '.repeat(4_000_000)), ...Array(pages).fill(page)]);
}

// One page that shows a letter in each of `fonts`, which are objects of a PDF, or numbers of streams they stand in.
function pageOf(content, { fonts = [], more = [], inside = [] } = {}) {
  const first = 5 + more.length;
  const names = [...fonts, ...inside].map((_, i) => `/F${i} ${first + i} 0 R`).join(' ');
  return file(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << ${names} >> >> >>`,
    content, ...more, ...fonts], '', inside);
}

const mib = 1024 * 1024;
const letterIn = (count) => stream(`BT ${Array.from({ length: count }, (_, i) => `/F${i} 9 Tf (a) Tj`).join(' ')} ET`);
const fontWith = (more) => `<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica ${more} >>`;
const wide = '<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /DescendantFonts [<< /Type /Font ' +
  '/Subtype /CIDFontType2 /BaseFont /F /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> ' +
  '/W [0 900000000 500] >>] >>';

// Files of some kB that a reader without limits takes gigabytes for.
export const hostile = {
  objects: (count = 5) => pageOf(letterIn(count), {
    more: Array.from({ length: count }, (_, i) => stream(
      `${5 + count + i} 0 << /A [${'<<>>'.repeat(14 * mib)}] >>`,
      { more: `/Type /ObjStm /N 1 /First ${`${5 + count + i} 0 `.length}` })),
    inside: Array.from({ length: count }, (_, i) => 5 + i) }),
  operands: () => pageOf(stream(`BT [${'<<>>'.repeat(15 * mib)}] TJ ET`)),
  letters: () => pageOf(letterIn(8), {
    more: Array.from({ length: 8 }, (_, i) => stream('1 begincodespacerange <000000> <ffffff> endcodespacerange ' +
      `1 beginbfrange <00000${i}> <fffff0> <0041> endbfrange endcmap`)),
    fonts: Array.from({ length: 8 }, (_, i) => fontWith(`/ToUnicode ${5 + i} 0 R`)) }),
  names: () => pageOf(stream(Array.from({ length: 2_500_000 }, (_, i) => `/${i.toString(36)} n`).join(' '))),
  states: () => pageOf(stream('q '.repeat(30 * mib))),
  string: () => pageOf(stream(`BT (${'a'.repeat(60 * mib)}) Tj ET`)),
  widths: () => pageOf(letterIn(1), { fonts: [wide] }),
};

// A page in a filter that PDF.js can unpack, and its reader in the page cannot.
export const brotli = () => pageOf('<< /Length 4 /Filter /BrotliDecode >>\nstream\nabcd\nendstream');
