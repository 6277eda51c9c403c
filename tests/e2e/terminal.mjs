// A real terminal for tests: tmux with a server of its own, so that no user's settings or sessions are touched. Needs
// tmux; tests that use it say so when it is missing.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { binary, hangAfter } from './server.mjs';

export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

const quoted = (word) => `'${String(word).replaceAll("'", `'\\''`)}'`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Terminal {
  static count = 0;

  // Runs the binary with `args` as the only program of a window.
  constructor(context, args, { columns = 100, rows = 30, env = {} } = {}) {
    this.socket = path.join(os.tmpdir(), `chasqui-tmux-${process.pid}-${Terminal.count++}`);
    const settings = Object.entries({ ...env, TERM: 'screen-256color' }).map(([key, value]) => `${key}=${value}`);
    const command = ['env', ...settings, binary, ...args].map(quoted).join(' ');
    // What is left on the screen at the end, and how it ended, can still be read.
    this.tmux('-f', '/dev/null', 'new-session', '-d', '-x', columns, '-y', rows, `${command}; echo "ended $?"; cat`);
    context.after(() => spawnSync('tmux', ['-S', this.socket, 'kill-server']));
  }

  tmux(...args) {
    const { status, stdout, stderr } = spawnSync('tmux', ['-S', this.socket, ...args.map(String)], { encoding: 'utf8' });
    assert.equal(status, 0, `tmux ${args[0]}: ${stderr}`);
    return stdout;
  }

  screen() {
    return this.tmux('capture-pane', '-p', '-S', '-200');
  }

  // With its colours.
  paintedScreen() {
    return this.tmux('capture-pane', '-p', '-e', '-S', '-200');
  }

  type(text) {
    this.tmux('send-keys', '-l', text);
  }

  press(...keys) {
    this.tmux('send-keys', ...keys);
  }

  enter(text) {
    this.type(text);
    this.press('Enter');
  }

  // To the program, and not to the shell that it runs in.
  signal(name) {
    const shell = this.tell('pane_pid');
    const [pid] = readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').split(' ');
    process.kill(Number(pid), name);
  }

  // What tmux knows of the window: cursor_flag, alternate_on …
  tell(what) {
    return this.tmux('display-message', '-p', `#{${what}}`).trim();
  }

  resize(columns, rows) {
    this.tmux('resize-window', '-x', columns, '-y', rows);
  }

  // Until the screen shows it.
  async shows(pattern) {
    const end = Date.now() + hangAfter;
    let screen = '';
    while (Date.now() < end) {
      screen = this.screen();
      if (pattern.test(screen)) return screen;
      await pause(50);
    }
    assert.fail(`the terminal never showed ${pattern}:\n${screen}`);
  }
}
