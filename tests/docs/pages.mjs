// The pages of the documentation, taken apart: blocks of shell commands, lines that call chasqui, code inside sentences.
import fs from 'node:fs';
import path from 'node:path';

export function pagesOf(root) {
  const files = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'ARCHITECTURE.md'];
  for (const folder of ['docs', 'docs/guides', 'docs/design']) {
    for (const name of fs.readdirSync(path.join(root, folder))) if (name.endsWith('.md')) files.push(`${folder}/${name}`);
  }
  return files.map((file) => ({ file, lines: fs.readFileSync(path.join(root, file), 'utf8').split('\n') }));
}

// Fenced blocks marked sh, and groups of indented lines: { page, line, text }.
export function blocksOf({ file, lines }) {
  const out = [];
  let block;
  let fence;
  lines.forEach((text, at) => {
    const mark = /^```(\w*)/.exec(text);
    if (mark) {
      if (block) out.push(block);
      block = fence === undefined && mark[1] === 'sh' ? { page: file, line: at + 2, text: '' } : undefined;
      fence = fence === undefined ? mark[1] : undefined;
    } else if (fence !== undefined) {
      if (block) block.text += `${text}\n`;
    } else if (/^ {4}\S/.test(text)) {
      block ??= { page: file, line: at + 1, text: '' };
      block.text += `${text.slice(4)}\n`;
    } else if (block) {
      out.push(block);
      block = undefined;
    }
  });
  return block ? [...out, block] : out;
}

// Calls of chasqui in those blocks, as words: comments, columns of explanation and what stands before are left out.
export function chasquiLines(page) {
  return blocksOf(page).flatMap(({ page: file, line, text }) => text.replace(/\\\n\s*/g, ' ').split('\n').flatMap((each) => {
    const call = /(?:^|[|&(;] *)(?:\S*\/)?chasqui ([a-z-].*)$/.exec(each.replace(/ {2,}[^-].*$/, '').replace(/ #.*$/, ''));
    if (!call) return [];
    const words = call[1].replace(/[[\]]/g, '').split(/[|)&;]/)[0].match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
    return [{ page: file, line, words }];
  }));
}

// `code` of sentences and tables, without the fenced blocks.
export function inlineCode({ lines }) {
  let fenced = false;
  return lines.flatMap((text) => {
    if (text.startsWith('```')) fenced = !fenced;
    return fenced || text.startsWith('```') ? [] : [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code);
  });
}
